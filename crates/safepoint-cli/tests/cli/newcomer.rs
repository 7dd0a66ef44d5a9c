//! What a person reads who has not read the guides: states, receipts, errors and help.

use std::process::Stdio;

use safepoint_testkit::wait::until;

use super::kept::Kept;
use crate::{run, safepoint, signal};

/// Each of two runs has a call that sleeps.
const SLEEPS: &str = r#"{"replies":[
    {"calls":[{"name":"shell","args":{"command":"sleep 1000"}}]},
    {"calls":[{"name":"shell","args":{"command":"sleep 1000"}}]}
]}"#;
const ASKS: &str =
    r#"{"replies":[{"calls":[{"name":"shell","args":{"command":"echo ran"}}]},{"text":"ok"}]}"#;

/// S11.6: a run in mid-call is listed as running, stored or not, and one whose process was killed as interrupted.
#[test]
fn a_run_in_a_call_is_listed_as_running() {
    let kept = Kept::start(SLEEPS);
    let list = || kept.tell(&["sessions", "ls"]).1;
    let args = ["run", "go", "--tools", "shell", "--approve", "auto"];
    let (mut stored, mut printed) = kept.spawn(&[&args[..], &["--session", "ses_1"]].concat());
    super::kept::until_printed(&mut printed, "▸ shell");
    let listed = list();
    assert!(listed.starts_with("ses_1 ") && listed.contains("  running "), "{listed}");
    stored.kill().unwrap();
    stored.wait().unwrap();
    assert!(list().contains("  interrupted "), "{}", list());
    // In memory: nothing of it is in a store.
    let mut command = safepoint(&args);
    command.args(["--base-url", &kept.server.url, "--model", "openai:x"]);
    let mut unstored = command.env("XDG_RUNTIME_DIR", kept.home()).stderr(Stdio::null()).spawn().unwrap();
    let is_listed = || {
        let listed = list();
        (listed.contains("  running ") && listed.contains("  in memory ")).then_some(()).ok_or(listed)
    };
    until("the run in memory is listed as running", || is_listed().is_ok());
    signal(&unstored, rustix::process::Signal::TERM);
    unstored.wait().unwrap();
}

/// S7.16: a wrong model leaves no session behind.
#[test]
fn a_wrong_model_leaves_no_session() {
    let kept = Kept::start(ASKS);
    let wrong = kept.tell(&["run", "go", "--session", "ses_0", "--model", "openai"]);
    assert_eq!((wrong.0, kept.tell(&["sessions", "ls"]).1.as_str()), (2, ""), "{}", wrong.2);
}

/// S7.5: a stop of a session that no process runs says so, and is recorded.
#[test]
fn a_stop_of_a_finished_session_says_that_nothing_ran() {
    let kept = Kept::start(r#"{"replies":[{"text":"one"}]}"#);
    assert_eq!(kept.turn(&["run", "--session", "ses_1", "a"]).0, 0);
    let (code, said, _) = kept.tell(&["stop", "ses_1", "--now"]);
    assert!(code == 0 && said.starts_with("no process runs ses_1; the stop is recorded"), "{code} {said}");
}

/// S8.1: the receipt of a suspended run has a row for the approval that it waits for.
#[test]
fn a_suspended_receipt_names_its_approval() {
    let kept = Kept::start(ASKS);
    let (code, _, printed) = kept.turn(&["run", "--session", "ses_1", "a"]);
    let rows: Vec<&str> = printed.lines().skip_while(|line| !line.starts_with("Suspended")).collect();
    let at = rows.iter().position(|row| row.starts_with("  approval  apr_"));
    let row = at.map(|at| rows[at]).unwrap_or_default();
    assert!(code == 11 && row.ends_with("  open, call of shell not started"), "{printed}");
    assert!(rows[at.unwrap() + 1].starts_with("  running "), "{printed}");
}

/// Every command says the same of a session that does not exist, and each error says what to do next.
#[test]
fn an_error_says_what_to_do() {
    let kept = Kept::start(ASKS);
    for args in [
        ["push", "ses_9", "hi"].as_slice(),
        &["stop", "ses_9"],
        &["trace", "ses_9"],
        &["sessions", "rm", "ses_9"],
    ] {
        let (code, _, printed) = kept.tell(args);
        let expected = "safepoint: session ses_9 not found; `safepoint sessions ls` lists them\n";
        assert_eq!((code, printed.as_str()), (3, expected), "{args:?}");
    }
    let file = std::path::Path::new(kept.home()).join("talk.jsonl");
    std::fs::write(&file, "").unwrap();
    let (code, _, printed) = kept.turn(&["run", "a", "--record", file.to_str().unwrap()]);
    assert!(code == 2 && printed.contains("name a new file, or remove this one"), "{printed}");
}

/// The help of a command lists the exit codes that it returns, and no other.
#[test]
fn help_lists_the_exit_codes_of_its_command() {
    for (args, has, lacks) in [
        (["trace", "--help"].as_slice(), "3 session not found", "7 "),
        (&["sessions", "ls", "--help"], "2 wrong usage", "3 "),
        (&["sessions", "rm", "--help"], "5 a process owns it", "7 "),
        (&["run", "--help"], "11 suspended", "3 session"),
        (&["resume", "--help"], "3 session not found", "7 "),
        (&["stop", "--help"], "4 too late", "6 "),
    ] {
        let help = String::from_utf8(run(args).stdout).unwrap();
        let codes = help.split("Exit codes: ").nth(1).unwrap_or_default();
        assert!(codes.contains(has) && !codes.contains(lacks), "{args:?}: {help}");
    }
}
