//! `optional`: what the binary has by features that are off by default, tested; and that binary, for peers.

use std::{path::PathBuf, process::Stdio};

use anyhow::Context as _;
use serde_json::Value;

use crate::{cargo, source, watched};

/// What is off by default.
const FEATURES: &str = "serve,jwks,otel";
/// What is built for both: the tests of the binary with them, and so the binary as those have it.
const BUILT: [&str; 8] =
    ["--package", "safepoint-cli", "--features", FEATURES, "--bin", "safepoint", "--test", "served"];
/// Runs those tests.
pub(crate) fn optional() -> anyhow::Result<()> {
    watched::watched(&BUILT.map(str::to_owned))
}

/// Our binary with all that is off by default, as its tests have it: what they have built is not built again.
pub(crate) fn binary() -> anyhow::Result<PathBuf> {
    built(&[&["test", "--no-run"], &BUILT[..]].concat())
}

/// The same as it is released, with `serve`.
pub(crate) fn released() -> anyhow::Result<PathBuf> {
    built(&["build", "--release", "--package", "safepoint-cli", "--features", "serve"])
}

fn built(how: &[&str]) -> anyhow::Result<PathBuf> {
    let output = cargo::command()
        .args(how)
        .args(["--message-format", "json"])
        .current_dir(source::root())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo could not be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let programs = messages
        .filter(|message| message["target"]["name"] == "safepoint" && message["profile"]["test"] == false);
    let mut built = programs.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    built.next_back().filter(|_| output.status.success()).context("the binary could not be built")
}
