//! The processes of a trial: those whose command line or environment names its folder, wherever they have gone.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant as StdInstant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::asked::ON;

/// How often it is looked whether a process is there: well within what the judge takes for one moment.
const LOOK: Duration = Duration::from_millis(5);
/// How long what is left may take to die.
const DYING: Duration = Duration::from_secs(5);

/// A process that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenProcess {
    pid: i32,
    /// When it began, by the kernel: a later process with its number has another one.
    start: u64,
    parent: i32,
    line: String,
}

/// A process that is watched until it is gone.
pub(super) struct WatchedProcess {
    pid: i32,
    start: u64,
    name: String,
    task: Option<JoinHandle<Instant>>,
    ended: Option<Instant>,
}

impl WatchedProcess {
    pub(super) fn of(seen: SeenProcess) -> Self {
        let apart = if is_apart(&seen.line) { " in another session" } else { "" };
        let name = format!("command{apart}, {}", seen.pid);
        Self { pid: seen.pid, start: seen.start, name, task: Some(tokio::spawn(gone(seen))), ended: None }
    }

    /// Whether it is this one.
    pub(super) fn is(&self, seen: &SeenProcess) -> bool {
        self.pid == seen.pid && self.start == seen.start
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until it is gone.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn gone(&mut self) {
        if let Some(task) = &mut self.task {
            self.ended = task.await.ok();
            self.task = None;
        }
    }

    /// When it ended, if it has.
    pub(super) async fn ended(&mut self) -> Option<Instant> {
        if self.task.as_ref().is_some_and(JoinHandle::is_finished) {
            self.gone().await;
        }
        self.ended
    }
}

/// Whether this is the shell that has left its session, and not the one whose line only says so.
fn is_apart(line: &str) -> bool {
    line.contains("trap \"\" INT") && !line.contains("setsid ")
}

async fn gone(seen: SeenProcess) -> Instant {
    while start(seen.pid) == Some(seen.start) {
        sleep(LOOK).await;
    }
    Instant::now()
}

/// The live commands of a folder: the shells that wait for its file, and not what they start for a moment.
pub(super) fn of(folder: &Path) -> Vec<SeenProcess> {
    let mark = format!("[ -e {} ]", folder.join(ON).display());
    all()
        .filter_map(|pid| Some((pid, line(pid)?)))
        .filter(|(_, line)| is_a_command(line, &mark))
        .filter_map(seen)
        .filter(|seen| !is_a_fork(seen))
        .collect()
}

/// Whether this is what a shell has forked and is about to be something else: it still has its parent's line.
fn is_a_fork(seen: &SeenProcess) -> bool {
    line(seen.parent).is_some_and(|line| line == seen.line)
}

/// Whether this is a shell of a command itself, and neither what starts that shell nor one that holds it in an argument of its own.
fn is_a_command(line: &str, mark: &str) -> bool {
    line.contains(mark) && !line.starts_with("setsid ")
}

fn seen((pid, line): (i32, String)) -> Option<SeenProcess> {
    let stat = Stat::of(pid)?;
    Some(SeenProcess { pid, start: stat.start, parent: stat.parent, line })
}

/// Ends all that names this folder, and waits until it is dead; whether nothing of it is left.
pub(crate) fn end_all(folder: &Path) -> bool {
    let mark = folder.display().to_string();
    let ours = i32::try_from(std::process::id()).unwrap_or_default();
    let names = |pid: i32| {
        let told = line(pid).is_some_and(|line| line.contains(&mark));
        told || fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|all| String::from_utf8_lossy(&all).contains(&mark))
    };
    end(|| all().filter(|pid| *pid != ours && start(*pid).is_some() && names(*pid)).collect())
}

/// Ends all that is below this process, whatever it hides, and waits until it is dead; whether nothing of it is left.
pub(crate) fn end_below() -> bool {
    end(below)
}

/// Kills what there is until nothing is, for a while at most; whether nothing is left.
fn end(left: impl Fn() -> Vec<i32>) -> bool {
    let began = StdInstant::now();
    loop {
        let left = left();
        if left.is_empty() || began.elapsed() > DYING {
            return left.is_empty();
        }
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            if kill_process(pid, Signal::KILL).is_err() {
                // It is gone, or is another user's.
            }
        }
        thread::sleep(LOOK);
    }
}

/// The live processes below this one.
fn below() -> Vec<i32> {
    let all: Vec<(i32, i32)> = all().filter_map(|pid| Some((pid, Stat::of(pid)?.parent))).collect();
    let mut below = vec![i32::try_from(std::process::id()).unwrap_or_default()];
    let mut seen = 0;
    while let Some(&parent) = below.get(seen) {
        seen += 1;
        below.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
    }
    below.split_off(1)
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The command line of a process, its words separated by spaces.
fn line(pid: i32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&line).replace('\0', " "))
}

/// When a live process began.
fn start(pid: i32) -> Option<u64> {
    Stat::of(pid).map(|stat| stat.start)
}

/// What the kernel says of a live process.
struct Stat {
    parent: i32,
    /// When it began.
    start: u64,
}

impl Stat {
    /// None if it is gone, or only its parent has not noticed that yet.
    fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        if matches!(*fields.first()?, "Z" | "X" | "x") {
            return None;
        }
        Some(Self { parent: fields.get(1)?.parse().ok()?, start: fields.get(19)?.parse().ok()? })
    }
}
