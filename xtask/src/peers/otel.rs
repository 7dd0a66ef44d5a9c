//! A receiver of OpenTelemetry that others wrote, from PyPI: what our binary exports is what it reads (S11.13).

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use serde_json::json;

use super::{Absent, Tally, mcp::install::from_pypi, serving::Serving, target};

/// The version that the scenarios are known to fit.
const RECEIVER: &str = "oteltap==1.0.0";
const CLIENT: &str = include_str!("otel.py");

const SCENARIOS: [(&str, &str); 2] = [
    ("tree", "a stopped run with an agent and a command below it is one tree with one stop"),
    ("deaf", "a collector that never answers changes neither the end nor its exit code"),
];

/// Runs both with a build that exports.
pub(super) fn peers(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let cache = target().join("peers").join("otel");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    match from_pypi(&cache, &[RECEIVER]) {
        Err(Absent(reason)) => SCENARIOS.iter().for_each(|(_, what)| tally.skip(&title(what), &reason)),
        Ok(python) => {
            for (scenario, what) in SCENARIOS {
                tally.take(&title(what), || run(binary, (&cache, &python), scenario));
            }
        }
    }
    Ok(())
}

fn title(what: &str) -> String {
    format!("oteltap of PyPI: {what}")
}

fn run(binary: &Path, (cache, python): (&Path, &Path), scenario: &str) -> anyhow::Result<()> {
    let folder = cache.join(scenario);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let (mark, script) = (folder.join("mark"), folder.join("script.json"));
    let command = format!("touch {}; sleep 600", mark.display());
    let replies = json!({"replies": [
        {"calls": [{"name": "helper", "args": {"task": "run it"}}], "usage": [11, 7]},
        {"calls": [{"name": "shell", "args": {"command": command}}], "usage": [5, 3]},
    ]});
    fs::write(&script, replies.to_string())?;
    let client = cache.join("client.py");
    fs::write(&client, CLIENT)?;
    let serving = Serving::practice(Command::new(binary).arg("practice").arg("--script").arg(&script))?;
    let output = Command::new(python)
        .arg(&client)
        .arg(binary)
        .arg(serving.base_url("chat"))
        .arg(&folder)
        .arg(scenario)
        .stdin(Stdio::null())
        .output()
        .context("the receiver could not be started")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the receiver says: {}", words.lines().last().unwrap_or_default());
    Ok(())
}
