//! The client of OpenAI, from PyPI, against `safepoint serve`: what its users do, with the server killed in between. Each object is
//! checked with the types of Open Responses.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

use super::{Absent, Tally, Wanted, mcp::install, serving::Serving, target};

/// The versions that the scenarios are known to fit.
const CLIENTS: [&str; 2] = ["openai==3.54.0", "openresponses-types==2.4.0"];
const CLIENT: &str = include_str!("responses.py");

/// What is done, by its name in the client's program.
const SCENARIOS: [(&str, &str); 6] = [
    ("in the foreground, and the next one behind it", "foreground"),
    ("in the background, resumed behind every event, also after a kill", "resumed"),
    ("cancelled twice, and still cancelled after a kill", "cancelled"),
    ("a server that is killed cuts what it ran, and says so", "killed"),
    ("fifty creates with one key are one response", "keyed"),
    ("what is not supported is refused by its name", "refused"),
];

/// Runs every scenario, each with its own server.
pub(super) fn peers(binary: &Path, tally: &mut Tally, _wanted: &Wanted) -> anyhow::Result<()> {
    let cache = target().join("peers").join("responses");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let installed = install::from_pypi(&cache, &CLIENTS);
    for (what, scenario) in SCENARIOS {
        let title = format!("openai of PyPI on our Responses: {what}");
        match &installed {
            Err(Absent(reason)) => tally.skip(&title, reason),
            Ok(python) => tally.take(&title, || run(binary, &cache, (python, scenario))),
        }
    }
    Ok(())
}

fn run(binary: &Path, cache: &Path, (python, scenario): (&Path, &str)) -> anyhow::Result<()> {
    let folder = cache.join(scenario);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    let (script, client) = (folder.join("script.json"), folder.join("client.py"));
    let reply = r#"{"text":"a long text in several pieces, with ünïcödé and more of it","chunk_chars":5,"delay_ms":100}"#;
    fs::write(&script, format!("{{\"replies\":[{}]}}", [reply; 8].join(",")))?;
    fs::write(&client, CLIENT)?;
    let model = Serving::practice(Command::new(binary).arg("practice").arg("--script").arg(&script))?;
    let output = Command::new(python)
        .arg(&client)
        .args([binary.as_os_str(), model.base_url("chat").as_ref(), folder.as_os_str(), scenario.as_ref()])
        .stdin(Stdio::null())
        .output()
        .context("the client could not be started")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the client says: {}", words.lines().last().unwrap_or_default());
    Ok(())
}
