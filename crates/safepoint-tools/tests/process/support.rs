//! What the process tests share: a guard, conditions with deadlines, and a look at the process table.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use safepoint_testkit::wait;
use safepoint_tools::process::{CommandSpec, ControlGroups, Ladder, Process, Processes, RUN_MARK};

/// How long anything may take on a busy machine before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// A cap that no ladder reaches.
pub(crate) const NO_CAP: Duration = Duration::from_secs(600);

pub(crate) fn guard_program() -> &'static str {
    env!("CARGO_BIN_EXE_safepoint-guard")
}

pub(crate) fn guarded(run: &str) -> Processes {
    Processes::guarded_by(unique(run), guard_program())
}

/// The line under each grade that a guard has here: a machine may have no control groups to give.
pub(crate) fn each_grade(line: &str) -> [CommandSpec; 2] {
    [ControlGroups::Try, ControlGroups::LeaveAlone]
        .map(|groups| CommandSpec::shell(line).control_groups(groups))
}

/// A run mark that no other test, and no other run of the tests, has.
pub(crate) fn unique(run: &str) -> String {
    format!("{run}-{}-{}", std::process::id(), uuid::Uuid::new_v4().simple())
}

pub(crate) fn ladder(interrupt: u64, terminate: u64) -> Ladder {
    Ladder {
        interrupt: Duration::from_millis(interrupt),
        terminate: Duration::from_millis(terminate),
        kill: Duration::from_secs(5),
    }
}

/// Starts a line of shell and waits until it has written `ready`.
pub(crate) async fn started(processes: &Processes, spec: CommandSpec) -> Process {
    let mut process = processes.spawn(spec).await.expect("the command starts");
    until_output(&mut process, "ready").await;
    process
}

/// Drives the command until its output holds `text`.
pub(crate) async fn until_output(process: &mut Process, text: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !process.output().text().contains(text) {
        assert!(Instant::now() < deadline, "no {text:?} in {:?}", process.output().text());
        // Ends by its time limit each round; waiting loses nothing.
        if let Ok(report) = tokio::time::timeout(Duration::from_millis(5), process.wait()).await {
            panic!("it ended before it wrote {text:?}: {report:?}, {:?}", process.output().text());
        }
    }
}

/// Polls a condition of the real world.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    wait::until(what, &mut holds);
    start.elapsed()
}

/// Alive processes that carry the mark of a run.
pub(crate) fn alive_of(run: &str) -> Vec<i32> {
    let mark = format!("{RUN_MARK}={run}");
    pids().into_iter().filter(|pid| carries(*pid, &mark) && is_alive(*pid)).collect()
}

pub(crate) fn is_alive(pid: i32) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

pub(crate) fn is_zombie(pid: i32) -> bool {
    state(pid) == Some('Z')
}

/// How many threads it has; none if it is gone.
pub(crate) fn threads(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// Whether it was suspended (SIGSTOP).
pub(crate) fn is_suspended(pid: i32) -> bool {
    state(pid) == Some('T')
}

/// Whether it is in the process table at all.
pub(crate) fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

pub(crate) fn parent(pid: i32) -> Option<i32> {
    fields(pid)?.get(1)?.parse().ok()
}

pub(crate) fn children(pid: i32) -> Vec<i32> {
    pids().into_iter().filter(|child| parent(*child) == Some(pid)).collect()
}

/// The pid that the command wrote after `name=`.
pub(crate) fn written_pid(process: &Process, name: &str) -> i32 {
    let text = process.output().text();
    let from =
        text.find(&format!("{name}=")).unwrap_or_else(|| panic!("no {name} in {text:?}")) + name.len() + 1;
    text[from..].split(|c: char| !c.is_ascii_digit()).next().and_then(|pid| pid.parse().ok()).expect("a pid")
}

/// Where control groups for commands are made on this machine, if anywhere.
pub(crate) fn own_control_group() -> Option<std::path::PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?.split(' ').nth(1)?;
    Some(Path::new(mount).join(own))
}

pub(crate) fn kill(pid: i32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid is positive");
    rustix::process::kill_process(pid, signal).expect("it can be signalled");
}

fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("there is /proc");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn carries(pid: i32, mark: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|env| env.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
}

pub(crate) fn state(pid: i32) -> Option<char> {
    fields(pid)?.first()?.chars().next()
}

fn fields(pid: i32) -> Option<Vec<String>> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?; // a name may be no text
    let stat = String::from_utf8_lossy(&stat);
    let (_, after) = stat.rsplit_once(')')?;
    Some(after.split_ascii_whitespace().map(str::to_owned).collect())
}
