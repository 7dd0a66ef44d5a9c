//! The reference agent in a terminal: its keys, its screen, and what is judged of them.

use std::process::{Command, Output};

use serde_json::Value;

/// Runs the test against the reference agent's screen, and returns what came of the one trial.
fn trial(manner: &str, args: &[&str]) -> Value {
    let output = run(manner, &[args, &["--json", "-"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
    let trial = &report["rows"][0]["trials"][0];
    assert!(trial["judged"].is_object(), "{report:#}");
    trial["judged"].clone()
}

fn run(manner: &str, args: &[&str]) -> Output {
    of(&format!("{} terminal {manner}", env!("CARGO_BIN_EXE_stop-test-reference")), args)
}

fn of(line: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stop-test"));
    command
        .arg(format!("terminal:{line}"))
        .args(["--times", "1"])
        .args(args)
        .output()
        .expect("the test can be started")
}

fn stopped(manner: &str, scenario: &str, way: &str) -> Value {
    trial(manner, &["--ready", "ready> ", "--only", scenario, "--way", way])
}

fn assert_verdict(trial: &Value, verdict: &str) {
    assert_eq!(trial["judged"]["verdict"], verdict, "{trial:#}");
}

/// S15.14: control is back with the prompt below the message, not with the one at which that was typed; work that had ended then had ended.
#[test]
fn a_screen_is_free_when_it_shows_its_prompt_again() {
    let silent = stopped("ends", "stream-silent", "esc");
    assert_verdict(&silent, "ends");
    assert_eq!(
        (&silent["claims"]["says"], &silent["facts"]["next"]),
        (&"stopped".into(), &"accepted".into())
    );
    let hangs = stopped("hangs", "command", "esc");
    assert_verdict(&hangs, "breaks");
    assert_eq!(hangs["claims"]["free"], Value::Null, "{hangs:#}");
}

/// S15.15: one that says that it is stopped while its command runs lies; one that shows the process says so; one that shows only its
/// prompt lets go.
#[test]
fn what_a_screen_says_is_held_against_what_runs() {
    let lies = stopped("lies", "command-apart", "esc");
    assert_verdict(&lies, "lies");
    let names = stopped("says-so", "command-apart", "esc");
    assert_verdict(&names, "says-so");
    let named = names["claims"]["named"][0].as_str().unwrap();
    assert!(named.contains("still running: ") && !named.contains("do what you are asked"), "{named}");
    let silent = stopped("lets-go", "command", "ctrl-c");
    assert_verdict(&silent, "lets-go");
    assert_eq!(silent["claims"]["says"], "nothing", "{silent:#}");
}

/// S15.12: the next message is typed as the first one, and one whose history is refused breaks.
#[test]
fn the_next_message_is_typed_and_its_answer_seen() {
    let control = trial("ends", &["--ready", "ready> ", "--only", "control"]);
    assert_eq!(control["facts"]["next"], "accepted", "{control:#}");
    let forgets = stopped("forgets", "command", "esc");
    assert_verdict(&forgets, "breaks");
    assert!(forgets["facts"]["next"]["refused"].is_string(), "{forgets:#}");
}

/// S15.13: each way is a key or the window that is closed, and a program that ends by it has given control back.
#[test]
fn a_terminal_is_stopped_by_keys_or_closed() {
    for way in ["ctrl-c-twice", "ctrl-d"] {
        let ended = stopped("ends", "command", way);
        assert_verdict(&ended, "ends");
        assert!(ended["facts"]["next"]["not-sent"].is_string(), "{way} ends it: {ended:#}");
    }
    let closed = stopped("ends", "command-apart", "hang-up");
    assert_verdict(&closed, "lets-go");
    assert!(closed["claims"]["free"].is_object(), "it ended: {closed:#}");
    let held = stopped("ends", "sixteen", "esc");
    assert_verdict(&held, "ends");
}

/// S15.12: a question is a moment where it is known how the screen asks; else it is answered by the keys that say yes.
#[test]
fn a_question_on_a_screen_is_a_moment_or_is_answered() {
    let asks = ["--ready", "ready> ", "--asks", "may it run?", "--way", "esc"];
    let open = trial("asks", &[&asks[..], &["--only", "question"]].concat());
    assert_verdict(&open, "ends");
    assert_eq!(open["facts"]["work"].as_array().map(Vec::len), Some(0), "nothing ran: {open:#}");
    let answered = trial("asks", &[&asks[..], &["--allow", "y", "--only", "one-of-three"]].concat());
    assert_verdict(&answered, "ends");
    assert!(
        answered["facts"]["work"].as_array().is_some_and(|work| !work.is_empty()),
        "one ran: {answered:#}"
    );
    let said = answered["claims"]["named"][0].as_str().unwrap();
    assert!(said.trim_end().ends_with("ready>"), "nothing is allowed after the stop: {said:?}");
}

/// S15.12, S15.14: what cannot be seen on a screen is said, and is no verdict.
#[test]
fn a_screen_that_cannot_be_read_is_no_verdict() {
    let says = |args: &[&str], why: &str| {
        let output = run("ends", &[args, &["--way", "esc"]].concat());
        assert_ne!(output.status.code(), Some(1), "it is no verdict");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(why), "{args:?}: {text}");
    };
    says(&["--only", "tool"], "say `--free`");
    says(&["--only", "question", "--ready", "ready> "], "say `--asks`");
    says(&["--only", "tool", "--free", ""], "below a message that it has just taken");
    let output = of("sh -c 'echo no key' sh", &["--only", "tool", "--way", "esc", "--ready", "> "]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("it ended before it took input: exit status: 0; it wrote: no key"), "{text}");
}

/// S15.13: a terminal is closed once, however often that is asked.
#[test]
fn a_terminal_that_is_closed_is_not_closed_again() {
    let twice = stopped("ends", "twice", "hang-up");
    assert_verdict(&twice, "ends");
    assert_eq!(twice["facts"]["crash"], Value::Null, "{twice:#}");
}
