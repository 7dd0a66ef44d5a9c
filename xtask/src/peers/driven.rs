//! Our binary, driven as a script would: lines of JSON out, signals in, an exit code at the end.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::serving::Serving;

/// How long anything may take before a scenario is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// One `safepoint run --json`, ended when dropped.
pub(super) struct Driven {
    child: Child,
    lines: Receiver<String>,
    pub(super) seen: Vec<Value>,
}

impl Driven {
    /// Starts a run against the server with these further arguments.
    pub(super) fn start(binary: &Path, wire: &str, server: &Serving, args: &[&str]) -> anyhow::Result<Self> {
        let model = format!("{wire}:x");
        let mut child = Command::new(binary)
            .args(["run", "--json", "--model", &model, "--base-url", &server.base_url(wire)])
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("the binary could not be started")?;
        let stdout = BufReader::new(child.stdout.take().expect("it was piped above"));
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Ok(Self { child, lines, seen: Vec::new() })
    }

    /// Reads lines until one has this type.
    pub(super) fn until(&mut self, kind: &str) -> anyhow::Result<()> {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.with_context(|| format!("no `{kind}` came; last: {:?}", self.seen.last()))?;
            let line: Value = serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?;
            let is_it = line["type"] == kind;
            self.seen.push(line);
            if is_it {
                return Ok(());
            }
        }
    }

    pub(super) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("it could not be signalled")
    }

    /// Reads to the end: the exit code is this one, and each turn has one outcome, its last line. They are returned.
    pub(super) fn end(mut self, code: i32, turns: u64) -> anyhow::Result<Vec<Value>> {
        for line in self.lines.iter() {
            self.seen.push(serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?);
        }
        let status = self.child.wait().context("it could not be waited for")?;
        ensure!(status.code() == Some(code), "it ended with {status}, not {code}");
        let mut outcomes = Vec::new();
        for turn in 1..=turns {
            let of_turn: Vec<&Value> = self.seen.iter().filter(|line| line["turn"] == turn).collect();
            let count = of_turn.iter().filter(|line| line["type"] == "outcome").count();
            let last = of_turn.last().filter(|line| line["type"] == "outcome");
            let Some(last) = last.filter(|_| count == 1) else {
                bail!("turn {turn} has {count} outcomes, or one that is not its last line");
            };
            outcomes.push((*last).clone());
        }
        Ok(outcomes)
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            // It ended by itself.
        }
    }
}

/// Waits until the condition holds.
pub(super) fn wait_for(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    const LOOK: Duration = Duration::from_millis(10);
    let began = Instant::now();
    while !holds() {
        ensure!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(LOOK);
    }
    Ok(())
}
