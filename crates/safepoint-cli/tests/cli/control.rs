//! A running session as it is talked to from another terminal.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::PathBuf,
    process::{Child, Stdio},
};

use serde_json::Value;

use crate::{Practice, safepoint};

/// A chat without a terminal, and the directory of its socket.
struct Session {
    child: Child,
    folder: tempfile::TempDir,
    id: String,
}

impl Session {
    /// Started with one message.
    fn start(server: &Practice, command: &str, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child =
            safepoint(&[command, "--base-url", &server.url, "--model", "openai:x", "--approve", "auto"])
                .args(["--tools", "shell"])
                .args(args)
                .env("XDG_RUNTIME_DIR", folder.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
        if command == "chat" {
            child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        }
        let mut session = Self { child, folder, id: String::new() };
        session.until_stderr("▸ shell");
        let listed = session.ask(&["sessions", "ls", "--json"]);
        session.id = listed.1[0]["session"].as_str().unwrap().to_owned();
        session
    }

    fn until_stderr(&mut self, text: &str) {
        let mut reader = BufReader::new(self.child.stderr.as_mut().unwrap());
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0, "ended before {text}");
        }
    }

    fn ask(&self, args: &[&str]) -> (i32, Vec<Value>) {
        let output = safepoint(args).env("XDG_RUNTIME_DIR", self.folder.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (output.status.code().unwrap(), lines)
    }

    /// A command on this session, with `--json`.
    fn tell(&self, command: &str, args: &[&str]) -> (i32, Vec<Value>) {
        self.ask(&[&[command, &self.id, "--json"], args].concat())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("safepoint").join(format!("{}.sock", self.id))
    }

    /// One line to the socket, and the answer.
    fn raw(&self, line: &[u8]) -> Value {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.write_all(line).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            // It has ended.
        }
    }
}

fn calling(then: &[&str]) -> String {
    let calls = serde_json::json!([{"name": "shell", "args": {"command": "sleep 1000"}}]);
    let mut replies = vec![serde_json::json!({ "calls": calls })];
    replies.extend(then.iter().map(|text| serde_json::json!({ "text": text })));
    serde_json::json!({ "replies": replies }).to_string()
}

fn status(reply: &Value) -> &str {
    reply["status"].as_str().unwrap()
}

/// S6.2, S6.5, S6.12: what is pushed from elsewhere is accepted, seen, and taken back; each refusal has its own code.
#[test]
fn a_session_is_pushed_steered_and_its_items_withdrawn() {
    let server = Practice::start(&calling(&[]));
    let session = Session::start(&server, "chat", &[]);
    assert_eq!(session.tell("push", &["one"]).0, 0);
    let (code, replies) = session.tell("push", &["two", "--id", "mine"]);
    assert_eq!((code, status(&replies[0])), (0, "accepted"));
    let item = replies[0]["detail"]["item"].as_str().unwrap();
    let again = session.tell("push", &["two", "--id", "mine"]);
    assert_eq!((again.0, again.1[0]["detail"]["item"].as_str().unwrap()), (0, item), "the same is the same");
    assert_eq!(session.tell("push", &["other", "--id", "mine"]).0, 5);
    assert_eq!(session.tell("push", &["x", "--policy", "reject"]).0, 5);
    assert_eq!(session.tell("push", &["x", "--policy", "preempt", "--turn", "turn-9"]).0, 5);
    assert_eq!(session.tell("push", &["x", "--policy", "preempt", "--at", "nonsense"]).0, 2);
    assert_eq!(session.tell("steer", &["and this"]).0, 0);
    let shown = session.ask(&["sessions", "show", &session.id, "--json"]).1;
    let waiting = shown[0]["detail"]["waiting"].to_string();
    assert!(waiting.contains("one") && waiting.contains("and this"), "{waiting}");
    assert_eq!(session.tell("withdraw", &[item]).1[0]["detail"]["text"], "two");
    assert_eq!(session.tell("withdraw", &[item]).0, 4);
    assert_eq!(session.tell("withdraw", &["item-99"]).0, 3);
    assert_eq!(session.tell("withdraw", &["nonsense"]).0, 2);
}

/// S6.7: a stop from another process ends the session; a waiting client gets the outcome; an ended session is
/// not found.
#[test]
fn a_session_is_stopped_from_elsewhere() {
    let server = Practice::start(&calling(&[]));
    let mut session = Session::start(&server, "chat", &[]);
    assert_eq!(session.tell("stop", &["--call", "no-such-call", "--now"]).0, 3);
    assert_eq!(session.tell("stop", &["--run", "no-such-run"]).0, 3);
    assert_eq!(session.tell("stop", &["--at", "nonsense"]).0, 2);
    assert_eq!(session.tell("stop", &["--at", "turn-end", "--wait", "--timeout", "100ms"]).0, 7);
    let (code, replies) = session.tell("stop", &["--now", "--because", "enough", "--wait=quiet"]);
    assert_eq!(code, 0, "{replies:?}");
    assert_eq!((status(&replies[0]), status(&replies[1])), ("strengthened", "ended"));
    assert_eq!(session.child.wait().unwrap().code(), Some(10));
    assert_eq!(session.tell("stop", &[]).0, 3);
    assert!(!session.socket().exists());
}

/// S2.10: a stop of one call alone: the run continues, and the model gets the result.
#[test]
fn one_call_is_stopped_from_elsewhere() {
    let server = Practice::start(&calling(&["went on"]));
    let session = Session::start(&server, "chat", &[]);
    let call = server.logged().iter().find_map(|line| {
        let text = line.to_string();
        let at = text.find("call_")?;
        Some(text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>())
    });
    let call = call.unwrap_or_else(|| "call_0000010".to_owned());
    let (code, replies) = session.tell("stop", &["--call", &call, "--now"]);
    assert_eq!((code, status(&replies[0])), (0, "first"), "{replies:?}");
    let mut said = String::new();
    let mut session = session;
    BufReader::new(session.child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "went on\n");
}

/// A preempt from elsewhere stops the turn, and the next one answers it.
#[test]
fn a_preempt_from_elsewhere_is_answered() {
    let server = Practice::start(&calling(&["instead"]));
    let session = Session::start(&server, "chat", &[]);
    let (code, replies) = session.tell("push", &["this instead", "--policy", "preempt", "--wait"]);
    assert_eq!(code, 0, "{replies:?}");
    assert_eq!(replies[1]["detail"]["fate"]["fate"], "completed");
}

/// A single run can be stopped and steered too; nothing can wait in it.
#[test]
fn a_run_is_stopped_from_elsewhere() {
    let server = Practice::start(&calling(&[]));
    let mut session = Session::start(&server, "run", &["go", "--then", "never"]);
    assert_eq!(session.tell("push", &["x"]).0, 6);
    assert_eq!(session.tell("steer", &["x"]).0, 0);
    let (code, replies) = session.tell("stop", &["--within", "200ms", "--wait"]);
    assert_eq!((code, status(&replies[1])), (0, "stopped"), "{replies:?}");
    assert_eq!(replies[1]["detail"]["receipt"]["stop"]["escalated"], "by_deadline");
    assert_eq!(session.child.wait().unwrap().code(), Some(10));
    assert_eq!(server.logged().iter().filter(|line| line.to_string().contains("never")).count(), 0);
}

/// The socket may receive anything: the session answers it and continues. No other user can reach the socket.
#[test]
fn the_socket_trusts_nobody() {
    let server = Practice::start(&calling(&[]));
    let session = Session::start(&server, "chat", &[]);
    for line in [
        &b"nonsense\n"[..],
        b"{\"v\":9,\"ask\":{\"do\":\"show\"}}\n",
        b"{\"v\":1,\"ask\":{\"do\":\"withdraw\"}}\n",
        b"{\"v\":1,\"ask\":{\"do\":\"explode\"}}\n",
        b"\xff\xfe\n",
        &[vec![b'x'; 1 << 20], vec![b'\n']].concat(),
    ] {
        let answer = session.raw(line);
        assert_eq!((answer["code"].as_u64(), answer["last"].as_bool()), (Some(2), Some(true)), "{answer}");
    }
    drop(UnixStream::connect(session.socket()).unwrap());
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(session.folder.path().join("safepoint")), mode(session.socket())), (0o700, 0o600));
    assert_eq!(session.ask(&["sessions", "show", &session.id[session.id.len() - 8..], "--json"]).0, 0);
}

/// A socket that was left behind by a process that is gone is cleaned away, and a foreign directory is not used.
#[test]
fn what_was_left_behind_is_cleaned_away() {
    let server = Practice::start(&calling(&[]));
    let mut session = Session::start(&server, "chat", &[]);
    session.child.kill().unwrap();
    session.child.wait().unwrap();
    assert!(session.socket().exists());
    assert_eq!(session.ask(&["sessions", "ls", "--json"]), (0, Vec::new()));
    assert!(!session.socket().exists());
    let folder = session.folder.path().join("safepoint");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let output =
        safepoint(&["sessions", "ls"]).env("XDG_RUNTIME_DIR", session.folder.path()).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && printed.contains("not a directory of yours alone"),
        "{printed}"
    );
}
