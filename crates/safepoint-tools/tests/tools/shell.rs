//! The shell tool in a run: its output, its end, its stop, its row in the receipt.

use std::time::{Duration, Instant};

use safepoint::{
    Outcome, StopRequest,
    event::{EventKind, Fact},
    raw::OutputExtent,
    receipt::{CallStatus, QuietReport, SideEffect},
};
use safepoint_testkit::wait;
use serde_json::json;

use super::support::{Bench, answered, reported};

#[tokio::test]
async fn output_and_exit_code_are_told() {
    let bench = Bench::new();
    let text = bench.call("shell", json!({"command": "echo out; echo err >&2; exit 3"})).await.good();
    assert_eq!(text, "out\nerr\n[exit 3]");
    assert_eq!(bench.call("shell", json!({"command": "true"})).await.good(), "[exit 0, no output]");
    let text = bench.call("shell", json!({"command": "pwd -P"})).await.good();
    assert_eq!(text.trim_end(), bench.path("").canonicalize().unwrap().to_str().unwrap());
    let text = bench.call("shell", json!({"command": "  "})).await.refused();
    assert!(text.contains("`command` is empty"), "{text}");
}

/// S4.7: where the shell shows only a part of what was written, the call's end says so, and names the file that holds
/// all of it: also of a command that was stopped.
#[tokio::test]
async fn what_it_cut_itself_is_told_as_truncated() {
    const WRITTEN: usize = 3_000_000;
    let flood = "head -c 3000000 /dev/zero | tr '\\0' x; touch flooded";
    for line in [flood.to_owned(), format!("{flood}; sleep 1000")] {
        let bench = Bench::new();
        let is_endless = line.ends_with("1000");
        let running = bench.start("shell", json!({ "command": line }));
        let mut events = running.handle.events();
        if is_endless {
            wait::so("it has written all", || bench.path("flooded").exists()).await;
            let (reported, _) = running.stop(StopRequest::now()).await;
            assert!(reported.text.contains("left out"), "{}", reported.text.len());
        } else {
            assert!(answered(&running.end().await).is_some());
        }
        let extent = loop {
            let event = events.next().await.expect("the call's end is told");
            if let EventKind::Fact(fact) = event.kind
                && let Fact::CallEnded { extent, .. } = (*fact).clone()
            {
                break extent;
            }
        };
        let OutputExtent::Truncated { bytes, file: Some(file) } = extent else { panic!("{extent:?}") };
        assert!(bytes > WRITTEN / 2, "what was in the pipe when it was stopped may be lost: {bytes}");
        assert_eq!(std::fs::metadata(&file).unwrap().len(), bytes as u64);
        std::fs::remove_file(file).unwrap();
    }
}

/// S3.7, S4.9
#[tokio::test]
async fn what_it_left_running_is_killed_told_and_in_the_receipt() {
    let reported = Bench::new().call("shell", json!({"command": "setsid sleep 1000 & echo done"})).await;
    assert_eq!(reported.report.processes.len(), 1);
    let row = &reported.report.processes[0];
    assert_eq!((row.ended.as_str(), row.left_behind.len()), ("exit 0", 1));
    assert!(row.containment != "process group", "{row:?}");
    let text = reported.good();
    assert!(text.starts_with("done\n[it left these running, and they were killed: sleep (pid "), "{text}");
}

/// S4.3, S4.5, S4.9: the ladder is climbed, what it wrote is kept, the receipt lists the process and its signals.
#[tokio::test]
async fn a_stop_climbs_the_ladder_and_keeps_what_was_written() {
    let bench = Bench::new();
    let line = "trap 'echo caught; exit 1' INT; echo ready; while :; do sleep 0.01; done";
    let mut running = bench.start("shell", json!({"command": line}));
    running.until_progress("ready").await;
    let (reported, quiet) = running.stop(StopRequest::now()).await;
    assert!(
        matches!(reported.report.status, CallStatus::Stopped | CallStatus::Killed),
        "{:?}",
        reported.report.status
    );
    assert_eq!(reported.report.effect, SideEffect::Unknown);
    assert!(reported.text.contains("ready"), "{}", reported.text);
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    let row = &reported.report.processes[0];
    assert_eq!((row.ended.as_str(), row.signals.as_slice()), ("exit 1", ["SIGINT".to_owned()].as_slice()));
    assert!(row.survivors.is_empty());
}

/// S1.1, S2.7: the cap holds for the whole ladder; a deaf tree with a far grandchild is gone, and quiet says so.
/// anomalyco/opencode#40829: an abort that waits for bash; openai/codex#42717: a turn reported as interrupted while
/// its `sleep` lives.
#[tokio::test]
async fn a_deaf_tree_is_gone_within_the_cap() {
    let bench = Bench::new();
    let line = "trap '' INT TERM; setsid sh -c 'trap \"\" INT TERM; echo far=$$ ready; while :; do sleep 0.01; done'";
    let mut running = bench.start("shell", json!({"command": line}));
    running.until_progress("ready").await;
    let asked = Instant::now();
    let (reported, quiet) =
        running.stop(StopRequest::now().with_cleanup_cap(Duration::from_millis(800))).await;
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    assert_eq!(reported.report.processes[0].signals, ["SIGINT", "SIGTERM", "SIGKILL"]);
    let far = reported.text.split("far=").nth(1).unwrap().split(' ').next().unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{far}")).exists(), "it is gone");
}

/// S1.5: a second, harder stop climbs at once.
#[tokio::test]
async fn a_second_stop_makes_the_ladder_faster() {
    let bench = Bench::new();
    let line = "trap 'echo heard' INT; trap '' TERM; echo ready; while :; do sleep 0.01; done";
    let mut running = bench.start("shell", json!({"command": line}));
    running.until_progress("ready").await;
    let _first = running.handle.stop(StopRequest::now().with_cleanup_cap(Duration::from_secs(60)));
    running.until_progress("heard").await;
    let asked = Instant::now();
    let (reported, quiet) =
        running.stop(StopRequest::now().with_cleanup_cap(Duration::from_millis(100))).await;
    // Half of what the first one allows, and no measure of a machine.
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    assert!(reported.text.contains("ready"), "{}", reported.text);
}

/// S1.1: a cap of zero: no clean-up at all, and yet nothing is called quiet before the tree is gone.
#[tokio::test]
async fn a_cap_of_zero_leaves_nothing_alive_when_it_is_quiet() {
    let bench = Bench::new();
    let mut running = bench.start("shell", json!({"command": "sleep 1000 & echo child=$! ready; wait"}));
    running.until_progress("ready").await;
    let (reported, quiet) = running.stop(StopRequest::now().with_cleanup_cap(Duration::ZERO)).await;
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    let child = reported.text.split("child=").nth(1).unwrap().split(' ').next().unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{child}")).exists(), "it is gone");
}

/// S4.6, S4.5: a limit that the model sets: the call is *timed out*, never failed or stopped, its output is
/// kept, and the run continues.
/// zed-industries/zed PR#46663: stopping a hung terminal ends the turn, where the model should see the
/// timeout.
#[tokio::test]
async fn a_limit_of_its_own_is_a_timeout_and_the_run_goes_on() {
    let bench = Bench::new();
    let args = json!({"command": "echo begun; sleep 1000", "timeout_seconds": 0.3});
    let outcome = bench.start("shell", args).end().await;
    assert!(answered(&outcome).is_some());
    let reported = reported(&outcome);
    let row = &reported.report;
    assert_eq!((row.status, row.effect, row.stopped_by), (CallStatus::TimedOut, SideEffect::Unknown, None));
    assert_eq!(row.processes[0].signals, ["SIGINT"]);
    assert!(
        reported.text.starts_with("begun\n[signal 2]\nit was stopped after its limit of 300ms"),
        "{}",
        reported.text
    );
    assert!(reported.text.contains("[timed out: its effects are unknown"), "{}", reported.text);
    let text = bench.call("shell", json!({"command": "true", "timeout_seconds": 0})).await.refused();
    assert!(text.contains("`timeout_seconds` must be more than 0"), "{text}");
}

/// Writes far more than is kept, says so at both ends, and waits; the file says when it has written all.
const FLOOD: &str = "echo first; yes 0123456789 | head -c 2000000; echo last; touch written; sleep 1000";

/// Head, tail and a file: nothing of a flood is lost.
fn is_whole(text: &str) {
    assert!(text.starts_with("first\n") && text.contains("last\n["), "{} bytes", text.len());
    assert_eq!(text.matches("left out").count(), 1, "cut once");
    let file = text.split("the full output is in ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(std::fs::metadata(file).unwrap().len(), 2_000_011);
    std::fs::remove_file(file).unwrap();
}

/// S4.5, S4.7: a command that is stopped, or that runs into its limit, after a flood of output keeps its head, its tail,
/// and a file that holds all of it.
#[tokio::test]
async fn a_flood_that_is_cut_keeps_both_ends_and_all_of_it() {
    let bench = Bench::new();
    let running = bench.start("shell", json!({"command": FLOOD}));
    wait::so("it has written all", || bench.path("written").exists()).await;
    let (stopped, quiet) = running.stop(StopRequest::now()).await;
    assert!(matches!(stopped.report.status, CallStatus::Stopped | CallStatus::Killed));
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    is_whole(&stopped.text);

    let args = json!({"command": FLOOD, "timeout_seconds": 2});
    let limited = reported(&bench.start("shell", args).end().await);
    assert_eq!(limited.report.status, CallStatus::TimedOut);
    is_whole(&limited.text);
}

/// S4.7: a huge output is cut once, and the file that holds all of it is named.
#[tokio::test]
async fn a_huge_output_is_cut_once_and_spilled() {
    let line = "echo first; yes 0123456789 | head -c 20000000; echo last";
    let text = Bench::new().call("shell", json!({"command": line})).await.good();
    assert!(text.starts_with("first\n") && text.ends_with("last\n"), "{} bytes", text.len());
    assert_eq!(text.matches("left out").count(), 1);
    let file = text.split("the full output is in ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(std::fs::metadata(file).unwrap().len(), 20_000_011);
    std::fs::remove_file(file).unwrap();
}

/// S3.6, S4.9: a declared background job runs on after its call and its run, and no run is called quiet over
/// it.
#[tokio::test]
async fn a_background_job_outlives_its_call_and_keeps_its_run_from_being_quiet() {
    let bench = Bench::new();
    let running = bench.start("shell", json!({"command": SERVER, "background": true}));
    let handle = running.handle.clone();
    let outcome = running.end().await;
    assert!(matches!(outcome, Outcome::Done(_)));
    let (pid, file) = job(&reported(&outcome).good());
    until_up(&file).await;
    assert!(std::path::Path::new(&pid).exists(), "it goes on");
    let mut quiet = std::pin::pin!(handle.quiet());
    assert!(futures_util::poll!(quiet.as_mut()).is_pending());
    std::fs::remove_file(&file).unwrap();
}

/// S4.9; openai/codex#25772: Esc on `npm run dev` leaves the server on its port.
#[tokio::test]
async fn a_stop_of_the_run_ends_its_background_job_too() {
    let bench = Bench::new();
    let job_first = ("shell", json!({"command": SERVER, "background": true}));
    let mut running =
        bench.start_two(job_first, ("shell", json!({"command": "echo ready; exec sleep 1000"})));
    running.until_progress("ready").await;
    let (reported, quiet) = running.stop(StopRequest::now()).await;
    let (pid, file) = job(&reported.text);
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    assert!(!std::path::Path::new(&pid).exists(), "it is gone");
    std::fs::remove_file(&file).unwrap();
}

/// S4.35: a command that is moved to the background ends its call with what it wrote, continues, and writes the rest to a file; a
/// stop of its run ends it.
#[tokio::test]
async fn a_command_is_moved_to_the_background_while_it_runs() {
    let bench = Bench::new();
    let line = "echo before; while [ ! -e go ]; do sleep 0.01; done; echo after; exec sleep 1000";
    let moved = ("shell", json!({ "command": line }));
    let mut running = bench.start_two(moved, ("shell", json!({"command": "echo ready; exec sleep 1000"})));
    running.until_progress("before").await;
    bench.processes.to_background();
    let handle = running.handle.clone();
    let mut events = handle.events();
    let text = loop {
        let event = events.next().await.expect("the call ends");
        if let EventKind::Fact(fact) = event.kind
            && let Fact::CallEnded { result, report, .. } = (*fact).clone()
        {
            assert_eq!(report.status, CallStatus::Completed);
            break result.text.to_string();
        }
    };
    assert!(text.starts_with("before\n[the user moved it to the background"), "{text}");
    let word =
        |after: &str| text.split(after).nth(1).unwrap().split([' ', ';', ']']).next().unwrap().to_owned();
    let (pid, file) = (format!("/proc/{}", word("with pid ")), word("goes to "));
    assert!(std::path::Path::new(&pid).exists(), "it goes on");
    std::fs::write(bench.path("go"), "").unwrap();
    wait::so("the rest is written", || std::fs::read_to_string(&file).unwrap() == "after\n").await;
    let (_, quiet) = running.stop(StopRequest::now()).await;
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{quiet:?}");
    assert!(!std::path::Path::new(&pid).exists(), "it is gone");
    std::fs::remove_file(&file).unwrap();
}

const SERVER: &str = "trap 'exit 0' INT; echo up; while :; do sleep 0.01; done";

/// The job's place in the process table, and its output file.
fn job(text: &str) -> (String, String) {
    let word = |after: &str| text.split(after).nth(1).unwrap().split([' ', ';']).next().unwrap().to_owned();
    (format!("/proc/{}", word("with pid ")), word("its output goes to "))
}

async fn until_up(file: &str) {
    wait::so("it is up", || std::fs::read_to_string(file).unwrap().contains("up")).await;
}

/// The command gets what the tool says: a root that is gone is a clear error.
#[tokio::test]
async fn a_root_that_has_gone_is_a_clear_error() {
    let bench = Bench::new();
    std::fs::remove_dir(bench.path("")).unwrap();
    let text = bench.call("shell", json!({"command": "true"})).await.refused();
    assert!(text.contains("cannot enter the directory"), "{text}");
}
