//! `--backend`: a user runs an external agent, which is stopped mid-work.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::acp::{self, ASKED, AcpManners};
use serde_json::Value;

/// This very program, started again, is the agent: it holds no test then.
#[test]
fn this_program_is_an_agent_when_it_is_asked_to_be() {
    acp::serve_if_asked();
    assert!(std::env::var(ASKED).is_err(), "an agent never returns");
}

fn safepoint(args: &[&str], log: &Path) -> Command {
    let agent = std::env::current_exe().unwrap();
    let line = format!(
        "acp:exec '{}' --exact this_program_is_an_agent_when_it_is_asked_to_be --nocapture",
        agent.display()
    );
    let manners = AcpManners { log: Some(log.to_owned()), ..AcpManners::default() };
    let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
    command.args(args).args(["--backend", &line]).env_clear();
    command.env("PATH", std::env::var("PATH").unwrap_or_default()).env(ASKED, manners.to_json());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn until(child: &mut Child, wanted: impl Fn(&Value) -> bool) -> BufReader<std::process::ChildStdout> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before what was waited for");
        if wanted(&serde_json::from_str(&line).unwrap()) {
            return lines;
        }
    }
}

/// S10.1: its answer is the run's.
#[test]
fn an_agent_of_somebody_else_answers() {
    let folder = tempfile::tempdir().unwrap();
    let said = safepoint(&["run", "say hello there"], &folder.path().join("log")).output().unwrap();
    let errors = String::from_utf8_lossy(&said.stderr);
    assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), "hello there", "{errors}");
    assert_eq!(said.status.code(), Some(0), "{errors}");
}

/// S10.3, S3.7: interrupted mid-work, the receipt has the agent's row, and its process is gone.
#[test]
fn an_interrupt_ends_the_agents_work() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut child = safepoint(&["run", "--json", "--grace", "0", "work"], &log).spawn().unwrap();
    let mut rest = until(&mut child, |line| {
        line["type"] == "text_delta" && line["text"].as_str().is_some_and(|text| text.contains("working"))
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut printed = String::new();
    rest.read_to_string(&mut printed).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{printed}");
    let outcome: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert_eq!(outcome["status"], "stopped", "{outcome}");
    let row = &outcome["receipt"]["calls"][0];
    assert_eq!((&row["status"], &row["remote"]["stop"]), (&"stopped".into(), &"confirmed".into()), "{row}");
    let work = acp::work(&log);
    assert_eq!(work.in_flight, 0, "{work:?}");
}

/// S1.6: what cannot be meant is exit 2, and says what can be.
#[test]
fn a_backend_that_does_not_exist_is_named() {
    let run = |backend: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
        let output =
            command.args(["run", "hi", "--backend", backend]).args(more).stdin(Stdio::null()).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run("smoke:signals", &[]).contains("there is no backend `smoke`"));
    assert!(run("acp", &[]).contains("write acp:"));
    assert!(run("acp:agent", &["--model", "openai:m"]).contains("cannot be used with"));
}
