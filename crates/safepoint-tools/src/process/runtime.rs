//! Whose a control group, a guard or a keeper is: its runtime, distinct from a later process with the same number.

use std::{fmt, fs, path::Path};

use super::tree;

const PREFIX: &str = "safepoint-";

/// A runtime, as the names of its control groups and the arguments of its guard say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runtime {
    pid: i32,
    start: u64,
    /// The space that the process id counts in; 0 where it is not known.
    space: u64,
}

impl Runtime {
    /// This process.
    pub(super) fn here() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let start = tree::stat(pid).map_or(0, |stat| stat.member.start);
        Self { pid, start, space: space() }
    }

    /// One of which nothing is known, and nothing is ever said.
    pub(super) fn unknown() -> Self {
        Self { pid: 0, start: 0, space: 0 }
    }

    /// As it is written; none for any other text.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next();
        Some(Self { pid: next()?.parse().ok()?, start: next()?.parse().ok()?, space: next()?.parse().ok()? })
    }

    /// Whether it is provably dead: its number is visible from here, and no process or another process has it.
    pub(super) fn is_dead(&self) -> bool {
        let is_seen = self.pid > 0 && self.start > 0 && self.space > 0 && self.space == space();
        is_seen
            && !tree::stat(self.pid).is_some_and(|stat| stat.is_alive() && stat.member.start == self.start)
    }

    /// The name of the control group that a keeper makes.
    pub(super) fn group(&self, keeper: i32) -> String {
        format!("{PREFIX}{self}-{keeper}")
    }
}

/// Whose a control group of this name is, and of which keeper.
pub(super) fn of_group(name: &str) -> Option<(Runtime, i32)> {
    let (runtime, keeper) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    Some((Runtime::read(runtime)?, keeper.parse().ok()?))
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.pid, self.start, self.space)
    }
}

/// The space of process ids that this process is in.
fn space() -> u64 {
    let link = fs::read_link(Path::new("/proc/self/ns/pid")).unwrap_or_default();
    let link = link.to_string_lossy();
    link.trim_start_matches("pid:[").trim_end_matches(']').parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.14
    #[test]
    fn a_groups_name_says_whose_it_is() {
        let here = Runtime::here();
        assert_eq!(of_group(&here.group(77)), Some((here.clone(), 77)));
        assert!(!here.is_dead());
        assert!(Runtime { start: here.start + 1, ..here.clone() }.is_dead(), "the number was given away");
        assert!(!Runtime { space: here.space + 1, pid: i32::MAX, ..here }.is_dead(), "of another space");
        assert!(!Runtime::unknown().is_dead());
        for other in
            ["safepoint-7", "safepoint-1.2-3", "safepoint-1.2.3.4-5", "user.slice", "safepoint-1.2.3-x"]
        {
            assert_eq!(of_group(other), None, "{other}");
        }
    }
}
