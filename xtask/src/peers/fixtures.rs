//! The streams that a provider's own client is tested with, read by our binary: it must make of each what that client
//! makes of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};

use super::{
    Absent, Tally,
    mcp::install::{from_pypi, quietly},
    sdks::SDKS,
    serving::Serving,
    target,
};

/// The version whose streams are read; its client reads them too.
const CLIENT: &str = SDKS[1];
const SERVER: &str = include_str!("fixtures.py");
const NAME: &str = "the streams that anthropic of PyPI is tested with";
/// What other clients are tested with cannot be had by name.
const LEFT_OUT: (&str, &str) = (
    "the streams that openai of PyPI is tested with",
    "its source distribution leaves the recordings out; its client reads our streams above",
);

/// Reads each stream with both.
pub(super) fn peers(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let cache = target().join("peers").join("fixtures");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    match installed(&cache) {
        Err(Absent(reason)) => tally.skip(NAME, &reason),
        Ok((python, archive)) => {
            let (server, expected) = (cache.join("server.py"), cache.join("expected.json"));
            fs::write(&server, SERVER)?;
            let serving = Serving::start(Command::new(python).arg(server).arg(archive).arg(&expected))?;
            let expected: Map<String, Value> = serde_json::from_slice(&fs::read(expected)?)?;
            ensure!(!expected.is_empty(), "{NAME}: there are none");
            for (name, theirs) in &expected {
                let url = serving.at(&format!("{name}/v1"));
                tally.take(&format!("{NAME}: {name}"), || agree(binary, &cache, &url, theirs));
            }
        }
    }
    tally.skip(LEFT_OUT.0, LEFT_OUT.1);
    Ok(())
}

/// An interpreter that has the client, and the client's source distribution.
fn installed(cache: &Path) -> Result<(PathBuf, PathBuf), Absent> {
    let python = from_pypi(cache, &[CLIENT])?;
    let archive = cache.join(format!("{}.tar.gz", CLIENT.replace("==", "-")));
    if !archive.exists() {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        pip.args(["--no-binary", ":all:", "--dest"]).arg(cache).arg(CLIENT);
        quietly(&mut pip, &format!("pip download {CLIENT}"))?;
    }
    Ok((python, archive))
}

/// Has our binary read one, and compares.
fn agree(binary: &Path, cache: &Path, url: &str, theirs: &Value) -> anyhow::Result<()> {
    let file = cache.join("recording.jsonl");
    if file.exists() {
        fs::remove_file(&file)?;
    }
    let output = Command::new(binary)
        .args(["run", "--json", "--model", "anthropic:x", "--base-url", url, "--record"])
        .arg(&file)
        .arg("go")
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .context("the binary could not be started")?;
    let text = fs::read_to_string(&file)
        .with_context(|| format!("nothing was read: {}", String::from_utf8_lossy(&output.stderr)))?;
    let ours = read(&text)?;
    ensure!(ours["text"] == theirs["text"], "the text: {}, not {}", ours["text"], theirs["text"]);
    if theirs["failed"].is_string() {
        // Their client gives up where arguments are no JSON; ours leaves that to the call, which fails.
        return Ok(());
    }
    let (end, calls) = match theirs["end"].as_str() {
        Some("end_turn" | "tool_use") => ("natural", theirs["calls"].clone()),
        // What was cut is no call.
        Some("max_tokens") => ("length", json!([])),
        Some("refusal") => ("filtered", json!([])),
        other => anyhow::bail!("an end that is not known here: {other:?}"),
    };
    ensure!(ours["end"] == end, "the end: {}, not {}", ours["end"], theirs["end"]);
    ensure!(ours["calls"] == calls, "the calls: {}, not {calls}", ours["calls"]);
    let used = &ours["usage"];
    ensure!(
        (&used["input"], &used["output"]) == (&theirs["input"], &theirs["output"])
            && used["source"] == "exact",
        "the usage: {used}, not {theirs}"
    );
    Ok(())
}

/// What a recording says of the first reply.
fn read(recording: &str) -> anyhow::Result<Value> {
    let (mut text, mut calls, mut usage, mut end) = (String::new(), Vec::new(), Value::Null, Value::Null);
    for line in recording.lines().skip(1) {
        let line: Value = serde_json::from_str(line).context("the recording")?;
        if line.get("request").is_some() {
            break;
        }
        let delta = &line["delta"];
        text.push_str(delta["text"].as_str().unwrap_or_default());
        if let Some(call) = delta.get("call_ready") {
            let args = call["args"].as_str().unwrap_or_default();
            calls.push(json!([call["name"], serde_json::from_str::<Value>(args).unwrap_or(json!(args))]));
        }
        if let Some(named) = delta.get("usage") {
            usage = named.clone();
        }
        if let Some(named) = delta.get("ended") {
            end = named.clone();
        }
    }
    Ok(json!({"text": text, "calls": calls, "usage": usage, "end": end}))
}
