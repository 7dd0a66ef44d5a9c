//! How the agents of others are had: from PyPI, by name.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::super::Absent;

/// The versions that the scenarios are known to fit.
const PACKAGES: [&str; 3] =
    ["google-adk[a2a]==2.13.0", "agent-framework-a2a==1.0.0b261022", "a2a-sdk[http-server]==1.3.0"];

/// The interpreter that has them all, and the server's file.
pub(super) fn python(cache: &Path) -> Result<(PathBuf, PathBuf), Absent> {
    let interpreter = cache.join("venv/bin/python");
    if !interpreter.exists() {
        quietly(Command::new("python3").args(["-m", "venv"]).arg(cache.join("venv")), "python3 -m venv")?;
    }
    let stamp = cache.join("installed");
    let wanted = PACKAGES.join(" ");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(wanted.as_str()) {
        let mut pip = Command::new(&interpreter);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
        quietly(&mut pip, "pip install")?;
        write(&stamp, &wanted)?;
    }
    let server = cache.join("server.py");
    write(&server, include_str!("server.py"))?;
    Ok((interpreter, server))
}

fn quietly(command: &mut Command, what: &str) -> Result<(), Absent> {
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
