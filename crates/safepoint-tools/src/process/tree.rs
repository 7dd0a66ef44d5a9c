//! Which processes there are, who descends from whom, and how to signal exactly the one that was seen.
//!
//! A process is a pid *and* its start time; a signal goes through a pidfd that was checked against both, so that a pid
//! that was given away in the meantime is never hit.

use std::{collections::HashMap, fs};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{environment::COMMAND_MARK, report::TreeMember};

/// What the kernel says of a process.
#[derive(Clone, Debug)]
pub(crate) struct Stat {
    pub(crate) member: TreeMember,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    state: char,
    threads: u32,
}

impl Stat {
    /// Whether it is suspended (SIGSTOP).
    pub(crate) fn is_suspended(&self) -> bool {
        self.state == 'T'
    }

    /// Whether it still runs: not a zombie, nor about to be one. The state is its first thread's: where that has ended
    /// and others run, it looks like a zombie, but is none.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x') || self.threads > 1
    }
}

/// What the kernel says of this process, if it is there.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    // A name need not be text: the kernel cuts it within a character, and its process must not be overlooked for that.
    parse(pid, &String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// The name may hold anything, blanks and brackets too; it ends at the last bracket.
fn parse(pid: i32, line: &str) -> Option<Stat> {
    const THREADS_AFTER_GROUP: usize = 14;
    const START_AFTER_THREADS: usize = 1;
    let (before, after) = line.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let threads = fields.nth(THREADS_AFTER_GROUP)?.parse().ok()?;
    let start = fields.nth(START_AFTER_THREADS)?.parse().ok()?;
    Some(Stat { member: TreeMember { pid, start, name: name.to_owned() }, parent, group, state, threads })
}

/// Every process.
pub(crate) fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(stat)
        .collect()
}

/// Everything alive below `root`, without it.
///
/// A process that forks while it is looked for may be missed: who must have all of them looks again until none is left.
pub(crate) fn descendants(root: i32) -> Vec<TreeMember> {
    let mut found = Vec::new();
    let mut table = None;
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children(pid, &mut table) {
            open.push(child.member.pid);
            if child.is_alive() {
                found.push(child.member);
            }
        }
    }
    found
}

/// Everything alive whose parent is `pid`.
pub(crate) fn children_of(pid: i32) -> Vec<TreeMember> {
    children(pid, &mut None).into_iter().filter(Stat::is_alive).map(|child| child.member).collect()
}

/// Where the kernel keeps lists of children they are read; else they come from one table of all processes.
fn children(pid: i32, table: &mut Option<HashMap<i32, Vec<Stat>>>) -> Vec<Stat> {
    if table.is_none()
        && let Some(pids) = listed(pid)
    {
        return pids.into_iter().filter_map(stat).collect();
    }
    table.get_or_insert_with(by_parent).get(&pid).cloned().unwrap_or_default()
}

fn by_parent() -> HashMap<i32, Vec<Stat>> {
    let mut table: HashMap<i32, Vec<Stat>> = HashMap::new();
    for stat in all() {
        table.entry(stat.parent).or_default().push(stat);
    }
    table
}

/// None if this kernel has no such lists; nothing if the process is gone.
fn listed(pid: i32) -> Option<Vec<i32>> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Some(Vec::new()) };
    let mut pids = Vec::new();
    for thread in threads.filter_map(Result::ok) {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => pids.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && thread.path().exists() => {
                return None;
            }
            Err(_) => {} // the thread ended while we looked
        }
    }
    Some(pids)
}

/// Everything alive that fits. What is looked at beside a process's row is looked at when all rows are read.
pub(crate) fn alive(fits: impl Fn(&Stat) -> bool) -> Vec<TreeMember> {
    all().into_iter().filter(|stat| stat.is_alive() && fits(stat)).map(|stat| stat.member).collect()
}

/// Everything alive whose environment holds `variable=value`.
pub(crate) fn marked(variable: &str, value: &str) -> Vec<TreeMember> {
    let mark = format!("{variable}={value}");
    alive(|stat| carries(stat.member.pid, mark.as_bytes()))
}

/// Everything alive that is in the process group of `leader`, or carries this mark of a command.
pub(crate) fn in_group(leader: i32, mark: &str) -> Vec<TreeMember> {
    let mark = format!("{COMMAND_MARK}={mark}");
    alive(|stat| stat.group == leader || carries(stat.member.pid, mark.as_bytes()))
}

/// Whether exactly this process is alive.
pub(crate) fn is_there(member: &TreeMember) -> bool {
    stat(member.pid).is_some_and(|stat| stat.is_alive() && stat.member.start == member.start)
}

/// Whether the environment that a process was started with holds this entry.
pub(crate) fn carries(pid: i32, entry: &[u8]) -> bool {
    environment(pid).split(|byte| *byte == 0).any(|found| found == entry)
}

/// Nothing if it cannot be read. Where the first thread has ended, the others still have it.
fn environment(pid: i32) -> Vec<u8> {
    let first = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    if !first.is_empty() {
        return first;
    }
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    threads
        .filter_map(|thread| fs::read(thread.ok()?.path().join("environ")).ok())
        .find(|environment| !environment.is_empty())
        .unwrap_or_default()
}

/// Signals exactly this process; false if it is gone, or not ours to signal.
pub(crate) fn signal(member: &TreeMember, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(member.pid) else { return false };
    // The pidfd pins the process that has the pid now; the start time says whether that is still the one that was seen.
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => is_same(member) && pidfd_send_signal(&fd, signal).is_ok(),
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM | rustix::io::Errno::MFILE) => {
            is_same(member) && rustix::process::kill_process(pid, signal).is_ok()
        }
        Err(_) => false,
    }
}

/// Sends SIGKILL to each of these.
pub(crate) fn kill<'m>(members: impl IntoIterator<Item = &'m TreeMember>) {
    for member in members {
        signal(member, Signal::KILL);
    }
}

/// Continues exactly this process if it is suspended; true if so.
pub(crate) fn wake(member: &TreeMember) -> bool {
    stat(member.pid).is_some_and(|stat| stat.is_suspended()) && signal(member, Signal::CONT)
}

fn is_same(member: &TreeMember) -> bool {
    stat(member.pid).is_some_and(|stat| stat.member.start == member.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_is_read_whole() {
        let line = "7 (a) b (c)) S 3 5 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let stat = parse(7, line).expect("it is a line");
        assert_eq!((stat.member.name.as_str(), stat.parent, stat.group), ("a) b (c)", 3, 5));
        assert_eq!((stat.threads, stat.member.start), (1, 4242));
    }

    #[test]
    fn a_process_without_its_first_thread_is_alive_and_a_zombie_is_not() {
        let line = |threads| format!("7 (a) Z 3 5 5 0 -1 4 1 0 0 0 0 0 0 0 20 0 {threads} 0 42 0 0");
        assert!(parse(7, &line(2)).is_some_and(|stat| stat.is_alive()));
        assert!(parse(7, &line(1)).is_some_and(|stat| !stat.is_alive()));
    }

    #[test]
    fn this_very_process_is_found() {
        let own = i32::try_from(std::process::id()).expect("a pid is small");
        let stat = stat(own).expect("we are here");
        assert!(stat.is_alive() && is_same(&stat.member));
        assert!(
            !is_same(&TreeMember { start: stat.member.start + 1, ..stat.member }),
            "another start, another process"
        );
    }
}
