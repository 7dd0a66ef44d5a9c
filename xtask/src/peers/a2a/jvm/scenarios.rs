//! What must hold with every agent: an answer is whole, work is begun once, and no receipt claims what the agent's own facts
//! deny.

use std::{thread, time::Duration};

use anyhow::ensure;
use rustix::process::Signal;
use serde_json::Value;

use super::{
    super::super::facts::{Fate, Stops, until},
    Answers,
    bench::{Bench, Ours},
    script::{Phase, Planned, Scenario, TICKS},
};

/// What was seen of one stop.
pub(super) struct Seen {
    /// What the agent did, by the facts.
    pub(super) did: String,
    /// What our receipt says.
    pub(super) receipt: String,
    /// What our row says of an agent that took note, and how long after its word our binary returned.
    pub(super) after_word: Option<(&'static str, Duration)>,
}

/// Facts that deny an end.
const STREAM_OPEN: &str = "left the model's stream open";
const TOOL_WENT_ON: &str = "its tool went on";

/// Pieces after which an answer is in its middle.
const SOME: usize = 5;
/// A time in which a tool that runs has ticked, and a stream that is being closed is closed, on a busy machine too.
const SURELY: Duration = Duration::from_millis(1200);
/// A time in which the name of a task has reached us.
const NAMED: Duration = Duration::from_millis(500);
/// How long the line is cut.
const OUTAGE: Duration = Duration::from_secs(1);

/// Runs what is planned; what was seen of a stop.
pub(super) fn run(bench: &Bench, planned: &Planned, stops: &mut Stops) -> anyhow::Result<Option<Seen>> {
    match planned.scenario {
        Scenario::Done => done(bench, planned).map(|()| None),
        Scenario::Stop(phase) => stopped(bench, planned, phase, stops),
        Scenario::Kill => killed(bench, planned).map(|()| None),
        Scenario::Cut => cut(bench, planned).map(|()| None),
        Scenario::Again => again(bench, planned).map(|()| None),
    }
}

fn done(bench: &Bench, planned: &Planned) -> anyhow::Result<()> {
    let (outcome, _) = bench.start(planned, &["run", &planned.prompt()])?.end()?;
    answered(bench, &outcome, &planned.answer())
}

/// Its answer is whole. Of a server that shows no task, one that is not there at once is unknown, which is said.
fn answered(bench: &Bench, outcome: &Value, answer: &str) -> anyhow::Result<()> {
    if bench.answers == Answers::Unseen && outcome["status"] == "failed" {
        return is_unknown(outcome);
    }
    is_whole(outcome, answer)
}

fn is_unknown(outcome: &Value) -> anyhow::Result<()> {
    ensure!(outcome["status"] == "failed" && outcome["receipt"]["quiet"].is_null(), "{outcome}");
    let error = outcome["error"]["message"].as_str().unwrap_or_default();
    ensure!(error.contains("it is unknown what became of the work"), "{outcome}");
    Ok(())
}

fn is_whole(outcome: &Value, answer: &str) -> anyhow::Result<()> {
    ensure!(outcome["status"] == "done", "{outcome}");
    let said = outcome["answer"].as_str().unwrap_or_default();
    ensure!(said.trim_end() == answer.trim_end(), "the answer is not whole: {said:?}");
    Ok(())
}

/// In the middle of it, Ctrl-C.
fn stopped(
    bench: &Bench,
    planned: &Planned,
    phase: Phase,
    stops: &mut Stops,
) -> anyhow::Result<Option<Seen>> {
    let mut ours = bench.start(planned, &["run", &planned.prompt()])?;
    if let Course::Returned(outcome) = running(bench, planned, phase, &mut ours)? {
        ensure!(bench.answers == Answers::Unseen, "it returned before it was stopped: {outcome}");
        return is_unknown(&outcome).map(|()| None);
    }
    bench.relay.listen();
    ours.signal(Signal::INT)?;
    let (outcome, returned) = ours.end()?;
    let seen = bench.relay.seen();
    let ticks = bench.ticks(planned);
    thread::sleep(SURELY);
    let did = did(bench, planned, phase, ticks);
    stops.hold(&outcome, &continues(&outcome, &did))?;
    ensure!(outcome["status"] == "stopped", "{outcome}");
    let in_pieces = bench.answers == Answers::InPieces;
    if in_pieces && matches!(phase, Phase::Drips | Phase::FallsSilent) {
        let partial = outcome["partial_text"].as_str().unwrap_or_default();
        let is_kept = !partial.is_empty() && partial == ours.pieces().concat();
        ensure!(is_kept, "what had come of the answer is not kept: {outcome}");
    }
    let after_word = seen.zip(took_note(&outcome));
    let after_word = after_word.map(|(seen, row)| (row, returned.saturating_duration_since(seen)));
    Ok(Some(Seen { did, receipt: receipt(&outcome), after_word }))
}

/// How an agent took note, if it did: in its time, or when the run had gone on without it.
fn took_note(outcome: &Value) -> Option<&'static str> {
    let call = &outcome["receipt"]["calls"][0];
    let is_late = call["remote"]["heard_at"].as_str() > call["ended_at"].as_str();
    let took_note = call["remote"]["stop"] == "acknowledged";
    took_note.then_some(if is_late { "acknowledged late" } else { "acknowledged" })
}

/// What a run has come to. Exhaustive: it is in the middle of its work, or it has returned with this.
enum Course {
    AtWork,
    Returned(Value),
}

/// Waits until it is in the middle of its work.
fn running(bench: &Bench, planned: &Planned, phase: Phase, ours: &mut Ours) -> anyhow::Result<Course> {
    let is_there = |ours: &Ours| match phase {
        Phase::Tool | Phase::DeafTool => bench.ticks(planned) >= SOME,
        Phase::Drips | Phase::FallsSilent if bench.answers == Answers::InPieces => {
            ours.pieces().concat().matches(&planned.mark()).count() >= SOME
        }
        Phase::Drips | Phase::FallsSilent | Phase::Silent => !bench.fates(planned).is_empty(),
    };
    let mut has_returned = false;
    until("the agent works", || {
        has_returned = ours.has_returned();
        has_returned || is_there(ours)
    })?;
    if !has_returned && !matches!(phase, Phase::Tool | Phase::DeafTool) {
        thread::sleep(NAMED);
    }
    Ok(if ours.has_returned() { Course::Returned(ours.end()?.0) } else { Course::AtWork })
}

/// What the agent did after the stop request, by the facts.
fn did(bench: &Bench, planned: &Planned, phase: Phase, ticks: usize) -> String {
    let did = match phase {
        Phase::Tool | Phase::DeafTool if bench.ticks(planned) > ticks => TOOL_WENT_ON,
        Phase::Tool | Phase::DeafTool if ticks >= TICKS => "its tool ran to its end",
        Phase::Tool | Phase::DeafTool => "its tool ended",
        Phase::Drips | Phase::Silent | Phase::FallsSilent => match bench.fates(planned).last() {
            Some(Fate::Closed) => "closed the model's stream",
            Some(Fate::Waits | Fate::Open) => STREAM_OPEN,
            Some(Fate::Whole) | None => "took the model's answer to its end",
        },
    };
    did.to_owned()
}

/// What denies that the work has ended. These agents declare nothing, so their word is no proof of an end.
/// Work that completed before the stop arrived has ended, unless the facts deny that.
fn continues(outcome: &Value, did: &str) -> Vec<String> {
    let is_completed = outcome["receipt"]["calls"][0]["remote"]["ended_at"].is_string();
    let undeclared = (!is_completed).then_some("nothing was declared of what its stops do");
    let fact = [STREAM_OPEN, TOOL_WENT_ON].into_iter().find(|fact| *fact == did);
    undeclared.into_iter().chain(fact).map(str::to_owned).collect()
}

/// What our receipt says, without what differs each time: how its task stood after a refusal, and a server's own page.
fn receipt(outcome: &Value) -> String {
    let call = &outcome["receipt"]["calls"][0];
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('_', " ");
    let (status, stop, word) = (&call["status"], &call["remote"]["stop"], text(&call["remote"]["word"]));
    let ends = ["; its task was", ": {"].into_iter().filter_map(|end| word.find(end));
    let word = &word[..ends.min().unwrap_or(word.len())];
    format!("{}, {}: \"{word}\"", text(status), text(stop))
}

/// Killed while it works, and resumed: the work is asked for by the agent's name for it, and not begun again.
fn killed(bench: &Bench, planned: &Planned) -> anyhow::Result<()> {
    let session = format!("s{}", planned.run);
    let mut first = bench.start_kept(planned, &["run", &planned.prompt(), "--session", &session])?;
    running(bench, planned, Phase::Drips, &mut first)?;
    if !first.has_returned() {
        first.signal(Signal::KILL)?;
    }
    drop(first);
    let (outcome, _) = bench.start_kept(planned, &["resume", &session])?.end()?;
    begun_once(bench, planned)?;
    whole_or_lost(bench, planned, &outcome)
}

/// The line is cut while it works: each piece comes once.
fn cut(bench: &Bench, planned: &Planned) -> anyhow::Result<()> {
    let mut ours = bench.start(planned, &["run", &planned.prompt()])?;
    running(bench, planned, Phase::Drips, &mut ours)?;
    bench.relay.cut(OUTAGE);
    let (outcome, _) = ours.end()?;
    begun_once(bench, planned)?;
    whole_or_lost(bench, planned, &outcome)?;
    let (shown, answer) = (ours.pieces().concat(), outcome["answer"].as_str().unwrap_or_default());
    // Where the agent's accounts of its answer differ, it is shown anew.
    ensure!(shown.ends_with(answer), "{shown:?} was shown, and the answer is {answer:?}");
    Ok(())
}

/// An agent that names its work when that is over, and whose line broke before, can be asked for nothing.
fn whole_or_lost(bench: &Bench, planned: &Planned, outcome: &Value) -> anyhow::Result<()> {
    if bench.answers != Answers::InPieces && outcome["status"] == "failed" {
        return Ok(());
    }
    let answer = outcome["answer"].as_str().unwrap_or_default();
    if outcome["status"] != "done" || answer.trim_end() == planned.answer().trim_end() {
        return is_whole(outcome, &planned.answer());
    }
    // Those of a2a-java 0.3 may keep a piece twice, or lose one, when who listens changes. Then that is its answer.
    // Semantic Kernel may tell pieces of a burst in another order.
    let account = bench.account(planned)?;
    ensure!(account.concat() == answer, "the answer is {answer:?}, and its task has {account:?}");
    println!("peers: note     the agent's own task differs from what its model said: {answer:?}");
    Ok(())
}

fn begun_once(bench: &Bench, planned: &Planned) -> anyhow::Result<()> {
    let begun = bench.begun(&planned.mark());
    ensure!(begun.len() == 1, "it was begun {} times", begun.len());
    Ok(())
}

/// A second prompt of a session continues the agent's own conversation.
fn again(bench: &Bench, planned: &Planned) -> anyhow::Result<()> {
    let session = format!("s{}", planned.run);
    let (then, answer) = planned.then();
    for (prompt, answer) in [(planned.prompt(), planned.answer()), (then, answer)] {
        let (outcome, _) = bench.start_kept(planned, &["run", &prompt, "--session", &session])?.end()?;
        answered(bench, &outcome, &answer)?;
        if outcome["status"] != "done" {
            return Ok(());
        }
    }
    let context = |mark: &str| bench.begun(mark).first().cloned();
    let (first, second) = (context(&planned.mark()), context(&planned.second_mark()));
    ensure!(first.is_some() && first == second, "it was begun in {first:?} and in {second:?}");
    Ok(())
}
