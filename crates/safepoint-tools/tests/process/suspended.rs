//! Commands that suspend those who hold them.

use std::sync::PoisonError;

use rustix::process::Signal;
use safepoint_tools::process::{CommandSpec, Exit, Hold, reap_abandoned};

use super::{
    roles::{LEFT, Runtime},
    support::{self, NO_CAP, PATIENCE, each_grade, guarded, ladder, started, until},
};

/// Finds the guard: the parent of the keeper, which is the parent of the shell.
const FIND: &str = "keeper=$PPID; guard=$(cut -d' ' -f4 /proc/$keeper/stat)";

/// S4.14: a command that suspends its guard and its keeper, again and again, is stopped with all that it
/// started, and both continue.
#[tokio::test]
async fn a_command_that_keeps_suspending_its_holders_is_stopped() {
    let line = format!("trap '' INT TERM; {FIND}; echo ready; while :; do kill -STOP $guard $keeper; done");
    for spec in each_grade(&line) {
        let processes = guarded("suspender");
        let mut process = started(&processes, spec.ladder(ladder(30, 30))).await;
        let run = process.record().run.clone();
        let stopped = tokio::time::timeout(PATIENCE, process.stop(NO_CAP)).await;
        let report = stopped.expect("it can be stopped");
        assert_eq!((report.exit, report.survivors.len()), (Exit::Signal(9), 0), "{report:?}");
        assert!(report.rungs.iter().any(|climbed| climbed.rung.to_string() == "SIGKILL"), "{report:?}");
        assert_eq!(support::alive_of(&run), [] as [i32; 0]);
        let guard = processes.guard_pid().unwrap().cast_signed();
        until("the guard goes on", || !support::is_suspended(guard));
    }
}

/// S4.14: without a stop request, the runtime still sees the end of a command, and the next one's start.
#[tokio::test]
async fn suspended_holders_go_on_without_a_stop() {
    for spec in each_grade(&format!("{FIND}; kill -STOP $guard $keeper; exit 3")) {
        let processes = guarded("once");
        for _twice in 0..2 {
            let work = async { processes.spawn(spec.clone()).await.unwrap().wait().await };
            let report = tokio::time::timeout(PATIENCE, work).await.expect("its end is heard");
            assert_eq!((report.exit, report.hold), (Exit::Code(3), Hold::Kept));
        }
    }
}

/// S4.14: a guard that is suspended when its runtime dies is woken by that, and does its work.
#[test]
fn a_suspended_guard_does_its_work_when_its_runtime_is_killed() {
    let _alone = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Runtime::start();
    support::kill(runtime.guard, Signal::STOP);
    until("it is suspended", || support::is_suspended(runtime.guard));
    support::kill(runtime.pid(), Signal::KILL);
    until("every tree and the guard are gone", || runtime.is_gone());
}

/// S4.14: runtime, guard and keepers are dead, and what is left carries no mark: it is found by its control group.
#[test]
fn what_is_left_in_a_control_group_of_a_dead_runtime_is_found_and_counted() {
    let Some(_group) =
        support::own_control_group().filter(|group| group.join("cgroup.kill").exists() || may(group))
    else {
        return safepoint_testkit::skipped("this machine gives no control groups");
    };
    let _alone = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    let other = Runtime::start();
    let line = "env -i setsid /bin/sh -c 'trap \"\" INT TERM HUP; echo far=$$ ready; while :; do /bin/sleep 0.01; done' & wait";
    let runtime = Runtime::start_with(&[line]);
    let far = runtime.commands[1];
    let keepers = support::children(runtime.guard);
    for pid in [&runtime.guard].into_iter().chain(&keepers) {
        support::kill(*pid, Signal::STOP);
        until("it is suspended", || support::is_suspended(*pid));
    }
    for pid in [runtime.guard].iter().chain(&keepers).chain(&[runtime.pid()]) {
        support::kill(*pid, Signal::KILL);
    }
    until("all holders are dead", || !support::is_alive(runtime.guard) && !support::is_alive(keepers[0]));
    until("the runtime is dead", || !support::is_alive(runtime.pid()));
    assert!(support::is_alive(far), "it outlived all of them");
    let reaped = reap_abandoned();
    assert_eq!(reaped.survivors, []);
    assert!(reaped.killed.iter().any(|member| member.pid == far), "{reaped:?}");
    until("it is gone", || !support::is_alive(far));
    assert!(
        other.commands.iter().all(|pid| support::is_alive(*pid)),
        "a runtime that is alive is left alone"
    );
}

/// Whether a group can be made here.
fn may(group: &std::path::Path) -> bool {
    let probe = group.join(format!("safepoint-probe-{}", std::process::id()));
    let made = std::fs::create_dir(&probe).is_ok() && probe.join("cgroup.kill").exists();
    if std::fs::remove_dir(&probe).is_err() {
        // It was not made.
    }
    made
}

/// S4.14, S4.9: a guard left alone, without a command, is not forgotten either.
#[tokio::test]
async fn a_guard_that_somebody_suspended_ends_with_its_runtime() {
    let processes = guarded("left");
    processes.spawn(CommandSpec::shell("true")).await.unwrap().wait().await;
    let guard = processes.guard_pid().unwrap().cast_signed();
    support::kill(guard, Signal::STOP);
    until("it is suspended", || support::is_suspended(guard));
    drop(processes);
    until("it is gone", || !support::is_alive(guard));
}
