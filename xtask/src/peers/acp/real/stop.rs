//! A stop in the midst of the work, and what is seen meanwhile: the agent's word, its stream, its command, our return.

use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::Value;

use super::{
    super::super::facts::{Stops, until},
    bench::{Run, after},
};

/// In the midst of what the agent is. Exhaustive: its model answers, or is silent, or a command of it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Answer,
    Silence,
    Command,
}

/// What was seen of one stop.
pub(super) struct Seen {
    /// What the agent did, by the facts.
    pub(super) peer: String,
    /// What our receipt says.
    pub(super) ours: String,
    /// Our row's word, and how long after the agent's our binary returned.
    pub(super) after_word: Option<(String, Duration)>,
}

/// What happened when, by the clock of this machine.
#[derive(Default)]
struct Times {
    word: Option<(SystemTime, String)>,
    /// When no answer of the model was taken any more.
    closed: Option<SystemTime>,
}

/// What happens within this of a word happened with it: the marks of a command are a tenth of a second apart.
const WITH: Duration = Duration::from_millis(250);

/// Interrupts the run as Ctrl-C does, and compares its receipt with the work that continues.
pub(super) fn stop(mut run: Run<'_>, stops: &mut Stops, phase: Phase) -> anyhow::Result<(Seen, Value)> {
    let before = run.bench.wire_lines();
    run.signal(Signal::INT)?;
    let (bench, mut times) = (run.bench, Times::default());
    until("our binary returns from a stop", || {
        if times.word.is_none() {
            times.word = bench.word(before).map(|word| (SystemTime::now(), word));
        }
        if phase != Phase::Command && times.closed.is_none() && bench.model.open() == 0 {
            times.closed = Some(SystemTime::now());
        }
        run.has_returned()
    })?;
    let returned = SystemTime::now();
    let running = bench.running();
    let outcome = run.outcome()?;
    stops.hold(&outcome, &running)?;
    let mut peer = did(&times, phase, bench.ticks.last());
    if !running.is_empty() {
        peer.push_str("; it went on");
    }
    let row = outcome["receipt"]["calls"][0]["remote"]["stop"].as_str().unwrap_or_default().to_owned();
    let after_word = times.word.map(|(word, _)| (row, after(word, returned)));
    Ok((Seen { peer, ours: bench.ours_of(&outcome), after_word }, outcome))
}

/// What the agent did, in words.
fn did(times: &Times, phase: Phase, last_tick: Option<SystemTime>) -> String {
    let word = times.word.as_ref().map(|(at, _)| *at);
    let said =
        times.word.as_ref().map_or_else(|| "said nothing".to_owned(), |(_, word)| format!("said {word}"));
    let with_word = |at: SystemTime| word.is_some_and(|word| after(word, at) <= WITH);
    let work = match (phase, times.closed, last_tick) {
        (Phase::Answer | Phase::Silence, Some(closed), _) if with_word(closed) => "closed the model's stream",
        (Phase::Answer | Phase::Silence, ..) => "kept the model's stream to its own end",
        (Phase::Command, _, Some(last)) if with_word(last) => "ended its command",
        (Phase::Command, ..) => "left its command running until that was ended",
    };
    format!("{said}, {work}")
}
