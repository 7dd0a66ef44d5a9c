//! What is known of a command after its end: how it ended, what was done to it, and what of it may be alive.

use std::{fmt, time::SystemTime};

use serde::{Deserialize, Serialize};

/// How a command's tree is held together.
///
/// Exhaustive: each grade promises something else, and a reader must know which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// A separate control group, below a subreaper: the kernel kills it as one.
    Cgroup,
    /// A subreaper: whatever leaves its parents comes back to the keeper, and is swept until nothing is left.
    Subreaper,
    /// A process group only, without a guard or under one that cannot read `/proc`: what leaves the group is looked
    /// for, but not surely found.
    ProcessGroup,
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup => "cgroup",
            Self::Subreaper => "subreaper",
            Self::ProcessGroup => "process group",
        })
    }
}

/// How the command itself ended. Exhaustive: it ended by itself, by a signal, or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Its end was not seen.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("end not seen"),
        }
    }
}

/// A step of the ladder. Exhaustive: there are three, and they only go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// SIGINT to the whole tree.
    Interrupt,
    /// SIGTERM to the whole tree.
    Terminate,
    /// SIGKILL to the whole tree.
    Kill,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Kill => "SIGKILL",
        })
    }
}

/// A rung that was climbed, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Climbed {
    /// The signal.
    pub rung: Rung,
    /// When the tree was sent it.
    pub at: SystemTime,
}

/// One process, distinct from a later one with the same number by its start time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TreeMember {
    /// Its process id.
    pub pid: i32,
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
    /// Its name, as the kernel has it.
    pub name: String,
}

impl fmt::Display for TreeMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// Why a command's tree was ended, without a stop.
///
/// Exhaustive: the ways in which a tree loses its hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// It was held all the time.
    #[default]
    Kept,
    /// The guard died; the keeper of this command killed its tree.
    GuardLost,
    /// The keeper of this command died; whatever carries the command's mark was looked for and killed.
    KeeperLost,
    /// The lease under which it ran ended; its keeper killed its tree.
    LeaseOver,
}

/// The account of one command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandReport {
    /// What is needed to find it again, also after a restart.
    pub record: ProcessRecord,
    /// What it was, for people.
    pub label: String,
    /// When it was started.
    pub started_at: SystemTime,
    /// When its whole tree was gone, or, with survivors or a background job, when this was written.
    pub ended_at: SystemTime,
    /// How the command itself ended.
    pub exit: Exit,
    /// The rungs that a stop climbed.
    pub rungs: Vec<Climbed>,
    /// What it had left running when it ended by itself, and what was killed for that.
    pub left_behind: Vec<TreeMember>,
    /// What it left running as a declared background job: alive, and still held.
    pub background: Vec<TreeMember>,
    /// What is still alive although it was sent SIGKILL.
    pub survivors: Vec<TreeMember>,
    /// How it was held.
    pub containment: Containment,
    /// Whether it was held to the end.
    pub hold: Hold,
}

impl CommandReport {
    /// The process id of the command.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.record.pid
    }
}

/// What a store keeps of a command, so that its survivors are found after a crash of runtime and guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// The run's mark: the value of `SAFEPOINT_RUN` in the environment of every process of it.
    pub run: String,
    /// The process id of the command.
    pub pid: i32,
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
}
