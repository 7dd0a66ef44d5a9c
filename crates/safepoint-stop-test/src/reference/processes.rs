//! What is below this process.

use std::{fs, thread, time::Duration};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

/// The pause between two looks at what is dying.
const PAUSE: Duration = Duration::from_millis(2);

/// Kills all that is below this process, until there is nothing.
pub(crate) fn end_all() {
    loop {
        let left = below();
        if left.is_empty() {
            return;
        }
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            if kill_process(pid, Signal::KILL).is_err() {
                // It has ended.
            }
        }
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        thread::sleep(PAUSE);
    }
}

/// The live processes below this one, by number.
pub(crate) fn below() -> Vec<i32> {
    let all: Vec<(i32, i32)> =
        fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| live(&entry)).collect();
    let mut below = vec![getpid().as_raw_nonzero().get()];
    let mut seen = 0;
    while let Some(&parent) = below.get(seen) {
        seen += 1;
        below.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
    }
    below.split_off(1)
}

/// A live process and its parent.
fn live(entry: &fs::DirEntry) -> Option<(i32, i32)> {
    let pid = entry.file_name().to_str()?.parse().ok()?;
    let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X" | "x");
    fields.next()?.parse().ok().filter(|_| !is_dead).map(|parent| (pid, parent))
}
