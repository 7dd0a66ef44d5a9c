//! `--backend a2a:URL` and `responses:MODEL`: a user runs an external agent, stops it mid-work, answers its
//! questions, kills the program and resumes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    io::{BufRead as _, BufReader, Lines, Read as _},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::{
    a2a::{A2aManners, A2aServer, A2aWire, OnCancel, Streams, WorkStep},
    backend_suite::Probe as _,
    background::{self, Provider},
    wait,
};
use serde_json::Value;
use tokio::runtime::Runtime;

/// A server on its own threads.
fn server(manners: A2aManners) -> (Runtime, A2aServer) {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(async { A2aServer::start(manners).unwrap() });
    (runtime, server)
}

fn safepoint(server: &A2aServer, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
    command.args(args).args(["--json", "--backend", &format!("a2a:{}", server.url())]);
    command.env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Reads on to a line of this type.
fn until(lines: &mut Lines<BufReader<ChildStdout>>, kind: &str) -> Value {
    let lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut seen = Vec::new();
    for line in lines {
        if line["type"] == kind {
            return line;
        }
        seen.push(line);
    }
    panic!("no `{kind}` in {seen:#?}");
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// S10.3, S3.6 / T3, T11, aprin-labs/archimedes#1667: interrupted mid-work, the receipt says what the peer said, and
/// believes it only where the user said that it may.
#[test]
fn an_interrupt_is_told_as_what_it_was() {
    let says = || A2aManners::honest(A2aWire::V1).on_cancel(OnCancel::Says);
    let cases = [
        (says(), "caller-side", "left_running", "acknowledged", 1),
        (A2aManners::honest(A2aWire::V1), "hard", "stopped", "confirmed", 0),
        (A2aManners::like_koog(), "none", "left_running", "refused", 1),
    ];
    for (manners, grade, status, word, at_work) in cases {
        let (runtime, server) = server(manners);
        let args = ["run", "do it", "--grace", "0", "--backend-stops", grade];
        let mut child = safepoint(&server, &args).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        until(&mut lines, "text_delta");
        runtime.block_on(server.came(1));
        signal(&child, Signal::INT);
        let outcome = until(&mut lines, "outcome");
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let row = &outcome["receipt"]["calls"][0];
        assert_eq!((&row["status"], &row["remote"]["stop"]), (&status.into(), &word.into()), "{row}");
        assert_eq!(server.running(), at_work, "{grade}");
        assert_eq!(outcome["receipt"]["quiet"].is_null(), at_work > 0, "what goes on is not called quiet");
    }
}

/// S10.45, S10.43: the program does not wait for a peer that acknowledged a stop. The peer's text is on
/// stdout as it came, the receipt is shown, and the program ends.
#[test]
fn a_peer_that_took_note_is_not_waited_for() {
    let (runtime, server) = server(A2aManners::honest(A2aWire::V03).on_cancel(OnCancel::Says));
    let mut run = Command::new(env!("CARGO_BIN_EXE_safepoint"));
    run.args(["run", "do it", "--backend", &format!("a2a:{}", server.url())]).env_clear();
    let mut child = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 4];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"half", "it is shown as it comes");
    runtime.block_on(server.came(1));
    signal(&child, Signal::INT);
    let ended = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((ended.status.code(), server.running()), (Some(130), 1), "{printed}");
    assert!(!printed.contains("waiting for remote work"), "{printed}");
    assert!(printed.contains("stop acknowledged, may still be running"), "{printed}");
    assert!(printed.contains("warning: still running: remote work task-1"), "{printed}");
    assert!(printed.contains("partial answer kept, 4 bytes: \"half\""), "{printed}");
}

/// S3.6, S7.5: a client that stops a session from another process and waits for quiet sees no end that the
/// receipt denies, neither while the owner lives nor after.
#[test]
fn a_wait_for_quiet_claims_no_end() {
    let (runtime, server) = server(A2aManners::honest(A2aWire::V03).on_cancel(OnCancel::Says));
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let kept = ["--session", "s", "--store", store.to_str().unwrap()];
    let mut child = safepoint(&server, &[&["run", "do it"][..], &kept].concat()).spawn().unwrap();
    runtime.block_on(server.came(1));
    let stop = |wait: &str| {
        let mut stop = Command::new(env!("CARGO_BIN_EXE_safepoint"));
        stop.args(["stop", "s", "--now", wait, "--timeout", "60s", "--json"]).args(&kept[2..]);
        let printed = stop.output().unwrap();
        let reply: Value = serde_json::from_slice(&printed.stdout).unwrap();
        assert!(reply["detail"]["survivors"].to_string().contains("remote work task-1"), "{reply}");
        assert!(reply["message"].as_str().unwrap().contains("may still be running: remote work task-1"));
        (printed.status.code(), reply["status"].as_str().unwrap().to_owned())
    };
    assert_eq!(stop("--wait=quiet"), (Some(1), "not_quiet".to_owned()));
    assert_eq!(child.wait().unwrap().code(), Some(10));
    assert_eq!(stop("--wait=quiet"), (Some(1), "not_quiet".to_owned()));
    assert_eq!(stop("--wait"), (Some(0), "settled".to_owned()));
    assert_eq!(server.running(), 1);
}

/// S10.44, S10.45: a program that ends with the run does not listen on to a peer that has answered, also where the session is
/// kept and where the word comes after the peer's time; it would listen for 10 s in all.
#[test]
fn a_word_is_the_last_that_is_waited_for() {
    const LISTENING: Duration = Duration::from_secs(10);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let kept = ["--session", "s", "--store", store.to_str().unwrap()];
    for kept in [&[][..], &kept] {
        let manners = A2aManners::honest(A2aWire::V03).on_cancel(OnCancel::Says).streams(Streams::NamedLate);
        let (runtime, server) = server(manners);
        let args = [&["run", "do it", "--grace", "0"], kept].concat();
        let mut child = safepoint(&server, &args).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        runtime.block_on(wait::so("it is asked", || server.asked("SendStreamingMessage") > 0));
        signal(&child, Signal::INT);
        until(&mut lines, "call_ended");
        let named = Instant::now();
        server.name();
        let outcome = until(&mut lines, "outcome");
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let took = named.elapsed();
        assert!(took < LISTENING / 2, "{kept:?}: {took:?}");
        let row = &outcome["receipt"]["calls"][0]["remote"];
        assert_eq!((&row["stop"], &row["task"]), (&"acknowledged".into(), &"task-1".into()), "{row}");
    }
}

/// S7.2, S7.3, S10.3, S10.42 / T10: killed mid-work and resumed by another process: the work is asked for by its name, begun
/// once, and its answer is whole, also where a stream that is taken up again tells only what comes after.
#[test]
fn a_kill_mid_work_begins_nothing_twice() {
    for (wire, is_over) in [(A2aWire::V1, true), (A2aWire::V03, true), (A2aWire::V03, false)] {
        let (runtime, server) = server(A2aManners::honest(wire));
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        let kept = ["--session", "s", "--store", store.to_str().unwrap()];
        let mut child = safepoint(&server, &[&["run", "do it"][..], &kept].concat()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let named = until(&mut lines, "call_named");
        assert_eq!(named["task"], "task-1");
        runtime.block_on(server.came(1));
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        if is_over {
            server.let_on();
            runtime.block_on(server.idle());
        }
        let mut resumed =
            safepoint(&server, &["resume", "s", "--store", store.to_str().unwrap()]).spawn().unwrap();
        let mut lines = BufReader::new(resumed.stdout.take().unwrap()).lines();
        if !is_over {
            until(&mut lines, "text_delta");
            server.let_on();
        }
        let outcome = until(&mut lines, "outcome");
        assert_eq!(
            (&outcome["status"], &outcome["answer"]),
            (&"done".into(), &"half done".into()),
            "{outcome}"
        );
        assert_eq!((server.begun(), server.asked("SendStreamingMessage")), (1, 1));
        assert!(resumed.wait().unwrap().success());
    }
}

/// S8.1, S8.2: the peer asks while no user is at a keyboard: the run says how to answer, another process
/// answers, and the same task continues.
#[test]
fn a_question_is_answered_from_another_process() {
    let manners = A2aManners::honest(A2aWire::V1)
        .plan([WorkStep::Ask("which city?".into()), WorkStep::Say("it rains".into())]);
    let (_runtime, server) = server(manners);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let store = store.to_str().unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_safepoint"));
    run.args(["run", "weather?", "--session", "s", "--store", store]);
    run.args(["--backend", &format!("a2a:{}", server.url())]);
    run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().map(|line| line.unwrap());
    let mut seen = Vec::new();
    let how = said.inspect(|line| seen.push(line.clone())).find(|line| line.contains("safepoint approve s "));
    let how = how.unwrap_or_else(|| panic!("{seen:#?}"));
    assert!(seen.iter().any(|line| line == "▸ a2a weather?"), "{seen:#?}");
    assert!(seen.iter().any(|line| line.contains("which city?")), "{seen:#?}");
    let id = how.split_whitespace().find(|word| word.starts_with("apr_")).unwrap();
    let mut answer = Command::new(env!("CARGO_BIN_EXE_safepoint"));
    answer.args(["respond", "s", id, "--message", "Bern", "--store", store]);
    assert!(answer.output().unwrap().status.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "it rains");
    assert_eq!(server.deeds(), ["began", "got Bern", "said it rains", "ended"]);
}

/// S7.2, S7.3, S10.1, S10.3 / T10: a provider's response in the background, as a backend: killed mid-work and resumed, it is
/// asked for by its id; interrupted, it is called off, and the receipt says what that was.
#[test]
fn a_response_in_the_background_is_a_backend() {
    let runtime = Runtime::new().unwrap();
    let provider =
        runtime.block_on(async { Provider::start(background::ProviderManners::default()).unwrap() });
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let safepoint = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
        command.args(args).args(["--json", "--backend", "responses:m", "--backend-stops", "hard"]);
        command.args(["--store", store.to_str().unwrap()]).env("OPENAI_BASE_URL", provider.url());
        command
            .env_remove("OPENAI_API_KEY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let begin = |session: &str| {
        let mut child = safepoint(&["run", "write", "--session", session, "--grace", "0"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let named = until(&mut lines, "call_named");
        (child, lines, named["task"].clone())
    };
    let (mut killed, _, task) = begin("killed");
    assert_eq!(task, "resp_1");
    signal(&killed, Signal::KILL);
    killed.wait().unwrap();
    let (stopped, mut lines, _) = begin("stopped");
    runtime.block_on(provider.gate().came(2));
    signal(&stopped, Signal::INT);
    let outcome = until(&mut lines, "outcome");
    let row = &outcome["receipt"]["calls"][0];
    assert_eq!((&row["status"], &row["remote"]["stop"]), (&"stopped".into(), &"confirmed".into()), "{row}");
    provider.finish();
    let resumed = safepoint(&["resume", "killed"]).output().unwrap();
    let text = String::from_utf8_lossy(&resumed.stdout);
    let outcome: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&outcome["status"], &outcome["answer"]), (&"done".into(), &"done 1".into()), "{text}");
    assert_eq!(runtime.block_on(provider.look()).begun, 2);
}

/// S1.6: what cannot be meant is exit 2.
#[test]
fn an_address_that_is_none_is_refused() {
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
        command.args(["run", "hi"]).args(args).env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL");
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run(&["--backend", "a2a:nowhere"]).contains("no http or https address"));
    assert!(run(&["--backend", "responses:m"]).contains("set OPENAI_API_KEY"));
    let unset = run(&["--backend", "a2a:http://127.0.0.1:9", "--backend-key-env", "SAFEPOINT_NO_SUCH_TOKEN"]);
    assert!(unset.contains("SAFEPOINT_NO_SUCH_TOKEN: it is not set"), "{unset}");
}

/// S3.6, S3.7: a failed run whose work may still be running says so to people too, by the agent's name and
/// without the password of its address.
#[test]
fn what_goes_on_is_told_of_a_failed_run() {
    const BAD_GATEWAY: u16 = 502;
    let (_runtime, server) = server(A2aManners::honest(A2aWire::V1).streams(Streams::Status(BAD_GATEWAY)));
    let address = server.url().replace("http://", "http://otter:s3cret@");
    let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
    command.args(["run", "do it", "--backend", &format!("a2a:{address}")]).stdin(Stdio::null());
    let printed = command.env_clear().output().unwrap();
    let text = String::from_utf8_lossy(&printed.stderr);
    let failed = format!("the agent a2a:{} failed: the message may have arrived", server.url());
    assert!(text.contains(&failed), "{text}");
    assert!(text.contains("warning: still running: remote work at a2a:"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    assert!(!server.bearers().is_empty() && server.bearers().iter().all(|sent| sent.starts_with("Basic ")));
    assert_eq!(server.running(), 1);
}
