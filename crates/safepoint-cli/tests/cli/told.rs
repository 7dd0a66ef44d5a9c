//! Reports are whole and true: slow readers, early signals, and exit codes that agree with the outcome.

use std::{
    io::{BufReader, Read as _},
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::kept::Kept;
use crate::{Practice, STREAM, check, lines, safepoint, signal, until};
use safepoint_testkit::wait;

/// S3.6: a reader that pauses gets all of it, and the exit code is the outcome's.
#[test]
fn a_reader_that_pauses_loses_nothing() {
    let text = "x".repeat(200_000);
    let server = Practice::start(&serde_json::json!({"replies": [{"text": text}]}).to_string());
    let mut child = safepoint(&["run", "--base-url", &server.url, "--model", "openai:x", "--json", "hi"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_millis(2500);
    let is_over = || Instant::now() >= deadline || child.try_wait().unwrap().is_some();
    wait::until("the reader has paused", is_over);
    let mut all = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut all).unwrap();
    check(&lines(&all), 1);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// S1.4, S3.1: the exit code is that of the primary reason, not of what was pressed after it.
#[test]
fn an_interrupt_after_a_hangup_or_a_limit_is_10() {
    let script =
        r#"{"replies":[{"calls":[{"name":"shell","args":{"command":"trap '' INT TERM HUP; sleep 50"}}]}]}"#;
    for (limit, code) in [("60s", "disconnect"), ("1s", "wall_time")] {
        let server = Practice::start(script);
        let args = ["run", "--base-url", &server.url, "--model", "openai:x", "--tools", "shell", "--approve"];
        let mut child = safepoint(&[&args[..], &["auto", "--timeout", limit, "--json", "go"]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        until(&mut reader, "call_started");
        if code == "disconnect" {
            signal(&child, Signal::HUP);
        }
        until(&mut reader, "stop_requested");
        let asked = Instant::now();
        signal(&child, Signal::INT);
        let outcome = until(&mut reader, "outcome").pop().unwrap();
        assert_eq!(outcome["reason"]["code"], code);
        assert_eq!(child.wait().unwrap().code(), Some(10), "{code}");
        // B7: after a hang-up an interrupt is the second request: it has the small cap.
        assert!(code != "disconnect" || asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    }
}

/// S2.1: a signal while the prompt is still read is answered, and no run begins.
#[test]
fn an_interrupt_while_the_prompt_is_read_is_130() {
    let mut child = safepoint(&["run", "--model", "practice"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Held: an end of stdin would be an answer too.
    let _stdin = child.stdin.take();
    let status = format!("/proc/{}/status", child.id());
    wait::until("it listens", || listens(&std::fs::read_to_string(&status).unwrap()));
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut printed = String::new();
    child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(printed.contains("no run began"), "{printed}");
}

/// Whether SIGINT is caught.
fn listens(status: &str) -> bool {
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 2 != 0
}

/// S3.3: where a lost terminal detaches, nothing was asked and nothing says that it was; and what is now is not
/// asked for again.
#[test]
fn a_hangup_that_detaches_is_not_told_as_a_stop() {
    let server = Practice::start(STREAM);
    let args = ["run", "--base-url", &server.url, "--model", "openai:x", "--on-disconnect", "detach"];
    let mut child = safepoint(&[&args[..], &["hi"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    signal(&child, Signal::HUP);
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), printed.contains("Stopping")), (Some(0), false), "{printed}");
}

/// S1.2: a stop that is now already is not offered again.
#[test]
fn a_stop_that_is_now_is_not_offered_again() {
    let server = Practice::start(STREAM);
    let mut child =
        safepoint(&["run", "--base-url", &server.url, "--model", "openai:x", "--grace", "0", "hi"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("Stopping now") && !printed.contains("again: now"), "{printed}");
    assert_eq!(output.status.code(), Some(130));
}

/// S11.4: the lines of a session of any name are as published, also of the next process: in order by epoch and number, and
/// with the turns that its trace tells.
#[test]
fn the_lines_of_a_named_session_go_on_in_the_next_process() {
    let kept = Kept::start(r#"{"replies":[{"text":"one"},{"text":"two"},{"text":"three"}]}"#);
    let turn = |args: &[&str]| {
        lines(kept.turn(&[&["run", "--json", "--session", "My trip"], args].concat()).1.as_bytes())
    };
    let (first, second) = (turn(&["a", "--then", "b"]), turn(&["c"]));
    check(&first, 2);
    check(&second, 0);
    let of = |lines: &[serde_json::Value], field: &str| {
        lines.iter().map(|line| line[field].clone()).collect::<Vec<_>>()
    };
    assert!(of(&first, "session").iter().chain(&of(&second, "session")).all(|name| name == "My trip"));
    let epoch = |lines: &[serde_json::Value]| {
        let epochs = of(lines, "epoch");
        assert!(epochs.iter().all(|epoch| *epoch == epochs[0]), "{epochs:?}");
        epochs[0].as_u64().unwrap()
    };
    assert!(0 < epoch(&first) && epoch(&first) < epoch(&second));
    let ended = |lines: &[serde_json::Value]| {
        let outcomes = lines.iter().filter(|line| line["type"] == "outcome");
        outcomes.map(|line| (line["turn"].as_u64().unwrap(), line["run"].clone())).collect::<Vec<_>>()
    };
    let printed = lines(kept.tell(&["trace", "My trip", "--json"]).1.as_bytes());
    super::trace::check(&printed);
    let settled = printed.iter().filter(|line| line["type"] == "settled");
    let settled: Vec<_> = settled.map(|line| (line["turn"].as_u64().unwrap(), line["run"].clone())).collect();
    assert_eq!([ended(&first), ended(&second)].concat(), settled);
    assert_eq!(settled.iter().map(|(turn, _)| *turn).collect::<Vec<_>>(), [1, 2, 3]);
}

/// S11.6: a text that no user could see or type again is no name.
#[test]
fn a_name_that_cannot_be_seen_is_refused() {
    for name in [
        "",
        "  ",
        "a\u{1b}[2Jb",
        "a\nb",
        "a\u{202e}b",
        "\u{9b}",
        "\u{200b}",
        "a\u{3164}",
        "\u{2800}",
        "a\u{ad}b",
    ] {
        for command in ["run", "chat"] {
            let output = safepoint(&[command, "--session", name]).output().unwrap();
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{name:?}: {printed}");
            assert!(printed.contains("all of which are seen"), "{printed}");
        }
    }
}

/// What a session says of itself is in words, whatever it has.
#[test]
fn a_session_that_runs_is_shown_in_words() {
    let call = r#"{"calls":[{"name":"shell","args":{"command":"exec sleep 1000"}}]}"#;
    let kept = Kept::start(&format!(r#"{{"replies":[{call},{{"text":"done"}}]}}"#));
    let (mut run, mut printed) =
        kept.spawn(&["run", "go", "--session", "s", "--tools", "shell", "--approve", "auto"]);
    super::kept::until_printed(&mut printed, "▸ shell");
    let (code, shown, _) = kept.tell(&["sessions", "show", "s"]);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("  kind     ") && shown.contains("  pid      "), "{shown}");
    assert!(!shown.contains(['{', '}', '[', ']', '"']), "{shown}");
    signal(&run, Signal::TERM);
    signal(&run, Signal::TERM);
    run.wait().unwrap();
}
