//! The commands that run in the background: which are alive, what they wrote, and the end of one.
//!
//! **Invariants**: only a process below the guard of this program's commands is signalled.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
    time::Instant,
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};

use super::driver::Driver;
use crate::render::chat::{
    state::Tone,
    tasks::{Task, TaskAsk},
};

/// The bytes of an output that are shown: its end.
const SHOWN: u64 = 1 << 20;

impl Driver {
    pub(super) fn tasks(&mut self, ask: TaskAsk) {
        match ask {
            TaskAsk::List(mut tasks) => {
                tasks.retain(|task| self.is_ours(task.pid));
                self.state.tell_tasks(&tasks, Instant::now());
            }
            TaskAsk::Show(Task { file: None, .. }) => {
                self.state.tell(Tone::Aside, "its output goes nowhere: no file could be made for it");
            }
            TaskAsk::Show(Task { file: Some(file), .. }) => match tail(&file) {
                Ok(text) if text.is_empty() => {
                    self.state.tell(Tone::Aside, "it has written nothing since it went to the background");
                }
                Ok(text) => self.page(text),
                Err(error) => self.state.tell(Tone::Bad, &format!("{error:#}")),
            },
            TaskAsk::End(task) => self.end_task(&task),
        }
    }

    fn end_task(&mut self, task: &Task) {
        let Some(pid) = Pid::from_raw(task.pid).filter(|_| self.is_ours(task.pid)) else {
            return self.state.tell(Tone::Plain, "it has ended already");
        };
        let (signal, said) = match task.is_asked {
            true => (Signal::KILL, "killed; what it had started elsewhere ends with the turn or the chat"),
            false => (Signal::TERM, "asked to end (SIGTERM); the same again kills it"),
        };
        // A command leads its group, as in a shell.
        let leads = getpgid(Some(pid)).is_ok_and(|group| group == pid);
        let sent = if leads { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
        match sent {
            Ok(()) => self.state.tell(Tone::Plain, said),
            Err(error) => self.state.tell(Tone::Bad, &format!("pid {} was not signalled: {error}", task.pid)),
        }
    }

    /// Whether this process lives, below the guard of our commands.
    fn is_ours(&self, pid: i32) -> bool {
        const DEEPEST: usize = 64;
        let Some(guard) = self.processes.guard_pid().and_then(|guard| i32::try_from(guard).ok()) else {
            return false;
        };
        let above = std::iter::successors(Some(pid), |pid| parent(*pid)).take(DEEPEST);
        pid != guard && above.skip(1).any(|above| above == guard)
    }
}

/// The parent of a process that lives.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is any text.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut rest = rest.split_whitespace();
    let is_alive = rest.next().is_some_and(|state| !matches!(state, "Z" | "X"));
    rest.next()?.parse().ok().filter(|_| is_alive)
}

/// The end of a file.
fn tail(path: &Path) -> anyhow::Result<String> {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(SHOWN)))?;
        let mut bytes = Vec::new();
        file.take(SHOWN).read_to_end(&mut bytes)?;
        std::io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().with_context(|| format!("{} cannot be read", path.display()))
}
