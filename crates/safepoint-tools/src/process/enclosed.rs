//! Whether this process belongs to a command of a run: what decides about a run must not be a command of that run.
//!
//! **Invariants**: a command cannot leave by unsetting its environment or by leaving its session: its guard and its keeper
//! adopt whatever it orphans. What it could still do with the rights of its user is said in SECURITY.md.

use std::{ffi::OsStr, fmt, fs};

use super::{environment::RUN_MARK, guard, runtime, tree};

/// What shows that this process belongs to a command of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Enclosure {
    /// It descends from a guard or a keeper of commands.
    Guard(i32),
    /// It, or a process that it descends from, carries the mark of a run.
    Marked(i32),
    /// It is in a control group of a command.
    ControlGroup(String),
}

impl fmt::Display for Enclosure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guard(pid) => write!(f, "it descends from process {pid}, which guards commands"),
            Self::Marked(pid) => write!(f, "process {pid} carries the mark of a run"),
            Self::ControlGroup(name) => write!(f, "it is in the control group {name}"),
        }
    }
}

/// The run whose command this process belongs to, by what shows it; none where nothing does.
#[must_use]
pub fn enclosing_run() -> Option<Enclosure> {
    let mut pid = rustix::process::getpid().as_raw_nonzero().get();
    let mut line = Vec::new();
    while pid > 0 && !line.contains(&pid) {
        line.push(pid);
        let Some(stat) = tree::stat(pid) else { break };
        if is_guard(pid, &stat.member.name) {
            return Some(Enclosure::Guard(pid));
        }
        if is_marked(pid) {
            return Some(Enclosure::Marked(pid));
        }
        pid = stat.parent;
    }
    control_group().map(Enclosure::ControlGroup)
}

/// Whether a process is this one, or one of the commands that its guards or its process groups hold.
pub(super) fn is_held_here(pid: i32) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let (mut at, mut is_held) = (pid, pid == own);
    while at > 1 && at != own {
        let Some(stat) = tree::stat(at) else { return false };
        is_held |= is_guard(at, &stat.member.name) || is_marked(at);
        at = stat.parent;
    }
    is_held && at == own
}

fn is_guard(pid: i32, name: &str) -> bool {
    let asked = |line: Vec<u8>| line.split(|byte| *byte == 0).nth(1) == Some(guard::ARGUMENT.as_bytes());
    name == guard::NAME || fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(asked)
}

fn is_marked(pid: i32) -> bool {
    let own = pid == rustix::process::getpid().as_raw_nonzero().get();
    let carries = |environ: Vec<u8>| {
        let is_mark =
            |one: &[u8]| one.strip_prefix(RUN_MARK.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
        environ.split(|byte| *byte == 0).any(is_mark)
    };
    own && std::env::var_os(OsStr::new(RUN_MARK)).is_some()
        || fs::read(format!("/proc/{pid}/environ")).is_ok_and(carries)
}

fn control_group() -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let is_ours = |part: &&str| runtime::of_group(part).is_some();
    let mut parts =
        groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).flat_map(|path| path.split('/'));
    parts.find(is_ours).map(str::to_owned)
}
