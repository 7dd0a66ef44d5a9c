//! The providers' own clients, from PyPI, against our scripted server: they read its wires as it means them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

use super::{Absent, Tally, mcp::install, serving::Serving, target};

/// The versions that the scenarios are known to fit.
pub(super) const SDKS: [&str; 2] = ["openai==3.54.0", "anthropic==2.12.0"];
const CLIENT: &str = include_str!("sdks.py");

/// Each client, and the wire that it reads.
const CLIENTS: [(&str, &str); 3] =
    [("openai of PyPI", "chat"), ("openai of PyPI", "responses"), ("anthropic of PyPI", "messages")];

/// What is asked of each, with what our server says then.
const SCENARIOS: [(&str, &str, &str); 4] = [
    (
        "streamed text, its end and its usage",
        "text",
        r#"{"replies":[{"text":"a long text in several pieces, with ünïcödé","chunk_chars":5,"usage":[11,7]}]}"#,
    ),
    (
        "two calls with their arguments",
        "call",
        r#"{"replies":[{"text":"I look","calls":[{"name":"weather","args":{"city":"Lisbon","days":3}},{"name":"weather","args":{"city":"Lisbon","days":3}}]}]}"#,
    ),
    (
        "a stream that is cut is no whole one",
        "cut",
        r#"{"replies":[{"text":"a long text in several pieces, with ünïcödé","chunk_chars":5,"fault":{"close_after":4}}]}"#,
    ),
    (
        "a refusal is a separate kind of error",
        "refused",
        r#"{"replies":[{"fault":{"status":{"status":429}}}]}"#,
    ),
];

/// Runs every scenario with every client.
pub(super) fn peers(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let cache = target().join("peers").join("sdks");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let installed = install::from_pypi(&cache, &SDKS);
    for (client, wire) in CLIENTS {
        for (what, scenario, script) in SCENARIOS {
            let title = format!("{client} on {wire}: {what}");
            match &installed {
                Err(Absent(reason)) => tally.skip(&title, reason),
                Ok(python) => {
                    tally.take(&title, || {
                        run(&Setting { binary, cache: &cache, python }, (wire, scenario), script)
                    });
                }
            }
        }
    }
    Ok(())
}

struct Setting<'a> {
    binary: &'a Path,
    cache: &'a Path,
    python: &'a PathBuf,
}

fn run(setting: &Setting<'_>, (wire, scenario): (&str, &str), script: &str) -> anyhow::Result<()> {
    let file = setting.cache.join("script.json");
    fs::write(&file, script)?;
    let client = setting.cache.join("client.py");
    fs::write(&client, CLIENT)?;
    let serving = Serving::practice(Command::new(setting.binary).arg("practice").arg("--script").arg(&file))?;
    let output = Command::new(setting.python)
        .arg(&client)
        .args([wire, scenario, &serving.base_url(wire)])
        .stdin(Stdio::null())
        .output()
        .context("the client could not be started")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the client says: {}", words.lines().last().unwrap_or_default());
    Ok(())
}
