//! Other processes that tests need: this very test program, started again with a task.

use std::{
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::{pause, plot::Plot};

const TASK: &str = "SAFEPOINT_CRASH_TASK";
/// Precedes each word of a process: the test program prints lines, too.
const SAYS: &str = "says: ";

/// The input of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) store: PathBuf,
    pub(crate) ledger: PathBuf,
    pub(crate) url: String,
    pub(crate) job: Job,
    pub(crate) death: Option<Death>,
    /// By how many seconds its clocks are ahead: so much time has passed, for all that it knows.
    pub(crate) ahead: u64,
    /// By how many seconds the time of day was set ahead, and nothing else.
    pub(crate) set_ahead: u64,
    /// At which moment of its store it is paused, as by `SIGSTOP`, until the test continues it.
    pub(crate) pause: Option<usize>,
    pub(crate) plot: Plot,
}

impl Task {
    /// Work without a death, in this folder.
    pub(crate) fn new(folder: &Path, url: String) -> Self {
        let (store, ledger) = (folder.join("s.db"), folder.join("ledger"));
        Self {
            store,
            ledger,
            url,
            job: Job::Work,
            death: None,
            ahead: 0,
            set_ahead: 0,
            pause: None,
            plot: Plot::PLAIN,
        }
    }

    /// While this file is there, the payment waits.
    pub(crate) fn waits(&self) -> PathBuf {
        self.ledger.with_extension("wait")
    }
}

/// Exhaustive: what a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Works until nothing is left to do, and resumes what it finds.
    Work,
    /// Opens the session, says so, and holds it.
    Take,
    /// Opens the session, and does nothing but what was asked of it meanwhile.
    ApplyStops,
}

/// When it kills itself, counted from 0. Exhaustive: in the store, or in a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Death {
    Moment(usize),
    Effect(usize),
}

/// The task of this process, if it has one.
pub(crate) fn task() -> Option<Task> {
    serde_json::from_str(&env::var(TASK).ok()?).unwrap()
}

pub(crate) fn say(word: impl std::fmt::Display) {
    println!("{SAYS}{word}");
}

/// Holds on until it is killed.
pub(crate) fn stay() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// A process with a task. It is killed with this.
pub(crate) struct Process {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(task: &Task) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["work::work_role", "--exact", "--nocapture", "--test-threads", "1"])
            .env(TASK, serde_json::to_string(task).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// The next thing it says; `None` once it has ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.said.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some((_, word)) = line.trim_end().split_once(SAYS) {
                return Some(word.to_owned());
            }
        }
    }

    /// Everything that it says until its end.
    pub(crate) fn hear_all(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.hear()).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Pauses it at a moment when it writes nothing to this store.
    pub(crate) fn pause_between_writes(&self, store: &Path) {
        pause::between_writes(&self.child, store);
    }

    /// Waits until it is paused.
    pub(crate) fn until_paused(&self) {
        pause::until_paused(&self.child);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, and waits until it is gone: `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.kill().is_err() {
            // It has ended by itself.
        }
        self.child.wait().unwrap();
    }
}
