//! What must hold with an agent of others.

use std::{
    io::Read as _,
    process::{Child, Stdio},
};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{
    super::mcp::{is_alive, until},
    Bench,
    table::Reported,
};

pub(super) mod of_python;
pub(super) mod of_sample;

/// The row for the table, where the scenario is about a stop.
pub(super) type Scenario = fn(&Bench) -> anyhow::Result<Option<Reported>>;

/// Exit codes of a run.
const DONE: i32 = 0;
const INTERRUPTED: i32 = 130;

/// A run to its end: its last line.
fn run(bench: &Bench, args: &[&str]) -> anyhow::Result<Value> {
    let output = bench.ours(args).stdin(Stdio::null()).output()?;
    ensure!(output.status.code() == Some(DONE), "{}", String::from_utf8_lossy(&output.stdout));
    outcome(&output.stdout)
}

fn start(bench: &Bench, args: &[&str]) -> anyhow::Result<Child> {
    let mut ours = bench.ours(args);
    ours.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    ours.spawn().context("our binary could not be started")
}

/// Stops a run now, as Ctrl-C does: what our receipt says of the agent. Nothing of it is left.
fn stopped(bench: &Bench, mut run: Child) -> anyhow::Result<String> {
    kill_process(Pid::from_child(&run), Signal::INT)?;
    let mut said = Vec::new();
    run.stdout.take().context("it was piped")?.read_to_end(&mut said)?;
    let code = run.wait()?.code();
    ensure!(code == Some(INTERRUPTED), "it ended with {code:?}");
    let outcome = outcome(&said)?;
    ensure!(outcome["status"] == "stopped" && outcome["receipt"]["quiet"].is_string(), "{outcome}");
    let call = &outcome["receipt"]["calls"][0];
    let remote = &call["remote"];
    ensure!(remote["stop"] == "confirmed", "{remote}");
    until("nothing of it is left", || !is_alive(&bench.log().display().to_string()))?;
    let word = remote["word"].as_str().unwrap_or_default();
    let status = call["status"].as_str().unwrap_or_default().replace('_', " ");
    Ok(format!("{status}; confirmed: {word}; quiet"))
}

fn outcome(said: &[u8]) -> anyhow::Result<Value> {
    let text = String::from_utf8_lossy(said);
    let last = text.lines().last().context("nothing was said")?;
    let outcome: Value = serde_json::from_str(last)?;
    ensure!(outcome["type"] == "outcome", "{outcome}");
    Ok(outcome)
}
