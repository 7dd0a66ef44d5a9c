//! Finding and ending what a dead runtime has left in control groups of its making, and its guard and keepers, where a
//! command has suspended them (S4.14).

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use rustix::process::Signal;

use super::{
    cgroups, guard,
    report::TreeMember,
    runtime::{self, Runtime},
    survivors::{Reaped, own_line, reaped},
    tree,
};
use crate::limits;

/// Kills whatever is alive in a control group that a dead runtime of this machine made for a command, whatever marks it
/// carries. Guards and keepers of dead runtimes that were suspended continue, and end their trees; those that do not are
/// killed last. What belongs to a runtime that is alive is never touched.
///
/// Blocks until they are gone, at most for the time that SIGKILL has. For the start of a program, before it resumes.
#[must_use = "survivors must be reported"]
pub fn reap_abandoned() -> Reaped {
    let spared = own_line();
    let deadline = Instant::now() + limits::KILL;
    let mut killed: HashSet<TreeMember> = HashSet::new();
    let mut pause = limits::SWEEP;
    loop {
        let (left, holders) = find(&spared);
        let is_late = Instant::now() >= deadline;
        for group in left.iter().map(|left| &left.group).collect::<HashSet<_>>() {
            end(group, &left, &spared);
        }
        for holder in &holders {
            tree::signal(holder, if is_late { Signal::KILL } else { Signal::CONT });
        }
        let is_clear = left.is_empty() && holders.is_empty();
        if is_clear || is_late {
            return reaped(killed, left.into_iter().map(|left| left.member).collect());
        }
        killed.extend(left.into_iter().map(|left| left.member));
        thread::sleep(pause);
        pause = (pause * 2).min(limits::SWEEP_SLOW);
    }
}

/// A process that was left, and the group in which it was.
struct LeftTree {
    member: TreeMember,
    group: PathBuf,
}

/// What is in groups of dead runtimes, and their guards and keepers.
fn find(spared: &HashSet<i32>) -> (Vec<LeftTree>, Vec<TreeMember>) {
    let (mut left, mut holders) = (Vec::new(), Vec::new());
    for member in tree::alive(|stat| !spared.contains(&stat.member.pid)) {
        if let Some(group) = cgroups::of(member.pid).as_deref().and_then(abandoned) {
            left.push(LeftTree { member, group });
        } else if is_abandoned_holder(member.pid) {
            holders.push(member);
        }
    }
    (left, holders)
}

/// The part of a group's path that a dead runtime made.
fn abandoned(group: &Path) -> Option<PathBuf> {
    let is_abandoned = |part: &Path| {
        let name = part.file_name().and_then(OsStr::to_str);
        name.and_then(runtime::of_group).is_some_and(|(runtime, _)| runtime.is_dead())
    };
    group.ancestors().find(|part| is_abandoned(part)).map(Path::to_owned)
}

fn is_abandoned_holder(pid: i32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0).map(OsStr::from_bytes).skip(1);
    let is_holder = words.next().is_some_and(|word| word == guard::ARGUMENT);
    let runtime = words.next().and_then(OsStr::to_str).and_then(Runtime::read);
    is_holder && runtime.is_some_and(|runtime| runtime.is_dead())
}

/// Kills what is in the group. If this process is in there too, it is not killed as one.
fn end(group: &Path, left: &[LeftTree], spared: &HashSet<i32>) {
    let is_ours = |pid: &i32| cgroups::of(*pid).is_some_and(|own| own.starts_with(group));
    let place = cgroups::mounted(group).ok().filter(|_| !spared.iter().any(is_ours));
    if let Some(place) = &place {
        cgroups::kill(place);
    }
    for left in left.iter().filter(|left| left.group == group) {
        tree::signal(&left.member, Signal::KILL);
    }
}
