//! Commands that end by themselves, or never start.

use std::time::Duration;

use safepoint_testkit::wait;
use safepoint_tools::process::{
    Background, CommandSpec, Containment, Exit, Hold, OutputTarget, RUN_MARK, SpawnError, Stdin,
};

use super::support::{self, guarded, started, until, until_output, written_pid};

/// S4.9
#[tokio::test]
async fn the_exit_code_is_reported() {
    let processes = guarded("code");
    let mut process = processes.spawn(CommandSpec::shell("echo out; echo err >&2; exit 7")).await.unwrap();
    let report = process.wait().await;
    assert_eq!(report.exit, Exit::Code(7));
    assert_eq!(process.output().text(), "out\nerr\n");
    assert!(report.rungs.is_empty() && report.left_behind.is_empty() && report.survivors.is_empty());
    assert_ne!(report.containment, Containment::ProcessGroup);
    assert_eq!(report.hold, Hold::Kept);
    assert_eq!(process.wait().await, report, "waiting again says the same");
}

/// S4.9
#[tokio::test]
async fn a_signal_that_ends_it_is_reported_as_one() {
    let mut process = guarded("signal").spawn(CommandSpec::shell("kill -9 $$")).await.unwrap();
    assert_eq!(process.wait().await.exit, Exit::Signal(9));
}

#[tokio::test]
async fn what_is_given_is_read() {
    let spec = CommandSpec::new("cat").stdin(Stdin::Bytes(b"given\n".to_vec()));
    let mut process = guarded("stdin").spawn(spec).await.unwrap();
    process.wait().await;
    assert_eq!(process.output().text(), "given\n");
}

#[tokio::test]
async fn directory_and_environment_are_as_asked() {
    let place = tempfile::tempdir().unwrap();
    let spec = CommandSpec::shell("pwd -P; echo $COLOUR; printenv SAFEPOINT_RUN")
        .cwd(place.path())
        .env("COLOUR", "red");
    let mut process = guarded("place").spawn(spec).await.unwrap();
    let report = process.wait().await;
    let place = place.path().canonicalize().unwrap();
    assert_eq!(process.output().text(), format!("{}\nred\n{}\n", place.display(), report.record.run));
    assert_eq!(RUN_MARK, "SAFEPOINT_RUN");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_clear_error() {
    let error = guarded("none").spawn(CommandSpec::new("no-such-program")).await.unwrap_err();
    assert!(matches!(error, SpawnError::Program { .. }) && error.is_commands_fault(), "{error}");
    assert_eq!(error.to_string(), "cannot run \"no-such-program\": No such file or directory (os error 2)");
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_a_clear_error() {
    let error = guarded("nowhere").spawn(CommandSpec::shell("true").cwd("/no/such/place")).await.unwrap_err();
    assert!(matches!(error, SpawnError::Cwd { .. }), "{error}");
    assert!(error.to_string().starts_with("cannot enter the directory \"/no/such/place\""), "{error}");
}

#[tokio::test]
async fn a_guard_that_is_not_there_is_a_clear_error() {
    let processes = safepoint_tools::process::Processes::guarded_by("x", "/no/such/guard");
    let error = processes.spawn(CommandSpec::shell("true")).await.unwrap_err();
    assert!(matches!(error, SpawnError::Guard { .. }) && !error.is_commands_fault(), "{error}");
}

/// S4.9; anomalyco/opencode#28654: a tool that never returns because grandchildren hold its pipe.
#[tokio::test]
async fn what_a_command_left_behind_is_killed_and_reported() {
    let line = "setsid sleep 1000 & echo left=$!; (nohup sleep 1001 >/dev/null 2>&1 &) ; exit 3";
    let mut process = guarded("left").spawn(CommandSpec::shell(line)).await.unwrap();
    let report = process.wait().await;
    assert_eq!(report.exit, Exit::Code(3));
    assert_eq!(report.left_behind.len(), 2, "{report:?}");
    let left = written_pid(&process, "left");
    assert!(report.left_behind.iter().any(|member| member.pid == left), "{report:?}");
    assert!(report.rungs.is_empty(), "nobody stopped it: {report:?}");
    assert!(report.left_behind.iter().all(|member| !support::exists(member.pid)), "killed, and reaped");
}

/// S4.9: a short helper that is just finishing is no orphan, and its last output is kept. On a busy machine
/// one may be slow to finish, and is an orphan then. The test finds one that is quick enough, and reads the
/// output of each that is no orphan to its end.
#[tokio::test]
async fn a_helper_that_ends_right_after_its_command_is_heard_out() {
    let processes = guarded("tee");
    wait::asked("a helper that is just finishing is no orphan", async || {
        let spec = CommandSpec::shell("(sleep 0.01; echo last) & exit 0");
        let mut process = processes.spawn(spec).await.unwrap();
        let report = process.wait().await;
        if !report.left_behind.is_empty() {
            return Err(report);
        }
        assert_eq!(process.output().text(), "last\n");
        Ok(())
    })
    .await;
}

/// S4.9: unless it was declared a background job.
#[tokio::test]
async fn a_declared_background_job_goes_on_until_it_is_stopped() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("job.log");
    let spec = CommandSpec::shell("sleep 1000 & echo job=$!; exit 0")
        .background(Background::Keep)
        .output(OutputTarget::File(file.clone()));
    let mut process = guarded("job").spawn(spec).await.unwrap();
    let report = process.wait().await;
    assert_eq!(report.exit, Exit::Code(0));
    assert_eq!(report.background.len(), 1, "{report:?}");
    let job = report.background[0].pid;
    assert!(support::is_alive(job) && report.left_behind.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("job={job}\n"));
    let report = process.stop(std::time::Duration::ZERO).await;
    assert!(!support::exists(job) && report.survivors.is_empty());
    assert_eq!(report.exit, Exit::Code(0), "the command itself had ended before");
}

/// S4.9
#[tokio::test]
async fn a_background_job_whose_command_still_runs_is_stopped_by_its_ladder() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("job.log");
    let spec = CommandSpec::shell("trap 'exit 0' INT; echo up; while :; do sleep 0.01; done")
        .background(Background::Keep)
        .output(OutputTarget::File(file.clone()));
    let mut process = guarded("server").spawn(spec).await.unwrap();
    until("it is up", || std::fs::read_to_string(&file).unwrap().contains("up"));
    let report = process.stop(support::NO_CAP).await;
    assert_eq!((report.exit, report.rungs.len()), (Exit::Code(0), 1), "{report:?}");
}

/// A hundred commands later nothing has piled up, neither here nor in the guard.
#[tokio::test]
async fn nothing_piles_up() {
    const COMMANDS: usize = 100;
    let processes = guarded("many");
    let open = |pid: i32| std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    processes.spawn(CommandSpec::shell("true")).await.unwrap().wait().await;
    let guard = processes.guard_pid().unwrap().cast_signed();
    let before = open(guard);
    for _ in 0..COMMANDS {
        processes.spawn(CommandSpec::shell("sleep 1000 &")).await.unwrap().stop(Duration::ZERO).await;
    }
    until("the guard holds nothing", || support::children(guard).is_empty() && open(guard) <= before);
}

/// S3.3, S4.9
#[tokio::test]
async fn dropping_a_command_kills_its_tree() {
    let processes = guarded("drop");
    let process =
        started(&processes, CommandSpec::shell("setsid sleep 1000 & echo sleeper=$! ready; wait")).await;
    let sleeper = written_pid(&process, "sleeper");
    drop(process);
    until("the tree is gone", || !support::exists(sleeper));
}

#[tokio::test]
async fn one_guard_serves_every_command_and_every_clone() {
    let processes = guarded("one");
    let mut first = processes.spawn(CommandSpec::shell("exit 1")).await.unwrap();
    let guard = processes.guard_pid().unwrap();
    let clone = processes.clone();
    let mut second = clone.spawn(CommandSpec::shell("exit 2")).await.unwrap();
    assert_eq!((first.wait().await.exit, second.wait().await.exit), (Exit::Code(1), Exit::Code(2)));
    assert_eq!(clone.guard_pid(), Some(guard));
}

/// anthropics/claude-code#26658, anthropics/claude-code#1935: helpers that are never cleaned up.
#[tokio::test]
async fn the_guard_ends_with_the_last_handle() {
    let processes = guarded("last");
    let mut process = started(&processes, CommandSpec::shell("echo ready; sleep 1000")).await;
    let (guard, pid) = (processes.guard_pid().unwrap().cast_signed(), process.pid());
    drop(processes);
    until_output(&mut process, "ready").await;
    assert!(support::is_alive(pid), "a command outlives the handle that started it");
    drop(process);
    until("command and guard are gone", || !support::exists(pid) && !support::is_alive(guard));
}
