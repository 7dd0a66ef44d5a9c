//! Finding and ending what outlived its runtime and its guard: by pid, start time and mark (S4.9).

use std::{collections::HashSet, thread, time::Instant};

use rustix::process::Signal;

use super::{
    environment::RUN_MARK,
    report::{ProcessRecord, TreeMember},
    tree,
};
use crate::limits;

/// What was found of the runs in the records, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Found alive, and killed.
    pub killed: Vec<TreeMember>,
    /// Found alive, and still alive after SIGKILL had its time.
    pub survivors: Vec<TreeMember>,
}

/// Kills whatever is alive of the commands in `records`: the command itself, known by pid, start time and mark, and
/// every process that carries its run's mark and is no older than it.
///
/// Neither this process nor any of its ancestors is ever touched: a runtime may itself run inside a command of another.
/// Blocks until they are gone, at most for the time that SIGKILL has. For the start of a program, before it resumes.
#[must_use = "survivors must be reported"]
pub fn reap_survivors(records: &[ProcessRecord]) -> Reaped {
    let spared = own_line();
    let deadline = Instant::now() + limits::KILL;
    let mut killed: HashSet<TreeMember> = HashSet::new();
    let mut pause = limits::SWEEP;
    loop {
        let alive = find(records, &spared);
        if alive.is_empty() || Instant::now() >= deadline {
            return reaped(killed, alive);
        }
        for member in alive {
            tree::signal(&member, Signal::KILL);
            killed.insert(member);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(limits::SWEEP_SLOW);
    }
}

fn find(records: &[ProcessRecord], spared: &HashSet<i32>) -> Vec<TreeMember> {
    let is_left = |stat: &tree::Stat| records.iter().any(|record| is_of(&stat.member, record));
    tree::alive(|stat| !spared.contains(&stat.member.pid) && is_left(stat))
}

pub(super) fn reaped(mut killed: HashSet<TreeMember>, survivors: Vec<TreeMember>) -> Reaped {
    killed.retain(|member| !survivors.contains(member));
    let mut killed: Vec<_> = killed.into_iter().collect();
    killed.sort_by_key(|member| member.pid);
    Reaped { killed, survivors }
}

/// The start time keeps out a process of another machine run or another run of the machine with the same number.
fn is_of(member: &TreeMember, record: &ProcessRecord) -> bool {
    let mark = format!("{RUN_MARK}={}", record.run);
    let in_time =
        if member.pid == record.pid { member.start == record.start } else { member.start >= record.start };
    in_time && tree::carries(member.pid, mark.as_bytes())
}

/// This process and its ancestors.
pub(super) fn own_line() -> HashSet<i32> {
    let mut line = HashSet::new();
    let mut pid = rustix::process::getpid().as_raw_nonzero().get();
    while pid > 0 && line.insert(pid) {
        pid = tree::stat(pid).map_or(0, |stat| stat.parent);
    }
    line
}
