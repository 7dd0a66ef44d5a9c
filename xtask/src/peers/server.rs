//! `safepoint serve` as a process: a drain under load, and requests that Schemathesis, from PyPI, makes of its OpenAPI document.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::{Absent, Tally, facts::fresh, mcp::install, serving::Serving, target};

/// The version that the scenarios are known to fit.
const FUZZER: &str = "schemathesis==4.32.5";
const CLIENT: &str = include_str!("server.py");

/// Commands that run when the server ends.
const RUNS: usize = 20;

/// What is done, by its name in the client's program.
const SCENARIOS: [(&str, &str); 2] = [
    ("a SIGTERM under twenty runs loses nothing and repeats nothing", "drained"),
    ("no request of Schemathesis, of PyPI, is answered with a fault of the server", "fuzzed"),
];

/// Runs both, each with its own server.
pub(super) fn peers(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let cache = target().join("peers").join("server");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let installed = install::from_pypi(&cache, &[FUZZER]);
    for (what, scenario) in SCENARIOS {
        let title = format!("safepoint serve: {what}");
        match &installed {
            Err(Absent(reason)) => tally.skip(&title, reason),
            Ok(python) => tally.take(&title, || run(binary, (&cache, python), scenario)),
        }
    }
    Ok(())
}

fn run(binary: &Path, (cache, python): (&Path, &Path), scenario: &str) -> anyhow::Result<()> {
    let folder = cache.join(scenario);
    fresh(&folder)?;
    let client = folder.join("client.py");
    fs::write(&client, CLIENT)?;
    let script = folder.join("script.json");
    fs::write(&script, replies().to_string())?;
    let model = Serving::practice(Command::new(binary).arg("practice").arg("--script").arg(&script))?;
    let output = Command::new(python)
        .arg(&client)
        .arg(scenario)
        .args([binary.as_os_str(), model.base_url("chat").as_ref(), folder.as_os_str()])
        .stdin(Stdio::null())
        .output()
        .context("the client could not be started")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the client says: {}", words.lines().last().unwrap_or_default());
    Ok(())
}

/// A command for each run, which notes its beginning and its end; any other text is answered at once.
fn replies() -> Value {
    let of_run = |run: usize| {
        let command = format!("echo {run:02} >> begun; sleep 600; echo {run:02} >> ended");
        let call = json!({"name": "shell", "args": {"command": command}});
        json!({"when": {"user": format!("run {run:02}"), "results": 0}, "calls": [call]})
    };
    json!({"replies": (0..RUNS).map(of_run).collect::<Vec<_>>()})
}
