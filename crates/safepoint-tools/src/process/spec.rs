//! What is to be run, and how it is to be stopped.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use safepoint_sandbox::Confinement;
use serde::{Deserialize, Serialize};

use super::environment::{COMMAND_MARK, CommandEnvironment, RUN_MARK};
use crate::limits;

/// What a command reads. Exhaustive: nothing, what it is given, or what is written while it runs.
#[derive(Clone, Debug, Default)]
pub enum Stdin {
    /// Nothing: the end of the file at once.
    #[default]
    Null,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// What is written into [`Process::take_stdin`](super::Process::take_stdin), until that is dropped.
    Pipe,
}

/// What becomes of what a command leaves behind. Exhaustive: it is killed or kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Background {
    /// It is killed, and reported.
    #[default]
    Kill,
    /// It is a declared background job: it runs on, guarded, until it is stopped or the runtime ends.
    Keep,
}

/// Whether a command gets a control group where one can be had. Exhaustive: it is tried, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlGroups {
    /// One is made if the machine allows it.
    #[default]
    Try,
    /// None is made: another program manages the groups of this machine.
    LeaveAlone,
}

/// Where a command writes: standard output and standard error together, in the order in which it writes, unless they
/// are distinct.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OutputTarget {
    /// To its [`Process`](super::Process), which keeps this many bytes of it.
    Capture {
        /// Bytes kept in memory: half of them the head, half the tail.
        budget: usize,
    },
    /// To the end of this file, made for its owner alone if it is not there. For background jobs: no reader is needed.
    File(PathBuf),
    /// Standard output into [`Process::take_stdout`](super::Process::take_stdout); standard error to its
    /// [`Process`](super::Process), which keeps this many bytes of it and no file. For commands that are talked to.
    Pipe {
        /// Bytes of standard error kept in memory: half of them the head, half the tail.
        errors: usize,
    },
}

impl Default for OutputTarget {
    fn default() -> Self {
        Self::Capture { budget: limits::OUTPUT_BYTES }
    }
}

/// How long each rung of a stop may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// From SIGINT to SIGTERM; zero = no SIGINT.
    pub interrupt: Duration,
    /// From SIGTERM to SIGKILL; zero = no SIGTERM.
    pub terminate: Duration,
    /// From SIGKILL to the naming of survivors.
    pub kill: Duration,
}

impl Default for Ladder {
    fn default() -> Self {
        Self { interrupt: limits::INTERRUPT, terminate: limits::TERMINATE, kill: limits::KILL }
    }
}

impl Ladder {
    /// The same ladder, shortened so that all of it takes no longer than `cap`. Zero = SIGKILL at once.
    ///
    /// A part of the cap is kept for SIGKILL to do its work; the two polite rungs share the rest as they did before.
    /// With no cap at all SIGKILL still has its own time: nothing is called gone before it is.
    #[must_use]
    pub fn within(self, cap: Duration) -> Self {
        if cap.is_zero() {
            return Self { interrupt: Duration::ZERO, terminate: Duration::ZERO, kill: self.kill };
        }
        let kill = self.kill.min(cap / limits::KILL_SHARE);
        let (interrupt, terminate) = (self.interrupt.min(limits::NEVER), self.terminate.min(limits::NEVER));
        let polite = interrupt + terminate;
        let room = cap - kill;
        if polite <= room {
            return Self { kill: self.kill.min(cap - polite), ..self };
        }
        let share = room.as_secs_f64() / polite.as_secs_f64();
        Self { interrupt: interrupt.mul_f64(share), terminate: terminate.mul_f64(share), kill }
    }
}

/// Where a command puts what it needs for a while.
const TEMPORARY: &str = "TMPDIR";
/// The program of the process that starts the command.
pub(super) const OWN_PROGRAM: &str = "/proc/self/exe";

/// An environment with the marks by which its processes are found.
pub(super) fn marked(
    mut env: Vec<(OsString, OsString)>,
    run: &str,
    command: &str,
) -> Vec<(OsString, OsString)> {
    env.retain(|(name, _)| name != RUN_MARK && name != COMMAND_MARK);
    env.extend([(RUN_MARK.into(), run.into()), (COMMAND_MARK.into(), command.into())]);
    env
}

/// A command to be run.
#[derive(Clone, Debug)]
#[must_use = "a setting returns the changed value"]
pub struct CommandSpec {
    /// The program: a path, or a name to be looked up in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs; none = where the runtime does.
    pub cwd: Option<PathBuf>,
    /// Which variables of the runtime's environment it is given; none = as its [`Processes`](super::Processes) say.
    pub environment: Option<CommandEnvironment>,
    /// Changes to what it is given, whatever the names are; none = the variable is taken out.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// What it reads.
    pub stdin: Stdin,
    /// Where it writes.
    pub output: OutputTarget,
    /// What it is, for people.
    pub label: String,
    /// What becomes of what it leaves behind.
    pub background: Background,
    /// How it is stopped.
    pub ladder: Ladder,
    /// Whether it gets a separate control group.
    pub control_groups: ControlGroups,
    /// How long what it left behind may run after its end before it is killed.
    pub left_behind: Duration,
    /// What it is confined to; none = it can do what its user can.
    pub confinement: Option<Confinement>,
}

impl CommandSpec {
    /// A program with nothing to read, its output captured.
    pub fn new(program: impl Into<OsString>) -> Self {
        let program = program.into();
        Self {
            label: program.to_string_lossy().into_owned(),
            program,
            args: Vec::new(),
            cwd: None,
            environment: None,
            env: Vec::new(),
            stdin: Stdin::default(),
            output: OutputTarget::default(),
            background: Background::default(),
            ladder: Ladder::default(),
            control_groups: ControlGroups::default(),
            left_behind: limits::LEFT_BEHIND,
            confinement: None,
        }
    }

    /// All of the environment that it is given, save its marks.
    pub(super) fn whole_environment(&self, usual: &CommandEnvironment) -> Vec<(OsString, OsString)> {
        let mut env = self.environment.as_ref().unwrap_or(usual).given();
        if let Some(confinement) = &self.confinement {
            env.retain(|(name, _)| name != TEMPORARY);
            env.push((TEMPORARY.into(), confinement.temporary().into()));
        }
        for (name, value) in &self.env {
            env.retain(|(other, _)| other != name);
            env.extend(value.clone().map(|value| (name.clone(), value)));
        }
        env
    }

    /// A line for the shell.
    pub fn shell(line: impl Into<OsString>) -> Self {
        let line = line.into();
        let label = line.to_string_lossy().into_owned();
        Self { label, ..Self::new("/bin/sh").args([OsString::from("-c"), line]) }
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets where it runs.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets which variables of the runtime's environment it is given.
    pub fn environment(mut self, environment: CommandEnvironment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Sets what it reads.
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Sets where it writes.
    pub fn output(mut self, output: OutputTarget) -> Self {
        self.output = output;
        self
    }

    /// Sets what becomes of what it leaves behind.
    pub fn background(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    /// Sets whether it gets a separate control group.
    pub fn control_groups(mut self, control_groups: ControlGroups) -> Self {
        self.control_groups = control_groups;
        self
    }

    /// Confines it, and all that it starts. It takes a guard: without one it is not started.
    pub fn confined(mut self, confinement: Confinement) -> Self {
        self.confinement = Some(confinement);
        self
    }

    /// What is executed: the command, or the program of its guard, which confines itself and then becomes the command.
    pub(super) fn executed(&self) -> (OsString, Vec<OsString>) {
        match &self.confinement {
            Some(confinement) => (OWN_PROGRAM.into(), confinement.command(&self.program, &self.args)),
            None => (self.program.clone(), self.args.clone()),
        }
    }

    /// Sets how it is stopped.
    pub fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LADDER: Ladder = Ladder {
        interrupt: Duration::from_secs(2),
        terminate: Duration::from_secs(2),
        kill: Duration::from_secs(1),
    };

    /// S1.1, S4.9
    #[test]
    fn a_cap_of_zero_leaves_only_sigkill() {
        let short = LADDER.within(Duration::ZERO);
        assert!(short.interrupt.is_zero() && short.terminate.is_zero());
    }

    /// S1.1: the cap bounds the whole ladder.
    #[test]
    fn a_cap_bounds_all_rungs_together() {
        for cap in [1, 10, 800, 2000, 4500, 5000, 60_000].map(Duration::from_millis) {
            let short = LADDER.within(cap);
            assert!(
                short.interrupt + short.terminate + short.kill <= cap + Duration::from_micros(1),
                "{cap:?}"
            );
            assert!(
                !short.interrupt.is_zero() && !short.terminate.is_zero() && !short.kill.is_zero(),
                "{cap:?}"
            );
        }
        assert_eq!(LADDER.within(Duration::from_secs(60)), LADDER);
        let never = Ladder { interrupt: Duration::MAX, terminate: Duration::MAX, ..LADDER };
        let short = never.within(Duration::from_secs(4));
        assert!(
            short.interrupt + short.terminate + short.kill
                <= Duration::from_secs(4) + Duration::from_micros(1)
        );
    }
}
