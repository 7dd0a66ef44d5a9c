//! The binary as a user or a script meets it: exit codes, lines of JSON, signals, errors that say what to do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::wait;
use serde_json::Value;

mod cli {
    mod approvals;
    mod asked;
    mod attention;
    mod chat;
    mod chat_kept;
    mod control;
    mod conversations;
    mod copied;
    #[cfg(not(feature = "postgres"))]
    mod database;
    mod early;
    mod edits;
    mod environment;
    mod floods;
    mod hostile;
    mod kept;
    mod kept_inbox;
    mod login;
    mod markdown;
    mod meter;
    mod models;
    mod modes;
    mod names;
    mod newcomer;
    mod outgoing;
    mod place;
    mod practice;
    mod project;
    mod prompt;
    mod provider;
    mod redacted;
    mod rewind;
    mod rules;
    mod sandbox;
    mod setup;
    mod stopped;
    mod survivors;
    mod tasks;
    mod terminal;
    mod thoughts;
    mod told;
    mod trace;
    mod typing;
    mod unread;
}

#[path = "../../../tests/crash/pause.rs"]
mod pause;

const BIN: &str = env!("CARGO_BIN_EXE_safepoint");

/// A `safepoint` that sees nothing of the tester's own environment.
fn safepoint(args: &[&str]) -> Command {
    let mut command = Command::new(BIN);
    command
        .args(args)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    safepoint(args).output().unwrap()
}

/// A practice server with a script, killed when dropped.
struct Practice {
    child: Child,
    url: String,
    log: tempfile::NamedTempFile,
    _script: tempfile::NamedTempFile,
}

impl Practice {
    fn start(script: &str) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), script).unwrap();
        let log = tempfile::NamedTempFile::new().unwrap();
        let (script, log_path) = (file.path().to_str().unwrap(), log.path().to_str().unwrap());
        let mut child =
            safepoint(&["practice", "--script", script, "--listen", "127.0.0.1:0", "--log", log_path])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = serde_json::from_str::<Value>(&line).unwrap()["listening"].as_str().unwrap().to_owned();
        Self { child, url: format!("{url}/v1"), log, _script: file }
    }

    fn logged(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log.path()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Practice {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn lines(stdout: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Every line is as published, numbers are gapless, and each turn ends with exactly one outcome.
fn check(lines: &[Value], turns: u64) {
    let schema: Value = serde_json::from_str(include_str!("../../../docs/schema/event.json")).unwrap();
    let schema = safepoint::raw::schema::Schema::new(&schema).unwrap();
    for line in lines {
        assert_eq!(schema.check(line), Ok(()), "{line}");
    }
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(line["seq"], index as u64, "{line}");
        for field in ["v", "type", "session", "run", "epoch", "at", "turn"] {
            assert!(!line[field].is_null(), "{field} in {line}");
        }
    }
    for turn in 1..=turns {
        let of_turn: Vec<&Value> = lines.iter().filter(|line| line["turn"] == turn).collect();
        let outcomes = of_turn.iter().filter(|line| line["type"] == "outcome").count();
        assert_eq!((outcomes, &of_turn.last().unwrap()["type"]), (1, &Value::from("outcome")));
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Reads lines until one has this type.
fn until(reader: &mut BufReader<ChildStdout>, kind: &str) -> Vec<Value> {
    let mut seen = Vec::new();
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "ended before {kind}: {seen:?}");
        seen.push(serde_json::from_str::<Value>(&line).unwrap());
        if seen.last().unwrap()["type"] == kind {
            return seen;
        }
    }
}

const STREAM: &str = r#"{"replies":[{"text":"a long text that streams slowly enough to be cut somewhere in its middle","chunk_chars":4,"delay_ms":30},{"text":"and on"}]}"#;

fn wires() -> [&'static str; 4] {
    ["openai:x", "anthropic:x", "responses:x", "gemini:x"]
}

/// S3.1: done is 0, the text is on stdout and nothing else.
#[test]
fn a_run_prints_its_answer() {
    let server = Practice::start(r#"{"replies":[{"text":"hello there"}]}"#);
    for wire in wires() {
        let output = run(&["run", "--base-url", &server.url, "--model", wire, "hi"]);
        let text = if wire == "openai:x" { "hello there\n" } else { "You said: hi\n" };
        assert_eq!((String::from_utf8_lossy(&output.stdout).as_ref(), output.status.code()), (text, Some(0)));
    }
}

/// S3.7, S3.9, S2.2: Ctrl-C with no grace, mid-stream: 130, one outcome with what was shown, usage and its source.
/// openai/codex#4721: an interrupt exits with 0; openai/codex#8785: it gives no usage; mastra-ai/mastra#21522,
/// github/copilot-cli#4561: no last line says that it was stopped.
#[test]
fn an_interrupt_mid_stream_is_130_with_a_whole_account() {
    for wire in wires() {
        let server = Practice::start(STREAM);
        let mut child =
            safepoint(&["run", "--base-url", &server.url, "--model", wire, "--grace", "0", "--json", "hi"])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut seen = until(&mut reader, "text_delta");
        signal(&child, Signal::INT);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        seen.extend(lines(&rest));
        assert_eq!(child.wait().unwrap().code(), Some(130));
        check(&seen, 1);
        let outcome = seen.last().unwrap();
        assert_eq!((&outcome["status"], &outcome["reason"]["code"]), (&"stopped".into(), &"user".into()));
        let partial = outcome["partial_text"].as_str().unwrap();
        assert!(!partial.is_empty() && "a long text that streams".starts_with(&partial[..4]));
        assert!(outcome["usage"]["input"].as_u64().unwrap() > 0 && !outcome["usage"]["source"].is_null());
        assert!(!outcome["receipt"]["quiet"].is_null());
        assert!(outcome["answer"].is_null() && outcome["error"].is_null());
        wait::until("the server sees the socket close", || {
            server.logged().iter().any(|line| line["type"] == "peer_closed")
        });
    }
}

/// S1.5: SIGTERM is 143.
#[test]
fn a_termination_is_143() {
    let server = Practice::start(STREAM);
    let mut child =
        safepoint(&["run", "--base-url", &server.url, "--model", "openai:x", "--grace", "0", "--json", "hi"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    until(&mut reader, "text_delta");
    signal(&child, Signal::TERM);
    until(&mut reader, "outcome");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// S4.9, S2.7: Ctrl-C twice during a shell tool: now, no process left, within a second or so.
/// aaif-goose/goose#946, anomalyco/opencode#3057: an interrupt ends the program and not its commands, or nothing.
#[test]
fn two_interrupts_leave_no_process() {
    // A number of seconds that no other process sleeps for.
    let mark = format!("9{:08}", std::process::id());
    let command = format!("trap '' INT TERM; setsid sleep {mark} & sleep {mark}");
    let script = serde_json::json!({"replies": [{"calls": [{"name": "shell", "args": {"command": command}}]}, {"text": "ok"}]});
    let server = Practice::start(&script.to_string());
    let args = [
        "run",
        "--base-url",
        &server.url,
        "--model",
        "openai:x",
        "--tools",
        "shell",
        "--approve",
        "auto",
        "--json",
    ];
    let mut child = safepoint(&[&args[..], &["go"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    until(&mut reader, "call_started");
    wait::until("the command begins", || sleepers(&mark) >= 2);
    signal(&child, Signal::INT);
    until(&mut reader, "stop_requested");
    signal(&child, Signal::INT);
    let asked = Instant::now();
    let rest = until(&mut reader, "outcome");
    assert!(rest.iter().any(|line| line["type"] == "call_ended"));
    let outcome = rest.last().unwrap();
    assert_eq!(outcome["status"], "stopped");
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(sleepers(&mark), 0, "a process of the command lives");
}

/// S3.6, S4.9: a declared background job serves the next turn, ends with the last one, and holds nothing up.
#[test]
fn a_background_job_ends_with_the_last_turn() {
    let mark = format!("7{:08}", std::process::id());
    let job = serde_json::json!({"command": format!("sleep {mark}"), "background": true});
    let look = serde_json::json!({"command": format!("pgrep -fx 'sleep {mark}'")});
    let call = |args| serde_json::json!({"calls": [{"name": "shell", "args": args}]});
    let script =
        serde_json::json!({"replies": [call(job), {"text": "started"}, call(look), {"text": "seen"}]});
    let server = Practice::start(&script.to_string());
    let args =
        ["run", "--base-url", &server.url, "--model", "openai:x", "--tools", "shell", "--approve", "auto"];
    let began = Instant::now();
    let output = run(&[&args[..], &["--json", "go", "--then", "look"]].concat());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let printed = String::from_utf8_lossy(&output.stderr);
    let seen = lines(&output.stdout);
    check(&seen, 2);
    let outcomes: Vec<&Value> = seen.iter().filter(|line| line["type"] == "outcome").collect();
    assert!(outcomes[0]["receipt"]["survivors"][0].as_str().unwrap().starts_with("background command"));
    let ended: Vec<&Value> = seen.iter().filter(|line| line["type"] == "call_ended").collect();
    assert!(ended[1]["output"].as_str().unwrap().trim().parse::<u32>().is_ok(), "it lived: {}", ended[1]);
    assert_eq!((output.status.code(), sleepers(&mark)), (Some(0), 0), "{printed}");
}

/// S3.6: where the last turn has begun a job, that it ends is said, and the run is quiet.
#[test]
fn a_run_that_began_a_job_is_quiet_in_the_end() {
    let mark = format!("6{:08}", std::process::id());
    let job = serde_json::json!({"command": format!("sleep {mark}"), "background": true});
    let script =
        serde_json::json!({"replies": [{"calls": [{"name": "shell", "args": job}]}, {"text": "started"}]});
    let server = Practice::start(&script.to_string());
    let args =
        ["run", "--base-url", &server.url, "--model", "openai:x", "--tools", "shell", "--approve", "auto"];
    let output = run(&[&args[..], &["--json", "go"]].concat());
    let printed = String::from_utf8_lossy(&output.stderr);
    let seen = lines(&output.stdout);
    check(&seen, 1);
    assert!(!seen.last().unwrap()["receipt"]["quiet"].is_null(), "{}", seen.last().unwrap());
    assert!(printed.contains("the background command (pid"), "{printed}");
    assert_eq!((output.status.code(), sleepers(&mark)), (Some(0), 0));
}

fn sleepers(mark: &str) -> usize {
    let wanted = format!("sleep\0{mark}\0");
    let is_one = |process: &std::fs::DirEntry| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())
    };
    std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(is_one).count()
}

/// S5.1, S5.4: `--then` continues after a stopped turn, and the server (strict) accepts the history.
#[test]
fn then_goes_on_after_a_stopped_turn() {
    for wire in wires() {
        let server = Practice::start(STREAM);
        let mut child = safepoint(&[
            "run",
            "--base-url",
            &server.url,
            "--model",
            wire,
            "--grace",
            "0",
            "--json",
            "hi",
            "--then",
            "go on",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut seen = until(&mut reader, "text_delta");
        signal(&child, Signal::INT);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        seen.extend(lines(&rest));
        check(&seen, 2);
        let outcomes: Vec<&Value> = seen.iter().filter(|line| line["type"] == "outcome").collect();
        assert_eq!((&outcomes[0]["status"], &outcomes[1]["status"]), (&"stopped".into(), &"done".into()));
        assert_eq!(outcomes[1]["answer"], "and on");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

/// S3.3: a reader that goes away stops the run.
#[test]
fn a_closed_stdout_stops_the_run() {
    let server = Practice::start(STREAM);
    let mut child = safepoint(&["run", "--base-url", &server.url, "--model", "openai:x", "hi"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(10));
    let mut printed = String::new();
    child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(printed.contains("disconnect"), "{printed}");
}

/// S12.1: a limit is 10.
#[test]
fn a_limit_is_10() {
    let calls = r#"{"calls":[{"name":"sleep","args":{"seconds":0}}]}"#;
    let server = Practice::start(&format!(r#"{{"replies":[{calls}],"repeat":true}}"#));
    let output = run(&[
        "run",
        "--base-url",
        &server.url,
        "--model",
        "openai:x",
        "--tools",
        "sleep",
        "--max-rounds",
        "3",
        "--json",
        "go",
    ]);
    let seen = lines(&output.stdout);
    check(&seen, 1);
    assert_eq!(output.status.code(), Some(10));
    assert_eq!(seen.last().unwrap()["reason"]["code"], "max_rounds");
}

/// S8.2: a call that needs approval is denied where no user can answer, and `auto` lets it run.
#[test]
fn approval_is_denied_where_nobody_can_be_asked() {
    let script = r#"{"replies":[{"calls":[{"name":"shell","args":{"command":"echo ran"}}]},{"text":"ok"}]}"#;
    for (mode, status) in [("ask", "denied"), ("deny", "denied"), ("auto", "completed")] {
        let server = Practice::start(script);
        let args = ["run", "--base-url", &server.url, "--model", "openai:x", "--tools", "shell", "--json"];
        let output = run(&[&args[..], &["--approve", mode, "go"]].concat());
        let seen = lines(&output.stdout);
        check(&seen, 1);
        let ended = seen.iter().find(|line| line["type"] == "call_ended").unwrap();
        assert_eq!(ended["status"], status, "{mode}: {ended}");
    }
}

/// S12.42: the help of each command that takes a model lists the providers.
#[test]
fn the_help_lists_the_providers() {
    for command in ["run", "chat", "resume"] {
        let output = safepoint(&[command, "--help"]).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        for provider in safepoint_models::PROVIDERS {
            assert!(help.contains(provider.name()), "{command}: {} is not in {help}", provider.name());
        }
    }
}

/// S1.6: errors say what happened and what to do, on stderr, with the right code.
#[test]
fn errors_say_what_to_do() {
    let server = Practice::start(r#"{"replies":[{"fault":{"status":{"status":401}}}]}"#);
    let wrong = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(wrong.path(), "modle = 'x'").unwrap();
    let wrong = wrong.path().to_str().unwrap();
    for (args, code, says) in [
        (vec!["run", "--model", "openai:x", "hi"], 2, "OPENAI_API_KEY"),
        (vec!["run", "--model", "x", "hi"], 2, "PROVIDER:NAME"),
        (vec!["run", "--model", "cohere:x", "hi"], 2, "no provider `cohere`"),
        (vec!["run", "--model", "antropic:x", "hi"], 2, "did you mean `anthropic`?"),
        (vec!["run", "--model", "groq:x", "hi"], 2, "GROQ_API_KEY"),
        (vec!["run", "--model", "ollama:x", "--max-tokens", "0", "hi"], 2, "`max_tokens`"),
        (vec!["run", "--base-url", "nonsense", "--model", "openai:x", "hi"], 2, "http://127.0.0.1:8080/v1"),
        (
            vec!["run", "--base-url", "http://127.0.0.1:1/v1", "--model", "openai:x", "hi"],
            1,
            "could not reach",
        ),
        (vec!["run", "--base-url", &server.url, "--model", "openai:x", "hi"], 1, "check the API key"),
        (
            vec!["run", "--base-url", &server.url, "--model", "openai:x", "--tools", "bash", "hi"],
            2,
            "there are shell",
        ),
        (vec!["run", "--config", "/no/such/file", "hi"], 2, "cannot be read"),
        (vec!["run", "--config", wrong, "hi"], 2, "modle"),
        (vec!["run", "--model", "openai:x", "--api-key-env", "NO_SUCH", "hi"], 2, "NO_SUCH"),
        (vec!["run", "--grace", "5", "hi"], 2, "500ms"),
        (vec!["run", ""], 2, "what should it do?"),
        (vec!["run", "hi", "--then", " "], 2, "a prompt is empty"),
        (vec!["resume", "s", ""], 2, "a prompt is empty"),
        (vec!["run", "--model", "practice", "--temperature", "nan", "hi"], 2, "--temperature"),
        (vec!["run", "--model", "practice", "--parallel", "0", "hi"], 2, "--parallel"),
        (vec!["run", "--model", "practice", "--root", "/no/such", "hi"], 2, "--root"),
        (vec!["practice", "--log", "/no/such/file"], 2, "cannot be written"),
        (vec!["practice", "--script", "/no/such/file"], 2, "cannot be read"),
    ] {
        let output = safepoint(&args).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {printed}");
        assert!(printed.contains(says), "{args:?}: {printed}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// S4.7: no home directory, and a working directory that is read-only: it runs.
#[test]
fn it_runs_without_a_home() {
    let folder = tempfile::tempdir().unwrap();
    let mut permissions = std::fs::metadata(folder.path()).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(folder.path(), permissions).unwrap();
    let server = Practice::start(
        r#"{"replies":[{"calls":[{"name":"shell","args":{"command":"pwd"}}]},{"text":"ok"}]}"#,
    );
    let output = safepoint(&[
        "run",
        "--base-url",
        &server.url,
        "--model",
        "openai:x",
        "--tools",
        "all",
        "--approve",
        "auto",
        "go",
    ])
    .current_dir(folder.path())
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The tour goes through, and ends with every conversation going on.
#[test]
fn the_demo_goes_through() {
    let output = run(&["demo"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.matches("next message accepted").count(), 6, "{text}");
    assert_eq!(text.matches("  running   nothing, ").count(), 7, "{text}");
    // What a scene says of itself is so.
    assert!(
        text.contains(", side effects done  ") && text.contains("not started, no side effects"),
        "{text}"
    );
    // S7.2, S7.3, S4.9: killed with SIGKILL in a command: nothing of it is left, what was done is not done again.
    assert!(text.contains("the ledger says: paid (once"), "{text}");
    assert!(text.contains("nothing of its command is left after"), "{text}");
    let store = text.split("--store ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    std::fs::remove_dir_all(std::path::Path::new(store).parent().unwrap()).unwrap();
    assert!(text.contains("delivered in turn-1, before request 2 to the model"), "{text}");
    assert!(
        text.contains("the first message: completed in turn-1; the steer: completed in turn-1"),
        "{text}"
    );
    assert!(text.contains(" in, 15 out with earlier attempts"), "{text}");
    assert!(text.contains("the preempt: stopped turn-1; the old message: preempted with turn-1"), "{text}");
}
