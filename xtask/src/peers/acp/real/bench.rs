//! One agent with a separate home, model server and folder, our binary over it, and the facts around both.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{
    super::super::facts::{Model, Ticks, marked, until},
    agents::Agent,
    install::Program,
    scenarios::script,
};

/// What is said of a process of the agent's own.
const LIVES: &str = " lives";

/// One agent, ready to be run.
pub(super) struct Bench<'a> {
    binary: PathBuf,
    pub(super) folder: PathBuf,
    agent: &'a Agent,
    program: &'a Program,
    pub(super) model: Model,
    pub(super) ticks: Ticks,
    /// What every process of our run has in its environment.
    mark: String,
    _daemon: Option<Daemon>,
}

impl<'a> Bench<'a> {
    /// Sets it up in an empty folder.
    pub(super) fn set_up(
        binary: &Path,
        folder: &Path,
        agent: &'a Agent,
        program: &'a Program,
    ) -> anyhow::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        // Some agents let their commands write nowhere else.
        let work = folder.join("work");
        fs::create_dir_all(&work)?;
        let ticks = Ticks::in_file(work.join("ticks"));
        fs::write(work.join("tick.sh"), ticks.program())?;
        fs::write(work.join("deaf.sh"), format!("trap '' TERM INT HUP\n{}", ticks.program()))?;
        let model = Model::start(binary, folder, &script(&agent.shell, &work))?;
        let mut bench = Self {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            agent,
            program,
            model,
            ticks,
            mark: format!("scenario-{}-{now}", std::process::id()),
            _daemon: None,
        };
        for (path, text) in agent.files {
            let path = bench.home().join(path);
            fs::create_dir_all(path.parent().context("a file has a folder")?)?;
            fs::write(path, bench.filled(text))?;
        }
        if let Some(args) = agent.daemon {
            let mut command = Command::new(&program.words[0]);
            command.args(&program.words[1..]).args(args.split(' '));
            bench.equip(&mut command);
            bench._daemon =
                Some(Daemon::start(&mut command, format!("daemon-{}-{now}", std::process::id()))?);
        }
        Ok(bench)
    }

    /// Gives a command the agent's home and settings, and nothing of ours.
    fn equip(&self, command: &mut Command) {
        command.env_clear().env("PATH", &self.program.path).env("HOME", self.home());
        command.env(self.agent.key, "fake").current_dir(self.folder.join("work"));
        command.envs(self.agent.env.iter().map(|(name, value)| (name, self.filled(value))));
    }

    fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    fn wire(&self) -> PathBuf {
        self.folder.join("wire")
    }

    fn filled(&self, text: &str) -> String {
        let port = self.model.port().to_string();
        text.replace("{PORT}", &port).replace("{HOME}", &self.home().display().to_string())
    }

    /// Our binary with the agent as its backend, as a user would start it; what the agent writes is copied on its way.
    fn ours(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args).args(["--json", "--approve", "auto", "--backend-key-env", self.agent.key]);
        command.args(["--backend", &self.backend()]);
        command.args(["--backend-calls", &self.model.port().to_string()]);
        command.arg("--root").arg(self.folder.join("work"));
        self.equip(&mut command);
        command.env("PEER_MARK", &self.mark);
        command
    }

    /// What our binary knows the agent by.
    fn backend(&self) -> String {
        let words: String = self.program.words.iter().map(|word| format!("'{}' ", word.display())).collect();
        format!("acp:{words}{} | tee '{}'", self.agent.args, self.wire().display())
    }

    /// What our receipt says, in words that name nothing of this machine.
    pub(super) fn ours_of(&self, outcome: &Value) -> String {
        let receipt = &outcome["receipt"];
        let mut said = vec![outcome["status"].as_str().unwrap_or_default().to_owned()];
        for call in receipt["calls"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().replace('_', " ");
            said.push(format!("its work {}", text(&call["status"])));
            if let Some(stop) = call["remote"]["stop"].as_str() {
                said.push(format!("{stop}: {}", text(&call["remote"]["word"])));
            }
        }
        let error = outcome["error"]["message"].as_str();
        said.extend(error.map(|error| error.split(": [").next().unwrap_or_default().to_owned()));
        let is_unseen = receipt["calls"][0]["remote"]["outside"] == "unseen";
        said.push(match (receipt["quiet"].is_string(), is_unseen) {
            (true, true) => "quiet, as far as its own processes go".to_owned(),
            (true, false) => "quiet".to_owned(),
            (false, _) => "not quiet".to_owned(),
        });
        said.join("; ").replace(&self.backend(), "the agent")
    }

    /// Starts it.
    pub(super) fn start(&self, args: &[&str]) -> anyhow::Result<Run<'_>> {
        let out = self.folder.join("out.jsonl");
        let mut ours = self.ours(args);
        ours.stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(out.with_extension("err"))?);
        Ok(Run { bench: self, child: ours.spawn().context("our binary could not be started")?, out })
    }

    /// The same with a session that is kept.
    pub(super) fn start_kept(&self, args: &[&str]) -> anyhow::Result<Run<'_>> {
        let store = self.folder.join("store.db").display().to_string();
        self.start(&[args, &["--store", &store]].concat())
    }

    /// Whether a daemon that is not ours may do the agent's work.
    pub(super) fn has_daemon(&self) -> bool {
        self.agent.daemon.is_some()
    }

    /// How many lines the agent has written to its wire.
    pub(super) fn wire_lines(&self) -> usize {
        fs::read_to_string(self.wire()).unwrap_or_default().lines().count()
    }

    /// How the agent's turn ended, by what it wrote after `after` lines of its wire.
    pub(super) fn word(&self, after: usize) -> Option<String> {
        let text = fs::read_to_string(self.wire()).unwrap_or_default();
        let messages = text.lines().skip(after).filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut words = messages.filter_map(|message| {
            let is_refusal = message["error"].is_object() && message["method"].is_null();
            let word = message["result"]["stopReason"].as_str().map(|word| format!("`{word}`"));
            word.or(is_refusal.then(|| "that its request was an error".to_owned()))
        });
        words.next()
    }

    /// What of the agent is alive.
    pub(super) fn alive(&self) -> Vec<String> {
        marked(&self.mark, &self.binary)
    }

    /// The work that continues: its processes as they are now, its command, the model's answer to it.
    pub(super) fn running(&self) -> Vec<String> {
        let mut running: Vec<String> =
            self.alive().into_iter().map(|process| format!("{process}{LIVES}")).collect();
        if self.ticks.continues() {
            running.push("its command ticks".into());
        }
        if self.model.open() > 0 {
            running.push("it takes the model's answer".into());
        }
        running
    }

    /// The continuing work that this receipt covers: a receipt may cover the agent's own processes alone.
    pub(super) fn running_beside(&self, outcome: &Value) -> Vec<String> {
        let mut running = self.running();
        if self.has_daemon() && outcome["receipt"]["calls"][0]["remote"]["outside"] == "unseen" {
            running.retain(|what| what.ends_with(LIVES));
        }
        running
    }

    /// Waits until nothing of the agent is alive.
    pub(super) fn until_gone(&self) -> anyhow::Result<()> {
        until("nothing of the agent is left", || self.alive().is_empty())
    }
}

/// Nothing that a scenario started outlives it, whatever came of it.
impl Drop for Bench<'_> {
    fn drop(&mut self) {
        end(&self.alive());
    }
}

/// Our running binary; killed when dropped.
pub(super) struct Run<'b> {
    pub(super) bench: &'b Bench<'b>,
    child: Child,
    out: PathBuf,
}

impl Run<'_> {
    /// What it wrote so far.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// Waits until something is so, while it runs.
    pub(super) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        let mut is_over = false;
        until(what, || {
            is_over = matches!(self.child.try_wait(), Ok(Some(_)));
            is_over || holds(self)
        })?;
        ensure!(!is_over || holds(self), "it ended before this: {what}; {}{}", self.last(), self.errors());
        Ok(())
    }

    pub(super) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("it could not be signalled")
    }

    /// Whether it has returned.
    pub(super) fn has_returned(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Its last line, an outcome, once it has returned.
    pub(super) fn outcome(mut self) -> anyhow::Result<Value> {
        let what = "our binary returns";
        until(what, || self.has_returned()).with_context(|| format!("it hangs: {}", self.last()))?;
        let outcome: Value = serde_json::from_str(&self.last())
            .with_context(|| format!("it said {:?}{}", self.last(), self.errors()))?;
        ensure!(outcome["type"] == "outcome", "it has no outcome: {outcome}{}", self.errors());
        Ok(outcome)
    }

    fn last(&self) -> String {
        self.said().lines().last().unwrap_or_default().to_owned()
    }

    fn errors(&self) -> String {
        fs::read_to_string(self.out.with_extension("err")).unwrap_or_default()
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            // It ended by itself.
        }
    }
}

/// A daemon of the agent's, outside of what we start; ended when dropped.
struct Daemon {
    mark: String,
}

impl Daemon {
    fn start(command: &mut Command, mark: String) -> anyhow::Result<Self> {
        let daemon = Self { mark };
        // On a busy machine it gives up before its daemon is up, and finds it the next time.
        let output = command.env("PEER_DAEMON", &daemon.mark).stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let output = command.output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "its daemon could not be started: {said}");
        }
        let is_there = || !marked(&daemon.mark, Path::new("")).is_empty();
        until("its daemon is there", is_there)?;
        Ok(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        end(&marked(&self.mark, Path::new("")));
    }
}

/// Ends these, by their numbers.
fn end(processes: &[String]) {
    for process in processes {
        let pid = process.rsplit_once("(pid ").and_then(|(_, pid)| pid.trim_end_matches(')').parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw)
            && kill_process(pid, Signal::KILL).is_err()
        {
            // It ended by itself.
        }
    }
}

/// How long after `from` something was; nothing where it was before.
pub(super) fn after(from: SystemTime, then: SystemTime) -> Duration {
    then.duration_since(from).unwrap_or_default()
}
