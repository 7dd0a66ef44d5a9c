//! What outlives a runtime and its guard, from the session's next start.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::wait::until;

use super::super::{BIN, Practice, safepoint};

/// The process and its descendants that run this program: the runtime, its guard, and who keeps each command.
fn ours(root: u32) -> Vec<Pid> {
    let mut family = vec![root];
    let mut place = 0;
    while let Some(parent) = family.get(place).copied() {
        place += 1;
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
            if rest.split(' ').nth(1) == Some(&parent.to_string()) && !family.contains(&pid) {
                family.push(pid);
            }
        }
    }
    let is_ours = |pid: &u32| {
        fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == fs::canonicalize(BIN).unwrap())
    };
    let pids = family.into_iter().filter(is_ours);
    pids.map(|pid| Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()).collect()
}

/// S4.9: the runtime, its guard and the keeper of a command are killed at once; the command that is left is found by its
/// mark when the session is opened again, and killed.
#[test]
fn what_outlived_its_runtime_and_guard_is_killed_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (pid_file, store) = (folder.path().join("pid"), folder.path().join("s.db"));
    // It leaves its control group, where it has one: then it is its mark alone that says whose it is, and the start of
    // another program does not find it first.
    let leave = "root=$(awk '/ - cgroup2 / {print $5; exit}' /proc/self/mountinfo); { echo $$ > $root/cgroup.procs; } 2> /dev/null";
    let command = format!("{leave}; sleep 300 & echo $! > {0}.new; mv {0}.new {0}; wait", pid_file.display());
    let script = serde_json::json!({"replies": [{"calls": [{"name": "shell", "args": {"command": command}}]},
        {"text": "done"}]});
    let practice = Practice::start(&script.to_string());
    let store = store.to_str().unwrap();
    let root = folder.path().to_str().unwrap();
    let args = [
        "--session",
        "s",
        "--store",
        store,
        "--model",
        "openai:m",
        "--base-url",
        &practice.url,
        "--tools",
        "shell",
        "--root",
        root,
        "--approve",
        "auto",
    ];
    let mut first = safepoint(&["run"]).args(args).arg("go").spawn().unwrap();
    until("the command begins", || pid_file.exists());
    let left: i32 = fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    let left = Pid::from_raw(left).unwrap();
    let ours = ours(first.id());
    assert!(ours.len() >= 3, "{ours:?}");
    for pid in &ours {
        kill_process(*pid, Signal::STOP).unwrap();
    }
    // The runtime last: where it is dead and its guard is not, any other program that starts wakes the guard, which then ends the
    // command.
    for pid in ours.iter().rev() {
        kill_process(*pid, Signal::KILL).unwrap();
    }
    first.wait().unwrap();
    assert!(!is_gone(left), "it outlived them");
    let next = safepoint(&["resume", "s"]).args(&args[2..]).output().unwrap();
    let said = String::from_utf8_lossy(&next.stderr).into_owned();
    assert!(said.contains("killed 1 process left by a killed run"), "{said}");
    until("it is gone", || is_gone(left));
}

/// Gone, or dead and not yet waited for.
fn is_gone(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.map_or(true, |stat| stat.contains(") Z"))
}

/// S4.15, S7.14: a stored run is suspended for longer than its lease: its command is dead though the run
/// still sleeps.
#[test]
fn the_command_of_a_suspended_run_is_dead_when_its_lease_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let command = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 300", pid_file.display());
    let script =
        serde_json::json!({"replies": [{"calls": [{"name": "shell", "args": {"command": command}}]}]});
    let practice = Practice::start(&script.to_string());
    let store = folder.path().join("s.db");
    let mut run = safepoint(&["run", "go", "--session", "leased", "--tools", "shell", "--approve", "auto"]);
    run.args(["--model", "openai:m", "--base-url", &practice.url, "--store", store.to_str().unwrap()]);
    let mut run = run.args(["--root", folder.path().to_str().unwrap()]).spawn().unwrap();
    until("the command begins", || pid_file.exists());
    let command = Pid::from_raw(fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap()).unwrap();
    kill_process(Pid::from_child(&run), Signal::STOP).unwrap();
    // A lease of the command line is over long before the wait is.
    until("it is dead: its lease is over", || is_gone(command));
    let stat = fs::read_to_string(format!("/proc/{}/stat", run.id())).unwrap();
    assert!(stat.contains(") T"), "nobody woke the run for that: {stat}");
    for signal in [Signal::KILL, Signal::CONT] {
        if kill_process(Pid::from_child(&run), signal).is_err() {
            // It is dead already.
        }
    }
    run.wait().unwrap();
}
