//! What must hold against every server of tools, over both transports.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{super::serving::Serving, Bench, until};

type Scenario = fn(&Bench) -> anyhow::Result<()>;

pub(super) const SCENARIOS: [(&str, Scenario); 5] = [
    ("its tools are listed", listed),
    ("a call", called),
    ("progress", progress),
    ("a call that is given up: the server has the notice", given_up),
    ("a tool that it gets in a conversation", grown),
];

/// The same, where the server is a process of ours.
pub(super) const OF_PROCESSES: [(&str, Scenario); 1] = [("our binary is killed: the server is gone", killed)];

fn listed(bench: &Bench) -> anyhow::Result<()> {
    let output = bench.ours(&["mcp", "ls", "--json"]).output()?;
    let line: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let names: Vec<&str> =
        line["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    ensure!(names == ["peer__add", "peer__steps", "peer__slow", "peer__grow"], "{line}");
    ensure!(line["refused"] == Value::Array(Vec::new()), "{line}");
    Ok(())
}

fn called(bench: &Bench) -> anyhow::Result<()> {
    let output = bench.ours(&["mcp", "call", "peer", "add", "--args", r#"{"a":1,"b":2}"#]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && text == "3\n", "{text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn progress(bench: &Bench) -> anyhow::Result<()> {
    let output = bench.ours(&["mcp", "call", "peer", "steps"]).output()?;
    let reported = String::from_utf8_lossy(&output.stderr);
    ensure!(reported == "1/3 step 1\n2/3 step 2\n3/3 step 3\n", "{reported}");
    ensure!(output.stdout == b"done\n", "{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

fn given_up(bench: &Bench) -> anyhow::Result<()> {
    let output = bench.ours(&["mcp", "call", "peer", "slow", "--timeout", "1s", "--json"]).output()?;
    let line: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(line["status"] == "timed_out", "{line}");
    ensure!(bench.noticed("began"), "the call never began");
    until("the server has the notice", || bench.noticed("cancelled"))
}

/// The server's notice may come on a separate stream at any time, so the scenario can only wait.
const A_WHILE: Duration = Duration::from_secs(1);

fn grown(bench: &Bench) -> anyhow::Result<()> {
    let script = bench.folder.join("script.json");
    let calls = |name: &str| format!(r#"{{"calls":[{{"name":"peer__{name}","args":{{}}}}]}}"#);
    let (grow, grown) = (calls("grow"), calls("grown"));
    fs::write(&script, format!(r#"{{"replies":[{grow},{{"text":"one"}},{grown},{{"text":"two"}}]}}"#))?;
    let model = Serving::practice(Command::new(&bench.binary).arg("practice").arg("--script").arg(script))?;
    let url = model.base_url("openai");
    let args = ["chat", "--tools", "mcp", "--approve", "auto", "--model", "openai:x", "--base-url", &url];
    let mut chat = bench.ours(&args);
    chat.env("XDG_RUNTIME_DIR", &bench.folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut chat = chat.stderr(Stdio::null()).spawn()?;
    let mut input = chat.stdin.take().context("it was piped above")?;
    let mut answers = BufReader::new(chat.stdout.take().context("it was piped above")?).lines();
    for wanted in ["one", "two"] {
        sleep(A_WHILE);
        writeln!(input, "continue")?;
        let answer = answers.next().context("the chat ended")??;
        ensure!(answer == wanted, "{answer}");
    }
    drop(input);
    chat.wait()?;
    ensure!(bench.noticed("grown"), "the new tool was not called");
    Ok(())
}

fn killed(bench: &Bench) -> anyhow::Result<()> {
    let mut call = bench.ours(&["mcp", "call", "peer", "slow"]);
    let mut call = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    until("the call begins", || bench.noticed("began"))?;
    kill_process(Pid::from_child(&call), Signal::KILL)?;
    call.wait()?;
    let log = bench.log().display().to_string();
    until("the server is gone", || !is_alive(&log))
}

/// Whether a process has this text in its environment.
pub(in super::super) fn is_alive(mark: &str) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    entries.filter_map(Result::ok).any(|entry| {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environ.windows(mark.len()).any(|part| part == mark.as_bytes())
    })
}
