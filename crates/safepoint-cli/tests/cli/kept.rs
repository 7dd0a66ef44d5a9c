//! `run` and `resume` on a kept session: what waits, what was asked meanwhile, and that a signal is always heard.

use std::process::Output;

use crate::{Practice, safepoint};

/// A store of its own, and a server.
struct Kept {
    server: Practice,
    folder: tempfile::TempDir,
}

impl Kept {
    fn start(script: &str) -> Self {
        Self { server: Practice::start(script), folder: tempfile::tempdir().unwrap() }
    }

    /// Whatever needs a model.
    fn turn(&self, args: &[&str]) -> (i32, String, String) {
        let model = ["--base-url", &self.server.url, "--model", "openai:x", "--tools", "shell"];
        self.tell(&[args, &model].concat())
    }

    fn tell(&self, args: &[&str]) -> (i32, String, String) {
        let home = self.folder.path();
        let store = home.join("s.db");
        let Output { status, stdout, stderr } = safepoint(args)
            .args(["--store", store.to_str().unwrap()])
            .env("HOME", home)
            .env("XDG_RUNTIME_DIR", home)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }
}

const ASKS: &str = r#"{"replies":[{"calls":[{"name":"shell","args":{"command":"echo ran"}}]},{"text":"all done"},
    {"text":"second answer"}]}"#;

/// S8.1: a prompt that waits behind a decision is told where it waits and what to do; once decided, `resume` comes to it
/// too. Nothing hangs.
#[test]
fn a_prompt_behind_a_decision_is_told_so() {
    let kept = Kept::start(ASKS);
    let (code, _, told) = kept.turn(&["run", "--session", "ses_1", "go", "--then", "never"]);
    assert!(code == 11 && told.contains("the other prompt was not said"), "{told}");
    let (code, said, told) = kept.turn(&["run", "--session", "ses_1", "and now?"]);
    assert_eq!((code, said.as_str()), (11, ""), "{told}");
    assert!(told.contains("ses_1 waits for 1 decision") && told.contains("waits as item-2"), "{told}");
    let (code, _, told) = kept.turn(&["resume", "ses_1"]);
    assert!(code == 11 && told.contains("ses_1 waits for 1 decision"), "{told}");
    let approval = kept.tell(&["approvals", "ses_1"]).1;
    let approval = approval.split_whitespace().next().unwrap();
    assert_eq!(kept.tell(&["approve", "ses_1", approval]).0, 0);
    let (code, said, told) = kept.turn(&["resume", "ses_1"]);
    assert_eq!((code, said.as_str()), (0, "all done\nsecond answer\n"), "{told}");
    let (code, _, told) = kept.turn(&["resume", "ses_1"]);
    assert!(code == 0 && told.contains("nothing of ses_1 is left"), "{told}");
}

/// S7.5: a stop that was asked while nobody had the session is told by whoever opens it next, with the exit code of a
/// stop; the one after that goes on.
#[test]
fn a_stop_that_waited_is_told_and_the_next_resume_goes_on() {
    let kept = Kept::start(r#"{"replies":[{"text":"one"},{"text":"two"}]}"#);
    assert_eq!(kept.turn(&["run", "--session", "ses_1", "a"]).0, 0);
    assert_eq!(kept.tell(&["stop", "ses_1", "--because", "enough"]).0, 0);
    let (code, _, told) = kept.turn(&["resume", "ses_1"]);
    assert!(code == 10 && told.contains("a stop was asked of ses_1 (enough)"), "{told}");
    assert_eq!(kept.tell(&["stop", "ses_1"]).0, 0);
    let (code, said, told) = kept.turn(&["run", "--session", "ses_1", "b"]);
    assert_eq!((code, said.as_str()), (10, ""), "{told}");
    assert!(told.contains("the prompt waits as item-2"), "{told}");
    let (code, said, told) = kept.turn(&["resume", "ses_1"]);
    assert_eq!((code, said.as_str()), (0, "two\n"), "{told}");
}

/// S6.2: what somebody else pushed before comes first, and is shown; the run ends with its own prompt.
#[test]
fn what_waited_before_comes_first() {
    let kept = Kept::start(r#"{"replies":[{"text":"one"},{"text":"two"},{"text":"three"}]}"#);
    assert_eq!(kept.turn(&["run", "--session", "ses_1", "a"]).0, 0);
    assert_eq!(kept.tell(&["push", "ses_1", "b"]).0, 0);
    let (code, said, told) = kept.turn(&["run", "--session", "ses_1", "c"]);
    assert_eq!((code, said.as_str()), (0, "two\nthree\n"), "{told}");
    assert!(told.contains("another turn of this session comes first"), "{told}");
}

/// A kept session keeps text alone: a file is refused, however the session was named.
#[test]
fn a_file_is_refused_where_the_session_is_kept() {
    let kept = Kept::start(r#"{"replies":[]}"#);
    let (code, _, told) = kept.turn(&["run", "x", "--attach", "y.png"]);
    assert!(code == 2 && told.contains("leave out --session and --store"), "{told}");
}
