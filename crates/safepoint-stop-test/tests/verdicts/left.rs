//! What a target leaves that hides: in a session of its own, without a parent, without an environment.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{self, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::wait;

use super::{adapter, lines, run};

/// A number of seconds that no other process sleeps for.
fn seconds(of: u32) -> String {
    format!("9{of}{}", process::id())
}

/// A server of tools that starts a process which names nothing, and is gone when its input is closed.
fn leaves(seconds: &str) -> String {
    format!("mcp:sh -c '(env -i setsid sleep {seconds} &); cat >/dev/null' sh")
}

fn sleeps(seconds: &str) -> bool {
    lines().any(|line| line.starts_with("sleep") && line.contains(seconds))
}

/// S15.1: what hides its folder is ended with the test.
#[test]
fn what_names_nothing_of_its_trial_is_ended_with_the_test() {
    let seconds = seconds(1);
    let target = format!("program:sh -c '(env -i setsid sleep {seconds} &); exit 1' sh");
    let output = run(&target, &["--only", "tool", "--way", "sigint", "--times", "1"]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!sleeps(&seconds));
}

/// S15.6: so it is where the test is killed, whichever of its two processes that is.
#[test]
fn what_names_nothing_does_not_outlive_a_killed_test() {
    for (number, of_work) in [(2, false), (3, true)] {
        let place = tempfile::tempdir().unwrap();
        let seconds = seconds(number);
        let mut command = Command::new(env!("CARGO_BIN_EXE_stop-test"));
        command.arg(leaves(&seconds)).args(["--only", "tool"]).env("TMPDIR", place.path());
        let mut test = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        wait::until("it is started", || sleeps(&seconds));
        let killed = if of_work { works(test.id()) } else { Pid::from_child(&test) };
        kill_process(killed, Signal::KILL).unwrap();
        test.wait().unwrap();
        wait::until("all is ended", || !sleeps(&seconds));
        wait::until("all is removed", || fs::read_dir(place.path()).unwrap().count() == 0);
    }
}

/// S15.6: an interrupted test says that all has ended once that is so, also of what names nothing.
#[test]
fn an_interrupted_test_says_that_all_has_ended_when_it_has() {
    let seconds = seconds(4);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stop-test"));
    command.arg(leaves(&seconds)).args(["--only", "tool"]);
    let mut test = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    wait::until("it is started", || sleeps(&seconds));
    kill_process(Pid::from_child(&test), Signal::INT).unwrap();
    let lines = BufReader::new(test.stderr.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.into_iter().find(|line| line.contains("interrupted")).unwrap();
    assert!(said.contains("all that was started has been ended") && !sleeps(&seconds), "{said}");
    assert_eq!(test.wait().unwrap().code(), Some(130));
}

/// The process that works for the one with this number.
fn works(waits: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{waits}/task/{waits}/children"));
    let children = children.expect("it lives");
    Pid::from_raw(children.trim().parse().expect("it has one")).expect("it has a number")
}

/// S15.1: what a target makes in its place for temporary files is gone with its trial.
#[test]
fn a_target_has_a_place_of_its_own_for_temporary_files() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stop-test"));
    command.arg("program:sh -c 'mktemp -d; exit 1' sh").args(["--only", "tool", "--way", "sigint"]);
    let output = command.env("TMPDIR", place.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("/tmp/tmp."), "it made one: {text}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

/// S15.2: a place whose name a shell would read is refused with what to do.
#[test]
fn a_place_that_a_shell_would_read_is_refused() {
    let place = tempfile::Builder::new().prefix("a b").tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stop-test"));
    let output = command.arg(adapter("ends")).env("TMPDIR", place.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("set TMPDIR to a plain path"), "{text}");
}

/// S15.2: a way that an adapter does not name is none.
#[test]
fn a_way_that_an_adapter_does_not_name_is_none() {
    let output = run(&adapter("ends"), &["--only", "tool", "--way", "nope", "--times", "1"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("names no way `nope`, but stop"), "{text}");
}

/// S15.5: a file that cannot be written keeps no other one from being written.
#[test]
fn a_file_that_cannot_be_written_keeps_no_other_one() {
    let place = tempfile::tempdir().unwrap();
    let kept = place.path().join("ok.xml");
    let args = ["--only", "control", "--html", "/nowhere/page.html", "--junit", kept.to_str().unwrap()];
    let output = run(&adapter("ends"), &args);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/page.html cannot be written"));
    assert!(fs::read_to_string(kept).unwrap().contains("control"));
}
