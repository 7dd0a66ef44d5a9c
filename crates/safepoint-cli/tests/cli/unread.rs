//! A stdout without a reader, or with a slow one: a requested end comes, and the loss is reported.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
    process::{Child, ExitStatus, Stdio},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::{io::ioctl_fionread, process::Signal};
use safepoint_testkit::{
    flood::{Field, Flood},
    server::ServedWire,
    wait::until,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{Practice, check, lines, safepoint, signal};

/// A piece of text that is larger than what a pipe holds.
const PIECE: usize = 128 << 10;

/// A run whose stdout is a pipe.
struct Run {
    child: Child,
    printed: File,
}

impl Run {
    fn start(args: &[&str]) -> Self {
        let printed = tempfile::tempfile().unwrap();
        let child =
            safepoint(args).stdout(Stdio::piped()).stderr(printed.try_clone().unwrap()).spawn().unwrap();
        Self { child, printed }
    }

    /// One whose model floods in pieces that no pipe holds, and that has written all that goes into its stdout.
    fn of_flood(flood: &Flood, more: &[&str]) -> Self {
        /// What a pipe holds, but for what may not fit into its last page.
        const HOLDS: u64 = 64 << 10;
        const SMALL: u64 = 4 << 10;
        let asked = ["run", "go", "--base-url", &flood.url(), "--model", "openai:m"];
        let run = Self::start(&[&asked[..], more].concat());
        // What is left of one piece waits, however much of it the pipe has taken.
        until("its stdout is full", || {
            ioctl_fionread(run.child.stdout.as_ref().unwrap()).unwrap() > HOLDS - SMALL
        });
        run
    }

    fn printed(&mut self) -> String {
        let mut text = String::new();
        self.printed.rewind().unwrap();
        self.printed.read_to_string(&mut text).unwrap();
        text
    }

    fn until_printed(&mut self, words: &str) {
        until(format_args!("it says: {words}"), || self.printed().contains(words));
    }

    fn ended(&mut self) -> ExitStatus {
        until("it has ended, whoever reads what it says", || self.child.try_wait().unwrap())
    }

    /// What can be read once it has ended.
    fn read(&mut self) -> Vec<u8> {
        let mut read = Vec::new();
        self.child.stdout.take().unwrap().read_to_end(&mut read).unwrap();
        read
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// The reported number of lost bytes, and whether the last line is reported as incomplete.
fn lost(printed: &str) -> (u64, bool) {
    let line = printed.lines().find(|line| line.contains("its reader did not take"));
    let line = line.unwrap_or_else(|| panic!("nothing is told of what is lost: {printed}"));
    let (_, rest) = line.split_once("did not take ").unwrap();
    let bytes = rest.split_once(" bytes").unwrap().0.parse().unwrap();
    (bytes, line.contains("the last line is incomplete"))
}

/// Each line is whole, but for the last where that was said.
fn is_whole_but_for(read: &[u8], is_cut: bool) {
    let (whole, rest) = read.split_at(read.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    assert_eq!(!rest.is_empty(), is_cut, "{}", String::from_utf8_lossy(rest));
    check(&lines(whole), 0);
}

/// S11.7: one SIGTERM, or Ctrl-C twice, ends a run whose stdout has no reader. Stderr says how it ended and
/// what was lost.
#[test]
fn a_stdout_that_nobody_reads_holds_up_no_end() {
    let runtime = Runtime::new().unwrap();
    for (mode, is_json) in [(&["--json"][..], true), (&[], false)] {
        for (ends, grace, code) in [(Signal::TERM, "100ms", 143), (Signal::INT, "10m", 130)] {
            let flood = runtime.block_on(Flood::start(ServedWire::OpenAi, Field::Text, PIECE)).unwrap();
            let mut run = Run::of_flood(&flood, &[mode, &["--grace", grace]].concat());
            signal(&run.child, ends);
            if ends == Signal::INT {
                run.until_printed("Ctrl-C again: now");
                signal(&run.child, ends);
            }
            assert_eq!(run.ended().code(), Some(code), "{ends:?}, {mode:?}");
            let printed = run.printed();
            assert!(printed.contains("the run was stopped, but"), "{printed}");
            assert!(printed.contains("--session NAME stores a run"), "{printed}");
            let (bytes, is_cut) = lost(&printed);
            assert!(bytes > 0, "{printed}");
            let read = run.read();
            if is_json {
                is_whole_but_for(&read, is_cut);
            }
        }
    }
}

/// S11.7: where output for people goes the same way, also without a reader, a requested end still comes.
#[test]
fn a_stderr_that_nobody_reads_holds_up_no_end() {
    let runtime = Runtime::new().unwrap();
    for mode in [&["--json"][..], &[]] {
        let flood = runtime.block_on(Flood::start(ServedWire::OpenAi, Field::Text, 4 << 10)).unwrap();
        let (_unread, both) = std::io::pipe().unwrap();
        let asked = ["run", "go", "--base-url", &flood.url(), "--model", "openai:m", "--grace", "100ms"];
        let mut command = safepoint(&[&asked[..], mode].concat());
        let child = command.stdout(both.try_clone().unwrap()).stderr(both).spawn().unwrap();
        let mut run = Run { child, printed: tempfile::tempfile().unwrap() };
        runtime.block_on(flood.until(1 << 20)).unwrap();
        signal(&run.child, Signal::TERM);
        assert_eq!(run.ended().code(), Some(143), "{mode:?}");
    }
}

/// S11.7: a signal after the end of the run cuts unread output. The report counts each byte and names what
/// has all of it.
#[test]
fn a_signal_after_the_run_says_how_it_ended_and_what_was_lost() {
    const SAID: usize = 300_000;
    for (ends, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 10)] {
        for mode in [&["--json"][..], &[]] {
            let server = Practice::start(&json!({"replies": [{"text": "x".repeat(SAID)}]}).to_string());
            let folder = tempfile::tempdir().unwrap();
            let store = folder.path().join("s.db").display().to_string();
            let kept = ["--session", "s", "--store", &store];
            let asked = ["run", "go", "--base-url", &server.url, "--model", "openai:x"];
            let mut run = Run::start(&[&asked[..], &kept, mode].concat());
            let trace = || {
                let output = safepoint(&["trace", "s", "--json", "--store", &store]).output().unwrap();
                lines(&output.stdout)
            };
            let settled = |lines: Vec<Value>| lines.into_iter().find(|line| line["type"] == "settled");
            until("the run has settled", || settled(trace()));
            signal(&run.child, ends);
            assert_eq!(run.ended().code(), Some(code), "{ends:?}, {mode:?}");
            let printed = run.printed();
            assert!(printed.contains("the run completed, but"), "{printed}");
            assert!(printed.contains("`safepoint trace s --json` has all of it"), "{printed}");
            let ((bytes, is_cut), read) = (lost(&printed), run.read());
            if mode.is_empty() {
                assert_eq!(read.len() + usize::try_from(bytes).unwrap(), SAID + "\n".len(), "{printed}");
                assert!(!is_cut, "{printed}");
            } else {
                is_whole_but_for(&read, is_cut);
            }
            assert!(trace().iter().any(|line| line.to_string().contains(&"x".repeat(SAID))));
        }
    }
}

/// S11.7: one Ctrl-C ends the run and not its output: a later reader gets all of it.
#[test]
fn one_interrupt_leaves_a_slow_reader_all_of_it() {
    const PAUSE: Duration = Duration::from_millis(2500);
    let runtime = Runtime::new().unwrap();
    let flood = runtime.block_on(Flood::start(ServedWire::OpenAi, Field::Text, PIECE)).unwrap();
    let mut run = Run::of_flood(&flood, &["--json", "--grace", "0"]);
    signal(&run.child, Signal::INT);
    run.until_printed("Stopping now");
    let asked = Instant::now();
    until("the reader has paused", || asked.elapsed() >= PAUSE || run.child.try_wait().unwrap().is_some());
    check(&lines(&run.read()), 1);
    assert_eq!(run.ended().code(), Some(130));
    assert!(!run.printed().contains("did not take"), "{}", run.printed());
}

/// Reads a little at a time, with pauses, until the end.
fn slowly(run: &mut Run) -> JoinHandle<Vec<u8>> {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut stdout = run.child.stdout.take().unwrap();
    std::thread::spawn(move || {
        let (mut all, mut part) = (Vec::new(), [0; 1 << 10]);
        loop {
            let read = stdout.read(&mut part).unwrap();
            if read == 0 {
                return all;
            }
            all.extend_from_slice(&part[..read]);
            let began = Instant::now();
            until("the reader has paused", || began.elapsed() >= PAUSE);
        }
    })
}

/// S11.7: a slow reader delays the end no longer than documented, and gets no partial line.
#[test]
fn a_slow_reader_gets_whole_lines_and_holds_up_no_end() {
    let runtime = Runtime::new().unwrap();
    let flood = runtime.block_on(Flood::start(ServedWire::OpenAi, Field::Text, 64)).unwrap();
    let asked =
        ["run", "go", "--base-url", &flood.url(), "--model", "openai:m", "--json", "--grace", "100ms"];
    let mut run = Run::start(&asked);
    let reader = slowly(&mut run);
    runtime.block_on(flood.until(2 << 20)).unwrap();
    signal(&run.child, Signal::TERM);
    assert_eq!(run.ended().code(), Some(143));
    let (printed, read) = (run.printed(), reader.join().unwrap());
    let (bytes, is_cut) = lost(&printed);
    assert!(bytes > 0 && !is_cut, "{printed}");
    is_whole_but_for(&read, false);
}
