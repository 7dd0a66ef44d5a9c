//! `run` and `resume` on a stored session: what waits, what was requested meanwhile, and signals at every
//! moment.

use std::{
    io::{BufRead, BufReader, Read as _},
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
    sync::{Arc, mpsc},
};

use rustix::process::Signal;
use safepoint::{
    Agent, Session,
    hook::{HookResult, HookedMessage, Hooks, from_future},
    ids::SessionId,
    raw::{
        encode_item,
        store::{ApprovalsToWithdraw, NewSession, StopIntent},
    },
    session::{ChatPlanner, Policy},
    store::{OwnerProcess, Store as _},
};
use safepoint_models::openai;
use safepoint_stores::SqliteStore;
use safepoint_testkit::{skipped, wait};
use serde_json::Value;

use crate::{Practice, lines, pause, safepoint, signal};

/// A store and a server of one test.
pub(super) struct Kept {
    pub(super) server: Practice,
    folder: tempfile::TempDir,
}

impl Kept {
    pub(super) fn start(script: &str) -> Self {
        Self { server: Practice::start(script), folder: tempfile::tempdir().unwrap() }
    }

    /// Whatever needs a model.
    pub(super) fn turn(&self, args: &[&str]) -> (i32, String, String) {
        let model = ["--base-url", &self.server.url, "--model", "openai:x", "--tools", "shell"];
        self.tell(&[args, &model].concat())
    }

    pub(super) fn tell(&self, args: &[&str]) -> (i32, String, String) {
        self.tell_in(self.store().to_str().unwrap(), args)
    }

    fn tell_in(&self, store: &str, args: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(args, store).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    pub(super) fn command(&self, args: &[&str], store: &str) -> Command {
        let home = self.folder.path();
        let mut command = safepoint(args);
        command.args(["--store", store]).env("HOME", home).env("XDG_RUNTIME_DIR", home);
        command
    }

    pub(super) fn home(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    pub(super) fn store(&self) -> PathBuf {
        self.folder.path().join("s.db")
    }

    /// A running command, and what it shows people.
    pub(super) fn spawn(&self, args: &[&str]) -> (Running, BufReader<ChildStderr>) {
        let model = ["--base-url", &self.server.url, "--model", "openai:x"];
        let mut command = self.command(&[args, &model].concat(), self.store().to_str().unwrap());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        (Running(child), stderr)
    }
}

/// Ended with its test, also where that fails.
pub(super) struct Running(Child);

impl Deref for Running {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.kill().and_then(|()| self.0.wait()).is_err() {
            // It has ended.
        }
    }
}

pub(super) fn until_printed(stderr: &mut impl BufRead, text: &str) -> String {
    let mut printed = String::new();
    while !printed.contains(text) {
        assert!(stderr.read_line(&mut printed).unwrap() > 0, "ended before {text}: {printed}");
    }
    printed
}

/// Every line is as published, and has the next number.
pub(super) fn check(lines: &str) -> Vec<Value> {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/reply.json")).unwrap();
    let schema = safepoint::raw::schema::Schema::new(&schema).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(schema.check(line), Ok(()), "{line}");
        assert_eq!(line["seq"], index as u64, "{line}");
    }
    lines
}

const ASKS: &str = r#"{"replies":[{"calls":[{"name":"shell","args":{"command":"echo ran"}}]},{"text":"all done"},
    {"text":"second answer"}]}"#;

/// S8.1: a prompt that waits behind a decision says where it waits and what to do; after the decision,
/// `resume` runs it too. Nothing hangs.
#[test]
fn a_prompt_behind_a_decision_is_told_so() {
    let kept = Kept::start(ASKS);
    let (code, _, printed) = kept.turn(&["run", "--session", "ses_1", "go", "--then", "never"]);
    assert!(code == 11 && printed.contains("the other prompt was not sent"), "{printed}");
    let (code, said, printed) = kept.turn(&["run", "--session", "ses_1", "and now?"]);
    assert_eq!((code, said.as_str()), (11, ""), "{printed}");
    assert!(
        printed.contains("ses_1 waits for a decision") && printed.contains("queued as item-2"),
        "{printed}"
    );
    let (code, _, printed) = kept.turn(&["resume", "ses_1"]);
    assert!(code == 11 && printed.contains("ses_1 waits for a decision"), "{printed}");
    let approval = kept.tell(&["approvals", "ses_1"]).1;
    let approval = approval.split_whitespace().next().unwrap();
    assert_eq!(kept.tell(&["approve", "ses_1", approval]).0, 0);
    let (code, said, printed) = kept.turn(&["resume", "ses_1"]);
    assert_eq!((code, said.as_str()), (0, "all done\nsecond answer\n"), "{printed}");
    let (code, _, printed) = kept.turn(&["resume", "ses_1"]);
    assert!(code == 0 && printed.contains("session ses_1 has nothing to resume"), "{printed}");
}

/// S7.5: the next owner reports a stop that was requested while the session had no owner, with the exit code
/// of a stop; the owner after that continues.
#[test]
fn a_stop_that_waited_is_told_and_the_next_resume_goes_on() {
    let kept = Kept::start(r#"{"replies":[{"text":"one"},{"text":"two"}]}"#);
    assert_eq!(kept.turn(&["run", "--session", "ses_1", "a"]).0, 0);
    assert_eq!(kept.tell(&["stop", "ses_1", "--because", "enough"]).0, 0);
    // The trace shows it, before an owner has handled it and after.
    let is_traced = || {
        let (_, traced, _) = kept.tell(&["trace", "ses_1"]);
        let words: Vec<&str> = traced.split_whitespace().collect();
        let line = words.join(" ");
        assert!(
            line.contains("stop requested: of the session, through the store; user (person): enough"),
            "{line}"
        );
        super::trace::check(&lines(kept.tell(&["trace", "ses_1", "--json"]).1.as_bytes()));
    };
    is_traced();
    let (code, _, printed) = kept.turn(&["resume", "ses_1"]);
    assert!(code == 10 && printed.contains("session ses_1 was stopped (enough)"), "{printed}");
    is_traced();
    assert_eq!(kept.tell(&["stop", "ses_1"]).0, 0);
    let (code, said, printed) = kept.turn(&["run", "--session", "ses_1", "b"]);
    assert_eq!((code, said.as_str()), (10, ""), "{printed}");
    assert!(printed.contains("queued as item-2"), "{printed}");
    let (code, said, printed) = kept.turn(&["resume", "ses_1"]);
    assert_eq!((code, said.as_str()), (0, "two\n"), "{printed}");
}

/// S6.2: an item that another process pushed before comes first, and is shown; the run ends with its own
/// prompt.
#[test]
fn what_waited_before_comes_first() {
    let kept = Kept::start(r#"{"replies":[{"text":"one"},{"text":"two"},{"text":"three"}]}"#);
    assert_eq!(kept.turn(&["run", "--session", "ses_1", "a"]).0, 0);
    assert_eq!(kept.tell(&["push", "ses_1", "b"]).0, 0);
    let (code, said, printed) = kept.turn(&["run", "--session", "ses_1", "c"]);
    assert_eq!((code, said.as_str()), (0, "two\nthree\n"), "{printed}");
    assert!(printed.contains("another turn of this session comes first"), "{printed}");
}

/// A kept session keeps text alone: a file is refused, however the session was named.
#[test]
fn a_file_is_refused_where_the_session_is_kept() {
    let kept = Kept::start(r#"{"replies":[]}"#);
    let (code, _, printed) = kept.turn(&["run", "x", "--attach", "y.png"]);
    assert!(code == 2 && printed.contains("leave out --session and --store"), "{printed}");
}

/// DESIGN of `--json`: each line of every command says its version, type, session, run, number and time.
#[test]
fn each_line_of_a_control_command_says_what_it_is_about() {
    let kept = Kept::start(ASKS);
    assert_eq!(kept.turn(&["run", "--session", "ses_1", "go"]).0, 11);
    let approval = check(&kept.tell(&["approvals", "ses_1", "--json"]).1);
    let approval = approval[0]["approval_id"].as_str().unwrap().to_owned();
    let push = ["push", "ses_1", "b", "--json"];
    for (args, code, kind) in [
        (&push[..], 0, "reply"),
        (&["withdraw", "ses_1", "item-2", "--json"], 0, "reply"),
        (&["withdraw", "ses_1", "item-99", "--json"], 3, "reply"),
        (&["push", "ses_none", "b", "--json"], 3, "reply"),
        (&["approve", "ses_1", &approval, "--json"], 0, "decided"),
        (&["sessions", "ls", "--json"], 0, "session"),
        (&["sessions", "show", "ses_1", "--json"], 0, "session"),
        (&["store", "check", "--json"], 0, "checked"),
        (&["store", "export", "ses_1"], 0, "record"),
        (&["stop", "ses_1", "--json"], 0, "reply"),
        (&["sessions", "fork", "ses_1", "--name", "ses_2", "--json"], 0, "forked"),
        (&["sessions", "fork", "ses_1", "--name", "ses_2", "--json"], 5, "forked"),
        (&["sessions", "fork", "ses_1", "--at", "9", "--json"], 3, "forked"),
        (&["sessions", "rm", "ses_1", "--json"], 0, "removed"),
    ] {
        let (got, said, printed) = kept.tell(args);
        let lines = check(&said);
        assert_eq!((got, lines.is_empty()), (code, false), "{args:?}: {said}{printed}");
        for line in lines {
            let session = if args[1] == "ses_none" { "ses_none" } else { "ses_1" };
            assert_eq!((&line["type"], &line["session"]), (&kind.into(), &session.into()), "{args:?}");
        }
    }
}

/// S6.2: what says nothing is refused before anybody is asked.
#[test]
fn a_blank_push_is_wrong_usage() {
    let kept = Kept::start(r#"{"replies":[]}"#);
    for args in
        [["push", "ses_1", ""], ["push", "ses_1", " \n"], ["steer", "ses_1", "  "], ["push", "ses_1", "-"]]
    {
        let (code, _, printed) = kept.tell(&args);
        assert!(code == 2 && printed.contains("there is nothing in it"), "{args:?}: {printed}");
    }
}

/// S2.7: an interrupt while another turn comes first ends the run, and says where its own prompt is.
#[test]
fn an_interrupt_during_another_turn_says_where_the_prompt_is() {
    let calls = r#"{"calls":[{"name":"shell","args":{"command":"sleep 1000"}}]}"#;
    let kept = Kept::start(&format!(r#"{{"replies":[{{"text":"one"}},{calls}]}}"#));
    assert_eq!(kept.turn(&["run", "--session", "ses_1", "a"]).0, 0);
    assert_eq!(kept.tell(&["push", "ses_1", "b"]).0, 0);
    let args = ["run", "--session", "ses_1", "--approve", "auto", "--tools", "shell", "--grace", "0", "c"];
    let (mut child, mut stderr) = kept.spawn(&args);
    let mut printed = until_printed(&mut stderr, "▸ shell");
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    stderr.read_to_string(&mut printed).unwrap();
    assert!(printed.contains("another turn of this session comes first"), "{printed}");
    assert!(printed.contains("queued as item-3"), "{printed}");
}

/// S6.1: a living owner that does not answer is reported as not answering, and a push to a stored session
/// waits in its store.
#[test]
fn an_owner_that_does_not_answer_is_told() {
    let calls = r#"{"calls":[{"name":"shell","args":{"command":"sleep 1000"}}]}"#;
    let kept = Kept::start(&format!(r#"{{"replies":[{calls}]}}"#));
    let args = ["run", "--session", "ses_1", "--approve", "auto", "--tools", "shell", "go"];
    let (mut child, mut stderr) = kept.spawn(&args);
    until_printed(&mut stderr, "▸ shell");
    pause::between_writes(&child, &kept.store());
    let listed = check(&kept.tell(&["sessions", "ls", "--json"]).1);
    assert_eq!((&listed[0]["state"], &listed[0]["kept"]), (&"not answering".into(), &true.into()));
    let (code, said, _) = kept.tell(&["sessions", "show", "ses_1"]);
    assert!(code == 0 && said.contains("ses_1: not answering"), "{said}");
    let (code, said, _) = kept.tell(&["push", "ses_1", "later"]);
    assert!(code == 0 && said.contains(&format!("its owner (pid {}) does not answer", child.id())), "{said}");
    // A client that does not know the store has nowhere to leave it.
    let elsewhere = kept.folder.path().join("none.db");
    let (code, _, printed) = kept.tell_in(elsewhere.to_str().unwrap(), &["push", "ses_1", "later"]);
    assert!(code == 1 && printed.contains("does not answer") && printed.contains("--store"), "{printed}");
    signal(&child, Signal::CONT);
    for _twice in 0..2 {
        signal(&child, Signal::INT);
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// A list into a closed pipe shows no error: the exit code is that of a closed pipe.
#[test]
fn a_closed_pipe_is_no_failure() {
    let kept = Kept::start(r#"{"replies":[{"text":"hello"}]}"#);
    assert_eq!(kept.turn(&["run", "hi", "--session", "s"]).0, 0);
    for args in [&["sessions", "show", "s"][..], &["sessions", "ls"], &["trace", "s"], &["store", "check"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = kept.command(args, kept.store().to_str().unwrap());
        let output =
            command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(!printed.contains("panicked"), "{args:?}: {printed}");
        assert_ne!(output.status.code(), Some(101), "{args:?}: {printed}");
    }
}

/// Tells when a model's message was recorded, and does not return.
struct Stays(mpsc::Sender<()>);

impl Hooks for Stays {
    fn after_model(&self, _message: &HookedMessage) -> HookResult<()> {
        self.0.send(()).unwrap();
        from_future(std::future::pending())
    }
}

/// S7.8, S11.4: the resume prints an answer that was recorded before its process died, though it gets no
/// event of it.
#[test]
fn an_answer_that_was_recorded_is_printed_by_the_resume() {
    let kept = Kept::start(r#"{"replies":[{"text":"the answer"}]}"#);
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let owner = OwnerProcess { pid: gone.id(), started: 1, ..OwnerProcess::here() };
    let (tell, recorded) = mpsc::channel();
    let model = openai::model("x").base_url(&kept.server.url);
    let agent = Agent::builder(model).hooks(Stays(tell)).build();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _session = runtime.block_on(async {
        let store = Arc::new(SqliteStore::open(kept.store()).unwrap());
        let session =
            Session::builder(ChatPlanner::new(agent)).open(store, SessionId::from("s"), owner).await.unwrap();
        session.push("go".to_owned()).unwrap();
        session
    });
    recorded.recv_timeout(wait::patience()).unwrap();
    let (code, said, printed) = kept.turn(&["resume", "s"]);
    assert_eq!((code, said.as_str()), (0, "the answer\n"), "{printed}");
}

/// S7.6, S7.7, S7.5: an item that was altered in the store is named, not delivered, and can be removed. A
/// stop that cannot be read is a stop, and reported as one.
#[test]
fn what_is_damaged_in_the_store_is_told() {
    let kept = Kept::start(r#"{"replies":[{"text":"one"},{"text":"two"}]}"#);
    assert_eq!(kept.turn(&["run", "--session", "ses_1", "a"]).0, 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (store, id) = (SqliteStore::open(kept.store()).unwrap(), SessionId::from("ses_1"));
        let mut push = encode_item(&"pay one".to_owned(), Policy::Enqueue, None, 8).unwrap();
        push.bytes = String::from_utf8(push.bytes).unwrap().replace("one", "two").into_bytes();
        store.push(&id, push).await.unwrap();
        let garbage = StopIntent { bytes: b"garbage".to_vec(), approvals: ApprovalsToWithdraw::Stay };
        store.ask_stop(&id, garbage).await.unwrap();
    });
    let (code, checked, _) = kept.tell(&["store", "check"]);
    assert!(code == 1 && checked.contains("item-2: it is damaged"), "{checked}");
    let (code, _, printed) = kept.turn(&["resume", "ses_1"]);
    assert!(
        code == 10 && printed.contains("session ses_1 was stopped (the stop intent cannot be read"),
        "{printed}"
    );
    let (code, said, printed) = kept.turn(&["resume", "ses_1"]);
    assert_eq!((code, said.as_str()), (0, ""), "{printed}");
    assert!(printed.contains("item-2 is not delivered, it is damaged"), "{printed}");
    assert!(
        printed.contains("session ses_1 has nothing to resume, except undelivered messages"),
        "{printed}"
    );
    assert_eq!(kept.tell(&["withdraw", "ses_1", "item-2"]).0, 0);
    let (code, _, printed) = kept.turn(&["resume", "ses_1"]);
    assert!(code == 0 && !printed.contains("not delivered"), "{printed}");
    let (code, checked, _) = kept.tell(&["store", "check"]);
    assert!(code == 1 && checked.contains("stop 1: the stop intent cannot be read"), "{checked}");
}

/// S7.6: on a disk without any room the removal of a session says what to do, and after that it works.
#[test]
fn a_removal_on_a_full_disk_says_what_to_do() {
    const PLAN: &str =
        "mount -t tmpfs -o size=1024k none \"$1\" && cp \"$2\" \"$1/s.db\" && cd \"$1\" || exit 99
        rm() { \"$3\" sessions rm \"$4\" --store \"$1/s.db\"; }
        cat /dev/zero > ballast 2> /dev/null
        rm \"$@\"; first=$?
        truncate -s -512k ballast
        rm \"$@\" && exit $first";
    let kept = Kept::start(r#"{"replies":[{"text":"hello"}]}"#);
    assert_eq!(kept.turn(&["run", "--session", "ses_full", "hi"]).0, 0);
    let (disk, store) = (tempfile::tempdir().unwrap(), kept.store());
    // Nothing lies beside the file.
    SqliteStore::open(&store).unwrap().close();
    let args = [disk.path(), &store, Path::new(crate::BIN), Path::new("ses_full")];
    let mut plan = Command::new("unshare");
    plan.args(["-m", "sh", "-c", PLAN, "sh"]).args(args).env("HOME", kept.home());
    let output = match plan.output() {
        Ok(output) => output,
        Err(error) => return skipped(format_args!("there is no unshare here: {error}")),
    };
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(99) || printed.starts_with("unshare:") {
        return skipped(format_args!("no disk of its own may be made here: {}", printed.trim()));
    }
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("the store is full") && printed.contains("free space on the store's disk"),
        "{printed}"
    );
    assert!(printed.contains("removed ses_full"), "{printed}");
}

/// S7.16: `run` creates a session and its prompt in one transaction, which has one time; a prompt for a session
/// that exists comes later.
#[test]
fn a_session_is_created_with_its_prompt() {
    let kept = Kept::start(ASKS);
    for prompt in ["go", "and now?"] {
        let (code, _, printed) = kept.turn(&["run", "--session", "ses_1", prompt]);
        assert_eq!(code, 11, "{printed}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = SqliteStore::open(kept.store()).unwrap();
    let row = runtime.block_on(store.open(&"ses_1".into())).unwrap();
    let items = runtime.block_on(store.inbox(&"ses_1".into())).unwrap();
    let with_the_session: Vec<bool> = items.iter().map(|item| item.at == row.created).collect();
    assert_eq!(with_the_session, [true, false]);
    assert!(row.setup.contains("openai:x"), "{}", row.setup);
}

/// S7.16, S2.7: a signal while another process keeps the store from being written ends the command, and its
/// prompt waits nowhere.
#[test]
fn a_signal_before_the_first_turn_leaves_no_prompt() {
    let kept = Kept::start(ASKS);
    SqliteStore::open(kept.store()).unwrap().close();
    let other = rusqlite::Connection::open(kept.store()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (mut child, mut stderr) = kept.spawn(&["run", "--session", "ses_1", "go"]);
    let fds = format!("/proc/{}/fd", child.id());
    wait::until("it has the store open", || {
        let mut open =
            std::fs::read_dir(&fds).unwrap().filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        open.any(|file| file == kept.store())
    });
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut printed = String::new();
    stderr.read_to_string(&mut printed).unwrap();
    assert!(printed.contains("safepoint: stopped before"), "{printed}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(kept.turn(&["resume", "ses_1"]).0, 3, "there is no such session");
}

/// S7.2: a session without any item, as of a chat that was killed before its first message, is reported as
/// empty, and is no success; a later prompt gets its turn.
#[test]
fn a_session_that_was_given_nothing_is_told_as_that() {
    let kept = Kept::start(r#"{"replies":[{"text":"one"}]}"#);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(kept.store()).unwrap();
        store.create(NewSession::of("ses_1")).await.unwrap();
    });
    let (code, said, printed) = kept.turn(&["resume", "ses_1"]);
    assert_eq!((code, said.as_str()), (3, ""), "{printed}");
    assert!(printed.contains("session ses_1 has no turn") && printed.contains("Send it again"), "{printed}");
    let (code, said, printed) = kept.turn(&["resume", "ses_1", "a"]);
    assert_eq!((code, said.as_str()), (0, "one\n"), "{printed}");
    let (code, _, printed) = kept.turn(&["resume", "ses_1"]);
    assert!(code == 0 && printed.contains("session ses_1 has nothing to resume"), "{printed}");
}
