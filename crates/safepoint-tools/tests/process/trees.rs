//! Trees that would get away: new sessions, daemons, spawners, zombies.

use std::time::{Duration, Instant};

use safepoint_tools::process::{CommandSpec, Exit, Hold};

use super::roles::line_of;
use super::support::{
    self, NO_CAP, PATIENCE, each_grade, guarded, ladder, started, until, until_output, written_pid,
};

/// S4.9; anomalyco/opencode#28654, code-yeongyu/senpi PR#236: an escaped descendant that keeps the pipe open.
#[tokio::test]
async fn a_grandchild_in_its_own_session_neither_survives_nor_delays() {
    let line =
        "setsid sh -c 'trap \"\" INT TERM HUP; echo far=$$ ready; while :; do sleep 0.01; done' & wait";
    for spec in each_grade(line) {
        let mut process = started(&guarded("setsid"), spec.ladder(ladder(30, 30))).await;
        let far = written_pid(&process, "far");
        let asked = Instant::now();
        let report = process.stop(NO_CAP).await;
        assert!(asked.elapsed() < NO_CAP / 10, "{:?}", asked.elapsed());
        assert!(!support::exists(far) && report.survivors.is_empty(), "{report:?}");
    }
}

/// S4.9; openai/codex#25772: the server that stays on its port.
#[tokio::test]
async fn a_daemon_that_forked_twice_is_found() {
    let line = "(setsid sh -c '(sleep 1000 </dev/null >/dev/null 2>&1 & echo daemon=$!) ' &) ; sleep 0.2; echo ready; sleep 1001";
    for spec in each_grade(line) {
        let mut process = started(&guarded("daemon"), spec).await;
        let daemon = written_pid(&process, "daemon");
        assert!(support::is_alive(daemon));
        let report = process.stop(Duration::ZERO).await;
        assert!(!support::exists(daemon) && report.survivors.is_empty(), "{report:?}");
    }
}

/// S4.9; openai/codex#7985: a crawler that keeps spawning.
#[tokio::test]
async fn a_spawner_that_never_pauses_is_killed_with_all_it_spawned() {
    let line = "trap '' INT TERM; spawn() { while :; do setsid sleep 1000 & sleep 0.002; done; }; \
                spawn & spawn & sleep 0.1; echo ready; wait";
    for spec in each_grade(line) {
        let processes = guarded("spawner");
        let mut process = started(&processes, spec).await;
        let run = process.record().run.clone();
        let report = process.stop(Duration::ZERO).await;
        assert_eq!((report.exit, report.survivors), (Exit::Signal(9), vec![]));
        assert_eq!(support::alive_of(&run), [] as [i32; 0]);
    }
}

/// S4.9; anomalyco/opencode#33071: a kill of the tree that races with it, so that grandchildren escape. A chain in which
/// each process forks the next and ends, so that no process is there for long.
#[tokio::test]
async fn a_chain_of_processes_that_replace_each_other_is_caught() {
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("hop");
    std::fs::write(&script, "#!/bin/sh\nsh \"$0\" &\n").unwrap();
    let line = format!("sh {} & echo ready; sleep 1000", script.display());
    for spec in each_grade(&line) {
        let processes = guarded("chain");
        let mut process = started(&processes, spec).await;
        let run = process.record().run.clone();
        let report = process.stop(Duration::ZERO).await;
        assert_eq!(report.survivors, []);
        assert_eq!(support::alive_of(&run), [] as [i32; 0]);
    }
}

/// S4.9; openai/codex#25744, anthropics/claude-code#21396: zombies that no process reaps.
#[tokio::test]
async fn zombies_of_a_parent_that_does_not_reap_are_gone_with_it() {
    // The shell forks, then becomes a program that never waits for what it forked, and that ends only after this: a shell
    // would take note of an end that comes before.
    let line = "sh -c 'until [ \"$(cat /proc/$PPID/comm)\" = sleep ]; do :; done' & echo zombie=$! ready; exec sleep 1000";
    for spec in each_grade(line) {
        let mut process = started(&guarded("zombie"), spec).await;
        let zombie = written_pid(&process, "zombie");
        until("it is a zombie", || support::is_zombie(zombie));
        process.stop(Duration::ZERO).await;
        assert!(!support::exists(zombie), "reaped");
    }
}

/// S4.9: orphans that end by themselves are reaped while the command still runs.
#[tokio::test]
async fn orphans_are_reaped_as_they_end() {
    let line = "(sh -c 'exit 0' & echo orphan=$!) ; echo ready; sleep 1000";
    for spec in each_grade(line) {
        let mut process = started(&guarded("orphan"), spec).await;
        let orphan = written_pid(&process, "orphan");
        until("the keeper reaped it", || !support::exists(orphan));
        process.stop(Duration::ZERO).await;
    }
}

/// A stopped (SIGSTOP) process cannot handle a polite signal until it is continued.
#[tokio::test]
async fn a_suspended_process_hears_the_polite_signal() {
    let line = "trap 'exit 6' INT; echo ready; while :; do sleep 0.01; done";
    for spec in each_grade(line) {
        let mut process = started(&guarded("asleep"), spec.ladder(ladder(20_000, 20_000))).await;
        support::kill(process.pid(), rustix::process::Signal::STOP);
        assert_eq!(process.stop(NO_CAP).await.exit, Exit::Code(6));
    }
}

/// S4.9: a command that suspends its own keeper does not escape: neither its start nor a stop hangs.
#[tokio::test]
async fn a_keeper_that_its_command_suspends_goes_on() {
    for spec in each_grade("kill -STOP $PPID; echo ready; kill -STOP $PPID; sleep 1000") {
        let processes = guarded("suspended-keeper");
        let work = async {
            let mut process = started(&processes, spec).await;
            (process.stop(Duration::ZERO).await, process.record().run.clone())
        };
        let (report, run) = tokio::time::timeout(PATIENCE, work).await.expect("it can be stopped");
        assert_eq!((report.hold, report.survivors.len()), (Hold::Kept, 0));
        assert_eq!(support::alive_of(&run), [] as [i32; 0]);
    }
}

/// S4.9: the kernel cuts names after 15 bytes, within a character too. A name that is no text hides no
/// process.
#[tokio::test]
async fn a_process_whose_name_is_no_text_is_found() {
    let place = tempfile::tempdir().unwrap();
    let line = "cp \"$(command -v sleep)\" \"$(printf 'n\\377m')\"; cp \"$(command -v sleep)\" ääääääääää; \
                setsid ./n* 1000 & ./ä* 1000 & echo ready; wait";
    for spec in each_grade(line) {
        let processes = guarded("no-text");
        let mut process = started(&processes, spec.cwd(place.path()).ladder(ladder(0, 0))).await;
        let run = process.record().run.clone();
        until("both run", || support::alive_of(&run).len() == 3);
        let report = tokio::time::timeout(PATIENCE, process.stop(Duration::ZERO)).await.expect("it ends");
        assert_eq!((report.exit, report.survivors), (Exit::Signal(9), vec![]));
        assert_eq!(support::alive_of(&run), [] as [i32; 0]);
    }
}

/// S4.9: a process whose first thread has ended looks like a zombie, and is still running.
#[tokio::test]
async fn a_process_that_outlives_its_first_thread_is_found() {
    for spec in each_grade(&format!("setsid sh -c '{}' & sleep 1000", line_of("headless"))) {
        let processes = guarded("headless");
        let mut process = started(&processes, spec).await;
        let head = written_pid(&process, "head");
        let report = tokio::time::timeout(PATIENCE, process.stop(Duration::ZERO)).await.expect("it ends");
        assert_eq!((report.exit, report.survivors), (Exit::Signal(9), vec![]));
        until("it is gone", || !support::exists(head));
    }
}

/// S4.9: who got the pipe and is not of the tree does not hold up its end.
#[tokio::test]
async fn an_outsider_that_holds_the_pipe_delays_nothing() {
    let processes = guarded("outsider");
    let mut process = started(&processes, CommandSpec::shell("echo ready; sleep 1000")).await;
    let pipe = std::fs::OpenOptions::new().write(true).open(format!("/proc/{}/fd/1", process.pid())).unwrap();
    let report = tokio::time::timeout(support::PATIENCE, process.stop(Duration::ZERO))
        .await
        .expect("it is not held up");
    assert_eq!(report.survivors, []);
    drop(pipe);
}

/// S4.9: what a tree wrote before it was killed is kept.
#[tokio::test]
async fn what_was_written_before_the_stop_is_kept() {
    let mut process =
        started(&guarded("kept"), CommandSpec::shell("echo ready; echo more; exec sleep 1000")).await;
    until_output(&mut process, "more").await;
    process.stop(Duration::ZERO).await;
    assert_eq!(process.output().text(), "ready\nmore\n");
}
