//! What must hold against every peer, on every wire that it serves.

use std::path::Path;

use anyhow::{Context as _, ensure};
use rustix::process::Signal;
use serde_json::Value;

use super::{
    driven::{Driven, wait_for},
    serving::Serving,
};

/// Runs our binary at this path, on this wire, against this server.
type Scenario = fn(&Path, &str, &mut Serving) -> anyhow::Result<()>;

pub(super) const SCENARIOS: [(&str, Scenario); 5] = [
    ("done", done),
    ("an interrupt mid-stream", mid_stream),
    ("two interrupts during a command", two_interrupts),
    ("the next turn after a stopped stream", then_after_a_stream),
    ("the next turn after a stopped call", then_after_a_call),
];

const STORY: &str =
    "once upon a time there was a stop button that stopped what it was asked to stop, and said so";
const THEN: [&str; 2] = ["--then", "and then?"];
const SHELL: [&str; 4] = ["--tools", "shell", "--approve", "auto"];

fn done(binary: &Path, wire: &str, server: &mut Serving) -> anyhow::Result<()> {
    let args = [&SHELL[..], &["run: echo ran"]].concat();
    let outcomes = Driven::start(binary, wire, server, &args)?.end(0, 1)?;
    ensure!(outcomes[0]["status"] == "done", "{}", outcomes[0]);
    ensure!(outcomes[0]["answer"] == "the command has ended", "{}", outcomes[0]["answer"]);
    // Not all peers name figures: then there is a floor, and it says so.
    ensure!(outcomes[0]["usage"]["source"].is_string(), "usage: {}", outcomes[0]["usage"]);
    ensure!(outcomes[0]["usage"]["input"].as_u64() > Some(0), "usage is zero: {}", outcomes[0]["usage"]);
    Ok(())
}

fn mid_stream(binary: &Path, wire: &str, server: &mut Serving) -> anyhow::Result<()> {
    let (prompt, grace) = (format!("say: {STORY}"), ["--grace", "0"]);
    let mut run = Driven::start(binary, wire, server, &[&grace[..], &[&prompt]].concat())?;
    run.until("text_delta")?;
    run.signal(Signal::INT)?;
    is_cut(&run.end(130, 1)?[0])
}

fn two_interrupts(binary: &Path, wire: &str, server: &mut Serving) -> anyhow::Result<()> {
    let mark = format!("8{:08}", std::process::id());
    let prompt = format!("run: trap '' INT TERM; setsid sleep {mark} & sleep {mark}");
    let mut run = Driven::start(binary, wire, server, &[&SHELL[..], &[&prompt]].concat())?;
    run.until("call_started")?;
    wait_for("the command begins", || sleepers(&mark) == 2)?;
    run.signal(Signal::INT)?;
    run.until("stop_requested")?;
    run.signal(Signal::INT)?;
    let outcomes = run.end(130, 1)?;
    ensure!(sleepers(&mark) == 0, "a process of the command lives");
    ensure!(outcomes[0]["status"] == "stopped", "{}", outcomes[0]);
    ensure!(!outcomes[0]["receipt"]["quiet"].is_null(), "not quiet: {}", outcomes[0]["receipt"]);
    Ok(())
}

fn then_after_a_stream(binary: &Path, wire: &str, server: &mut Serving) -> anyhow::Result<()> {
    let (prompt, grace) = (format!("say: {STORY}"), ["--grace", "0"]);
    let mut run = Driven::start(binary, wire, server, &[&grace[..], &[&prompt], &THEN[..]].concat())?;
    run.until("text_delta")?;
    run.signal(Signal::INT)?;
    let outcomes = run.end(0, 2)?;
    is_cut(&outcomes[0])?;
    went_on(&outcomes[1])?;
    let body = last_body(server)?;
    let partial = outcomes[0]["partial_text"].as_str().unwrap_or_default();
    let text = body["messages"].to_string();
    ensure!(text.contains(partial), "what was seen ({partial}) is not in the next request: {text}");
    is_valid(&body)
}

fn then_after_a_call(binary: &Path, wire: &str, server: &mut Serving) -> anyhow::Result<()> {
    let mark = format!("7{:08}", std::process::id());
    let prompt = format!("run: sleep {mark}");
    let args = [&SHELL[..], &["--grace", "0", &prompt], &THEN[..]].concat();
    let mut run = Driven::start(binary, wire, server, &args)?;
    run.until("call_started")?;
    wait_for("the command begins", || sleepers(&mark) == 1)?;
    run.signal(Signal::INT)?;
    let outcomes = run.end(0, 2)?;
    ensure!(sleepers(&mark) == 0, "a process of the command lives");
    ensure!(outcomes[0]["status"] == "stopped", "{}", outcomes[0]);
    went_on(&outcomes[1])?;
    let body = last_body(server)?;
    ensure!(body["messages"].to_string().contains("sleep"), "the call is not in the next request: {body}");
    is_valid(&body)
}

/// One terminal line with what was seen, what it cost and from where that is known, and a receipt that is quiet.
fn is_cut(outcome: &Value) -> anyhow::Result<()> {
    ensure!(outcome["status"] == "stopped" && outcome["reason"]["code"] == "user", "{outcome}");
    let partial = outcome["partial_text"].as_str().unwrap_or_default();
    let is_part = !partial.is_empty() && partial.len() < STORY.len() && STORY.starts_with(partial);
    ensure!(is_part, "partial text: {partial:?}");
    ensure!(outcome["usage"]["source"].is_string(), "usage without its source: {}", outcome["usage"]);
    ensure!(outcome["usage"]["output"].as_u64() > Some(0), "usage is zero: {}", outcome["usage"]);
    ensure!(!outcome["receipt"]["quiet"].is_null(), "not quiet: {}", outcome["receipt"]);
    Ok(())
}

fn went_on(outcome: &Value) -> anyhow::Result<()> {
    ensure!(outcome["status"] == "done" && outcome["answer"] == "and so it went on", "{outcome}");
    Ok(())
}

fn last_body(server: &mut Serving) -> anyhow::Result<Value> {
    let last = server.requests()?.pop().context("the server was asked nothing")?;
    ensure!(last["status"] == 200, "the server answered {}", last["status"]);
    Ok(last["body"].clone())
}

/// Each call has its answer before the model speaks again, in the chat form to which peers translate.
fn is_valid(body: &Value) -> anyhow::Result<()> {
    let messages = body["messages"].as_array().context("no messages")?;
    for (at, message) in messages.iter().enumerate() {
        let answers: Vec<&Value> = messages[at + 1..]
            .iter()
            .take_while(|message| message["role"] != "assistant")
            .map(|message| &message["tool_call_id"])
            .collect();
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            ensure!(answers.contains(&&call["id"]), "call {} has no answer: {body}", call["id"]);
        }
    }
    Ok(())
}

/// How many processes sleep for exactly this long.
fn sleepers(mark: &str) -> usize {
    let wanted = format!("sleep\0{mark}\0");
    let is_one = |process: &std::fs::DirEntry| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())
    };
    std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok).filter(is_one).count()
}
