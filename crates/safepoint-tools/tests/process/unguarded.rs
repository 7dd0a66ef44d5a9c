//! The declared lower grade: a process group, and a search for what has left it.

use std::time::Duration;

use safepoint_tools::process::{Background, CommandSpec, Containment, Exit, Processes, Rung, SpawnError};

use super::roles::line_of;
use super::support::{self, NO_CAP, ladder, started, unique, until, written_pid};

fn unguarded(run: &str) -> Processes {
    Processes::unguarded(unique(run))
}

/// S4.9: without a guard, a declared lower grade.
#[tokio::test]
async fn the_lower_grade_is_declared() {
    let mut process = unguarded("plain").spawn(CommandSpec::shell("echo out; exit 7")).await.unwrap();
    let report = process.wait().await;
    assert_eq!((report.exit, report.containment), (Exit::Code(7), Containment::ProcessGroup));
    assert_eq!(process.output().text(), "out\n");
}

/// S4.9
#[tokio::test]
async fn the_ladder_is_climbed_without_a_guard_too() {
    let line = "trap '' INT TERM; sleep 1000 & echo child=$! ready; while :; do sleep 0.01; done";
    let mut process = started(&unguarded("stone"), CommandSpec::shell(line).ladder(ladder(300, 300))).await;
    let child = written_pid(&process, "child");
    let report = process.stop(NO_CAP).await;
    let rungs: Vec<_> = report.rungs.iter().map(|climbed| climbed.rung).collect();
    assert_eq!(rungs, [Rung::Interrupt, Rung::Terminate, Rung::Kill]);
    assert_eq!((report.exit, report.survivors), (Exit::Signal(9), vec![]));
    assert!(!support::is_alive(child));
}

/// S4.9: what left the group is found by its mark.
#[tokio::test]
async fn a_grandchild_in_its_own_session_is_looked_for() {
    // It reports itself, so that it is past its exec, during which its environment cannot be read.
    let line = "setsid sh -c 'echo far=$$ ready; sleep 5; true' & wait";
    let mut process = started(&unguarded("setsid"), CommandSpec::shell(line)).await;
    let far = written_pid(&process, "far");
    let report = process.stop(Duration::ZERO).await;
    assert!(!support::is_alive(far) && report.survivors.is_empty(), "{report:?}");
}

/// S4.9: nor does a process whose first thread has ended hide its mark.
#[tokio::test]
async fn a_process_that_outlives_its_first_thread_is_looked_for() {
    let line = format!("setsid sh -c '{}' & sleep 1000", line_of("headless"));
    let mut process = started(&unguarded("headless"), CommandSpec::shell(line)).await;
    let head = written_pid(&process, "head");
    assert_eq!(process.stop(Duration::ZERO).await.survivors, []);
    until("it is gone", || !support::is_alive(head) && support::threads(head) < 2);
}

/// S4.9
#[tokio::test]
async fn what_a_command_left_behind_is_killed_and_reported() {
    let mut process = unguarded("left").spawn(CommandSpec::shell("sleep 1000 & exit 3")).await.unwrap();
    let report = process.wait().await;
    assert_eq!((report.exit, report.left_behind.len()), (Exit::Code(3), 1));
    assert!(!support::is_alive(report.left_behind[0].pid));
    assert!(report.rungs.is_empty());
}

/// S4.9
#[tokio::test]
async fn a_declared_background_job_is_kept_and_can_be_stopped() {
    let spec = CommandSpec::shell("sleep 1000 >/dev/null 2>&1 & exit 0").background(Background::Keep);
    let mut process = unguarded("job").spawn(spec).await.unwrap();
    let report = process.wait().await;
    assert_eq!(report.background.len(), 1, "{report:?}");
    let job = report.background[0].pid;
    assert!(support::is_alive(job));
    process.stop(Duration::ZERO).await;
    assert!(!support::is_alive(job));
}

/// S4.9
#[tokio::test]
async fn dropping_a_command_kills_its_group() {
    let process =
        started(&unguarded("drop"), CommandSpec::shell("sleep 1000 & echo far=$! ready; wait")).await;
    let far = written_pid(&process, "far");
    drop(process);
    until("the group is gone", || !support::is_alive(far));
}

#[tokio::test]
async fn faults_of_the_command_are_clear_errors() {
    let error = unguarded("none").spawn(CommandSpec::new("no-such-program")).await.unwrap_err();
    assert!(matches!(error, SpawnError::Program { .. }), "{error}");
    let error =
        unguarded("nowhere").spawn(CommandSpec::shell("true").cwd("/no/such/place")).await.unwrap_err();
    assert!(matches!(error, SpawnError::Cwd { .. }), "{error}");
}
