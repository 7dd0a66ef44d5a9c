//! `/tasks`: the commands that run in the background, their output, and the end of one.
//!
//! **Invariants**: a fold of facts. What a command wrote names no process: only a call that asked for the background, or one that ran
//! when its person pressed the key for it, does.

use std::{collections::BTreeMap, path::PathBuf, time::Instant};

use safepoint::{event::Fact, ids::CallId};
use serde_json::Value;

use super::{
    live::LiveWork,
    state::{Action, State, Tone},
};
use crate::render::{activity::elapsed, call::is_command, text::in_a_row};

/// What the shell tool says of a command that it began in the background, and of one that was moved there.
const BEGAN: (&str, &str) = ("started in the background with pid ", "; its output goes to ");
const MOVED: (&str, &str) = (
    "[the user moved it to the background: it continues with pid ",
    "; what it writes from here on goes to ",
);
/// Commands that are known: the oldest is forgotten.
const MOST: usize = 64;

/// The commands that went to the background.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// Calls of the shell that run: the command, and whether it may go there.
    running: BTreeMap<CallId, (String, bool)>,
    known: Vec<Task>,
    begun: usize,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// What the person calls it.
    pub(crate) number: usize,
    pub(crate) command: String,
    pub(crate) pid: i32,
    /// Where its output goes, if it goes anywhere.
    pub(crate) file: Option<PathBuf>,
    pub(crate) since: Instant,
    /// Whether its end was requested already.
    pub(crate) is_asked: bool,
}

/// What a person asks for. Exhaustive: the driver does each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TaskAsk {
    /// See which of these still run.
    List(Vec<Task>),
    /// Show its output.
    Show(Task),
    /// End it; a second time at once.
    End(Task),
}

impl Tasks {
    pub(super) fn fact(&mut self, fact: &Fact, now: Instant) {
        match fact {
            Fact::CallStarted { call_id, name, args, .. } if is_command(name) => {
                let command = args.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
                let is_asked = args.get("background").and_then(Value::as_bool).unwrap_or(false);
                self.running.insert(call_id.clone(), (command, is_asked));
            }
            Fact::CallEnded { report, result, .. } => {
                let Some((command, true)) = self.running.remove(&report.call_id) else { return };
                if let Some((pid, file)) = place(&result.text) {
                    self.begun += 1;
                    let number = self.begun;
                    self.known.push(Task { number, command, pid, file, since: now, is_asked: false });
                    let over = self.known.len().saturating_sub(MOST);
                    self.known.drain(..over);
                }
            }
            _ => {}
        }
    }

    /// The person moved what runs to the background.
    pub(super) fn moved(&mut self) {
        self.running.values_mut().for_each(|(_, may_go)| *may_go = true);
    }
}

/// The process of a command in the background, and where its output goes.
fn place(result: &str) -> Option<(i32, Option<PathBuf>)> {
    let last = result.lines().next_back()?;
    let read = |line: &str, (begins, goes): (&str, &str), end: &str| {
        let rest = line.strip_prefix(begins)?.strip_suffix(end)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (pid, rest) = rest.split_at(digits);
        Some((pid.parse().ok()?, rest.strip_prefix(goes).map(PathBuf::from)))
    };
    read(result, BEGAN, "").or_else(|| read(last, MOVED, "]"))
}

impl State {
    /// `/tasks`, `/tasks N` and `/tasks end N`.
    pub(super) fn tasks_command(&mut self, rest: &str) {
        let tasks = &mut self.live.tasks;
        let (ends, named) = rest.strip_prefix("end").map_or((false, rest), |named| (true, named.trim()));
        if named.is_empty() {
            let known = tasks.known.clone();
            return self.actions.push(Action::Tasks(TaskAsk::List(known)));
        }
        let number = named.parse().ok();
        let Some(task) = tasks.known.iter_mut().find(|task| Some(task.number) == number) else {
            return self.tell(Tone::Bad, &format!("{named} is no number of /tasks"));
        };
        let ask = if ends { TaskAsk::End(task.clone()) } else { TaskAsk::Show(task.clone()) };
        task.is_asked |= ends;
        self.actions.push(Action::Tasks(ask));
    }

    /// Those that still run.
    pub(crate) fn tell_tasks(&mut self, alive: &[Task], now: Instant) {
        if alive.is_empty() {
            let none = "no command runs in the background; Ctrl-B moves one there that runs";
            return self.tell(Tone::Plain, none);
        }
        for Task { number, command, pid, file, since, .. } in alive {
            let row = format!("{number:>3}  {}  pid {pid}  {}", elapsed(*since, now), in_a_row(command));
            self.tell(Tone::Plain, &row);
            let file = file.as_ref().map(|file| format!("     {}", file.display()));
            file.iter().for_each(|file| self.tell(Tone::Aside, file));
        }
        self.tell(Tone::Aside, "/tasks N shows the output of one, /tasks end N ends it");
    }

    /// Ctrl-B was pressed.
    pub(super) fn tasks_moved(&mut self) {
        self.live.tasks.moved();
    }
}

impl LiveWork {
    pub(super) fn task_fact(&mut self, fact: &Fact, now: Instant) {
        self.tasks.fact(fact, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_command_is_read_where_the_tool_says_it() {
        let file = || Some(PathBuf::from("/tmp/a b"));
        assert_eq!(
            place("started in the background with pid 17; its output goes to /tmp/a b"),
            Some((17, file()))
        );
        let moved = "one\n[the user moved it to the background: it continues with pid 18; what it writes from here on goes to /tmp/a b]";
        assert_eq!(place(moved), Some((18, file())));
        let none =
            "[the user moved it to the background: it continues with pid 19; no file could be made for what]";
        assert_eq!(place(none), Some((19, None)));
        for other in ["", "x\nstarted in the background with pid 1; its output goes to /a", "exit 0"] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
