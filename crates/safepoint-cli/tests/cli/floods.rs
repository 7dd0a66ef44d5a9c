//! A model that never ends what it says, against the binary: its memory, its store, and the signals that end it.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use jiff::Timestamp;
use rustix::process::Signal;
use safepoint_testkit::{
    a2a::{self, A2aManners, A2aServer, WorkStep},
    acp,
    flood::{Field, Flood},
    server::ServedWire,
    wait::until,
};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::terminal::{Terminal, spent};
use crate::{Practice, safepoint, signal};

const MIB: u64 = 1 << 20;
/// The default of the limit on a model's output.
const LIMIT: u64 = 16 * MIB;
/// The most memory that a flood may take.
const MOST: u64 = LIMIT + 32 * MIB;

/// Waits for the end of a process: how it ended, and the most memory that it had.
fn ended(mut child: Child) -> (ExitStatus, u64) {
    let mut most = 0;
    let status = until("the flood is ended", || {
        most = most.max(peak(child.id()).unwrap_or(0));
        child.try_wait().unwrap()
    });
    (status, most)
}

/// The most memory that a process has had, in bytes; none once it is gone.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn asked(url: &str, wire: &str, more: &[&str]) -> Command {
    let model = format!("{wire}:m");
    let args = ["run", "--base-url", url, "--model", &model];
    let args: Vec<&str> = args.into_iter().chain(more.iter().copied()).chain(["go"]).collect();
    let mut command = safepoint(&args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// S12.4: of a model that floods any field, in small pieces or large ones, shown as text or as lines, kept or not, the program
/// takes no more memory than the limit and 32 MiB; it ends by the limit, and what is stored is no larger either.
#[test]
fn a_flood_takes_no_more_memory_than_its_limit() {
    const STOPPED: i32 = 10;
    let runtime = Runtime::new().unwrap();
    let practice = Practice::start(r#"{"replies": [{"text": "ok"}]}"#);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("s.db");
    let store = store.to_str().unwrap();
    let kept = |session: &'static str| ["--json", "--store", store, "--session", session];
    let lines = &["--json"][..];
    let usual = |args: &[&str]| ended(asked(&practice.url, "openai", args).spawn().unwrap()).1;
    let (usual, usual_kept) = (usual(lines), usual(&kept("usual")));
    for (wire, name, field, piece, more) in [
        (ServedWire::OpenAi, "openai", Field::Args, 64 << 10, lines),
        (ServedWire::OpenAi, "openai", Field::Text, 4 << 10, lines),
        (ServedWire::OpenAi, "openai", Field::Text, 4 << 10, &[]),
        (ServedWire::OpenAi, "openai", Field::Text, 1 << 20, lines),
        (ServedWire::OpenAi, "openai", Field::Reasoning, 4 << 10, lines),
        (ServedWire::OpenAi, "openai", Field::Text, 4 << 10, &kept("text")),
        (ServedWire::Anthropic, "anthropic", Field::Seal, 1 << 20, &kept("seal")),
        (ServedWire::OpenAi, "openai", Field::Name, 100 << 20, lines),
        (ServedWire::Responses, "responses", Field::Args, 64 << 10, lines),
        (ServedWire::Responses, "responses", Field::Text, 64 << 10, lines),
        (ServedWire::Responses, "responses", Field::Reasoning, 64 << 10, lines),
        (ServedWire::Responses, "responses", Field::Seal, 1 << 20, lines),
        (ServedWire::Responses, "responses", Field::Name, 1 << 20, lines),
        (ServedWire::Gemini, "gemini", Field::Args, 64 << 10, lines),
        (ServedWire::Gemini, "gemini", Field::Text, 64 << 10, lines),
        (ServedWire::Gemini, "gemini", Field::Reasoning, 64 << 10, lines),
        (ServedWire::Gemini, "gemini", Field::Seal, 1 << 20, lines),
        (ServedWire::Gemini, "gemini", Field::Name, 1 << 20, lines),
        (ServedWire::OpenAi, "openai", Field::Citation, 1, lines),
        (ServedWire::Anthropic, "anthropic", Field::Citation, 1, lines),
        (ServedWire::Responses, "responses", Field::Citation, 1, lines),
        (ServedWire::Responses, "responses", Field::OwnTool, 1, lines),
        (ServedWire::Responses, "responses", Field::Seal, 1, lines),
        (ServedWire::Gemini, "gemini", Field::Citation, 1, lines),
        (ServedWire::Gemini, "gemini", Field::OwnTool, 1, lines),
        (ServedWire::Gemini, "gemini", Field::Seal, 1, lines),
    ] {
        let flood = runtime.block_on(Flood::start(wire, field, piece)).unwrap();
        let before = size(store);
        let (status, most) = ended(asked(&flood.url(), name, more).spawn().unwrap());
        let about = format!("{wire:?} {field:?} in pieces of {piece}, {more:?}");
        assert_eq!(status.code(), Some(STOPPED), "{about}");
        let took = most.saturating_sub(if more.len() > 1 { usual_kept } else { usual });
        println!("{about}: {} MiB", took / MIB);
        assert!(took <= MOST, "{about}: {} MiB", took / MIB);
        let grown = size(store).saturating_sub(before);
        assert!(grown <= 2 * LIMIT, "{about}: {} MiB are kept", grown / MIB);
    }
}

/// S12.4, S12.1: the limit also stops an external agent that sends little at a time without end, over either
/// wire, shown as text or as lines. All its text about one call counts together, and the stop names the
/// limit. The program takes no more memory than the limit and 32 MiB.
#[test]
fn a_flood_of_small_words_of_a_peer_is_ended_by_the_limit() {
    const STOPPED: i32 = 10;
    const PIECE: usize = 16 << 10;
    let runtime = Runtime::new().unwrap();
    let peer = |pieces: usize| {
        let said = std::iter::repeat_n(WorkStep::Say("x".repeat(PIECE)), pieces);
        runtime.block_on(async { A2aServer::start(A2aManners::honest(a2a::A2aWire::V1).plan(said)).unwrap() })
    };
    let pieces = usize::try_from(LIMIT + 8 * MIB).unwrap() / PIECE;
    let (brief, endless) = (peer(1), peer(pieces));
    let at = |peer: &A2aServer| format!("a2a:{}", peer.url());
    let agent = format!("acp:exec '{}' --exact {IS_AN_AGENT}", std::env::current_exe().unwrap().display());
    let mut measured = Vec::new();
    let mut is_bounded = true;
    for (usual, backend) in [(at(&brief), at(&endless)), (agent.clone(), agent)] {
        for (lines, more) in [(true, &["--json"][..]), (false, &[])] {
            let run = |word: &str, backend: &str| {
                let (out, err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
                let mut run = safepoint(&[&["run", word, "--backend", backend][..], more].concat());
                run.env(acp::ASKED, acp::AcpManners::default().to_json());
                run.stdout(out.try_clone().unwrap()).stderr(err.try_clone().unwrap());
                let (status, most) = ended(run.spawn().unwrap());
                (status.code(), most, if lines { out } else { err })
            };
            let (code, usual, _) = run("say little", &usual);
            assert_eq!(code, Some(0), "{backend}");
            let (code, most, mut printed) = run("gush", &backend);
            let took = most.saturating_sub(usual);
            measured.push(format!("{backend}, {more:?}: {} MiB beside {}", took / MIB, usual / MIB));
            assert_eq!(code, Some(STOPPED), "{backend}");
            let why = if lines { last(&mut printed)["reason"].to_string() } else { all(&mut printed) };
            assert!(why.contains("output_bytes") || !lines, "{why}");
            assert!(why.contains(&format!("said more than {LIMIT} bytes")), "{why}");
            is_bounded &= took <= MOST;
        }
    }
    println!("{measured:#?}");
    assert!(is_bounded, "{measured:#?}");
}

/// S12.4: an external agent's thinking counts too, as a model's reasoning does, though it is not shown.
#[test]
fn an_agent_that_only_thinks_is_ended_by_the_limit() {
    const STOPPED: i32 = 10;
    let agent = format!("acp:exec '{}' --exact {IS_AN_AGENT}", std::env::current_exe().unwrap().display());
    let mut out = tempfile::tempfile().unwrap();
    let mut run = safepoint(&["run", "brood", "--json", "--backend", &agent]);
    run.env(acp::ASKED, acp::AcpManners::default().to_json());
    run.stdout(out.try_clone().unwrap()).stderr(Stdio::null());
    let (status, most) = ended(run.spawn().unwrap());
    assert_eq!(status.code(), Some(STOPPED));
    assert_eq!(last(&mut out)["reason"]["code"], "output_bytes");
    // Nothing of it is kept: it is far below what a usual run and a flood may take.
    assert!(most <= MOST + LIMIT, "{} MiB", most / MIB);
}

/// S12.4: an external agent's answer of nearly the limit is the run's, whole. It takes no more memory than
/// the limit and 32 MiB, over either wire, shown as text or as lines.
#[test]
fn a_large_answer_of_a_peer_takes_no_more_memory_than_the_limit() {
    const PIECE: usize = 16 << 10;
    let runtime = Runtime::new().unwrap();
    let peer = |pieces: usize| {
        let said = std::iter::repeat_n(WorkStep::Say("x".repeat(PIECE)), pieces);
        runtime.block_on(async { A2aServer::start(A2aManners::honest(a2a::A2aWire::V1).plan(said)).unwrap() })
    };
    let pieces = usize::try_from(LIMIT - MIB).unwrap() / PIECE;
    let (brief, large) = (peer(1), peer(pieces));
    let at = |peer: &A2aServer| format!("a2a:{}", peer.url());
    let agent = format!("acp:exec '{}' --exact {IS_AN_AGENT}", std::env::current_exe().unwrap().display());
    let mut measured = Vec::new();
    let mut is_bounded = true;
    for (usual, backend) in [(at(&brief), at(&large)), (agent.clone(), agent)] {
        for more in [&["--json"][..], &[]] {
            let run = |word: &str, backend: &str| {
                let mut out = tempfile::tempfile().unwrap();
                let mut run = safepoint(&[&["run", word, "--backend", backend][..], more].concat());
                run.env(acp::ASKED, acp::AcpManners::default().to_json());
                run.stdout(out.try_clone().unwrap()).stderr(Stdio::null());
                let (status, most) = ended(run.spawn().unwrap());
                assert_eq!(status.code(), Some(0), "{backend}, {more:?}");
                (most, all(&mut out))
            };
            let (usual, _) = run("say little", &usual);
            let (most, printed) = run("essay", &backend);
            let answer = if more.is_empty() {
                printed
            } else {
                serde_json::from_str::<Value>(printed.lines().last().unwrap()).unwrap()["answer"]
                    .as_str()
                    .unwrap()
                    .into()
            };
            assert!(answer.trim_end().len() >= pieces * PIECE, "{backend}, {more:?}: {}", answer.len());
            let took = most.saturating_sub(usual);
            measured.push(format!("{backend}, {more:?}: {} MiB beside {}", took / MIB, usual / MIB));
            is_bounded &= took <= MOST;
        }
    }
    println!("{measured:#?}");
    assert!(is_bounded, "{measured:#?}");
}

const IS_AN_AGENT: &str = "cli::floods::this_program_is_an_agent_when_it_is_asked_to_be --nocapture";

/// This very program, started again, is the agent: it holds no test then.
#[test]
fn this_program_is_an_agent_when_it_is_asked_to_be() {
    acp::serve_if_asked();
    assert!(std::env::var(acp::ASKED).is_err(), "an agent never returns");
}

/// What stands in a file.
fn all(file: &mut File) -> String {
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}

/// What stands in the last line.
fn last(lines: &mut File) -> Value {
    let text = all(lines);
    serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default()
}

/// S12.5, S12.3: of a reply with more calls than anybody looks at, far more of them than the limit, each way to end the program
/// ends it: it has little left to do, whatever else the machine does. It was 34 s for 100,000 calls.
#[test]
fn a_reply_of_very_many_calls_is_ended_by_signals() {
    /// Most of them are read when this many were made: the others are in buffers.
    const CALLS: u64 = 100_000;
    const LITTLE: Duration = Duration::from_secs(2);
    let runtime = Runtime::new().unwrap();
    for (wire, name) in [(ServedWire::OpenAi, "openai"), (ServedWire::Anthropic, "anthropic")] {
        for (ends, more, code) in
            [(Signal::INT, &["--grace", "10m"][..], 130), (Signal::TERM, &["--grace", "100ms"], 143)]
        {
            let flood = runtime.block_on(Flood::start(wire, Field::Calls, 1)).unwrap();
            let printed = tempfile::NamedTempFile::new().unwrap();
            let child = asked(&flood.url(), name, more).stderr(printed.reopen().unwrap()).spawn().unwrap();
            let about = format!("{wire:?}, {ends:?}");
            until(format_args!("{about}: many calls were made"), || flood.pieces() >= CALLS);
            let before = spent(child.id()).unwrap();
            signal(&child, ends);
            if ends == Signal::INT {
                // Two that are not taken for one.
                let is_shown =
                    || std::fs::read_to_string(printed.path()).unwrap().contains("Ctrl-C again: now");
                until(format_args!("{about}: it is heard"), is_shown);
                signal(&child, ends);
            }
            let (status, took) = ended_with(child, before);
            assert_eq!(status.code(), Some(code), "{about}");
            assert!(took < LITTLE, "{about}: it took {took:?} of the processor");
        }
    }
}

/// Waits for the end of a process: how it ended, and the processor time that it has used since it had used so much.
fn ended_with(mut child: Child, before: Duration) -> (ExitStatus, Duration) {
    let mut after = before;
    let status = until("the flood is ended", || {
        after = spent(child.id()).unwrap_or(after);
        child.try_wait().unwrap()
    });
    (status, after - before)
}

/// The bytes of a file, if there is one.
fn size(path: &str) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

/// S12.5: while a model floods events, what a signal asks is asked within the time that is promised: in the best of a few tries,
/// since the machine may have something else to do in any of them.
#[test]
fn a_flood_of_events_does_not_hold_up_signals() {
    const PROMPT: i64 = 50;
    const TRIES: usize = 8;
    let runtime = Runtime::new().unwrap();
    let mut delays = Vec::new();
    while delays.len() < TRIES && delays.iter().all(|delay| *delay > PROMPT) {
        let flood = runtime.block_on(Flood::start(ServedWire::OpenAi, Field::Nothing, 1)).unwrap();
        let mut lines = tempfile::tempfile().unwrap();
        let child =
            asked(&flood.url(), "openai", &["--json"]).stdout(lines.try_clone().unwrap()).spawn().unwrap();
        runtime.block_on(flood.until(5 * MIB)).unwrap();
        let asked = Timestamp::now();
        signal(&child, Signal::INT);
        signal(&child, Signal::TERM);
        let (status, _) = ended(child);
        assert!(matches!(status.code(), Some(130 | 143)), "{status:?}");
        let mut text = String::new();
        lines.rewind().unwrap();
        lines.read_to_string(&mut text).unwrap();
        delays.push(stopped_at(&text).as_millisecond() - asked.as_millisecond());
    }
    assert!(delays.iter().any(|delay| *delay <= PROMPT), "it was asked after {delays:?} ms");
}

/// When the first stop was asked, as the lines tell it.
fn stopped_at(lines: &str) -> Timestamp {
    let lines = crate::lines(lines.as_bytes());
    let outcome = lines.last().unwrap();
    outcome["receipt"]["stop"]["requested_at"].as_str().unwrap().parse().unwrap()
}

/// S12.5: a chat that draws a flood, of a line that never ends, is ended by a signal at once: it has little left to do.
#[test]
fn a_chat_that_draws_a_flood_is_ended_by_a_signal() {
    const LITTLE: Duration = Duration::from_secs(1);
    let runtime = Runtime::new().unwrap();
    for (ends, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let flood = runtime.block_on(Flood::start(ServedWire::OpenAi, Field::Text, 4 << 10)).unwrap();
        // What is measured is what is left to draw, and not a snapshot of this repository's files.
        let args = ["chat", "--base-url", &flood.url(), "--model", "openai:m", "--no-snapshots"];
        let mut chat = Terminal::spawn(&args, &[("TERM", "xterm")]);
        chat.until("openai:m");
        chat.press("go\r");
        runtime.block_on(flood.until(8 * MIB)).unwrap();
        let before = chat.spent().unwrap();
        chat.signal(ends);
        let mut after = before;
        until(format_args!("{ends:?}: the chat has ended"), || {
            chat.spent().inspect(|spent| after = *spent).is_none()
        });
        assert_eq!(chat.end().0, code);
        assert!(after - before < LITTLE, "{ends:?}: it took {:?} of the processor", after - before);
    }
}

/// S12.5: text that a slow terminal has not shown when the user stops at once is counted and not waited for.
#[test]
fn text_that_a_terminal_has_yet_to_show_holds_up_no_stop() {
    let runtime = Runtime::new().unwrap();
    let flood = runtime.block_on(Flood::start(ServedWire::OpenAi, Field::Text, 4 << 10)).unwrap();
    let args = ["run", "go", "--base-url", &flood.url(), "--model", "openai:m"];
    let mut run = Terminal::spawn(&args, &[("TERM", "xterm")]);
    let unread = run.unread();
    runtime.block_on(flood.until(8 * MIB)).unwrap();
    // Two that are not taken for one.
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    drop(unread);
    let (_, screen) = run.end();
    assert!(screen.contains("of text that came before the stop are not shown"), "{screen}");
    let shown = u64::try_from(run.raw().len()).unwrap();
    assert!(shown < 4 * MIB, "{shown}");
}
