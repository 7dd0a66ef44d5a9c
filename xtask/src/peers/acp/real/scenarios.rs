//! What is done with each agent, and what must hold of it.

use std::path::Path;

use anyhow::ensure;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    super::super::{
        Reach,
        facts::{Fate, Stops},
    },
    agents::Shell,
    bench::{Bench, Run},
    stop::{Phase, Seen, stop},
};

/// One scenario.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) reach: Reach,
    /// The row for the table, where the scenario is about a stop.
    pub(super) run: fn(&Bench<'_>, &mut Stops) -> anyhow::Result<Option<Seen>>,
}

pub(super) const SCENARIOS: [Scenario; 9] = [
    Scenario { name: "done", reach: Reach::Default, run: done },
    Scenario {
        name: "stopped while the model's answer drips",
        reach: Reach::Default,
        run: |bench, stops| stopped(bench, stops, "do: drip", Phase::Answer),
    },
    Scenario {
        name: "stopped while the model is silent",
        reach: Reach::All,
        run: |bench, stops| stopped(bench, stops, "do: silence", Phase::Silence),
    },
    Scenario {
        name: "stopped while a command runs",
        reach: Reach::Default,
        run: |bench, stops| stopped(bench, stops, "do: tick", Phase::Command),
    },
    Scenario {
        name: "stopped while a command runs that is deaf to SIGTERM",
        reach: Reach::All,
        run: |bench, stops| stopped(bench, stops, "do: deaf", Phase::Command),
    },
    Scenario {
        name: "stopped while a command runs in its own session",
        reach: Reach::All,
        run: |bench, stops| stopped(bench, stops, "do: setsid", Phase::Command),
    },
    Scenario {
        name: "our binary is killed while the model's answer drips, and the session resumed",
        reach: Reach::All,
        run: |bench, stops| killed(bench, stops, "do: drip", Phase::Answer),
    },
    Scenario {
        name: "our binary is killed while a command runs, and the session resumed",
        reach: Reach::Default,
        run: |bench, stops| killed(bench, stops, "do: tick", Phase::Command),
    },
    Scenario { name: "a second prompt after a stop", reach: Reach::All, run: second },
];

const DONE: &str = "All of it is done.";
const AGAIN: &str = "And so it went on.";
/// Words that drip, each tenth of a second.
const WORDS: u32 = 300;

/// What the model says to each prompt; the commands lie in the folder.
pub(super) fn script(shell: &Shell, folder: &Path) -> Value {
    let words: Vec<String> = (1..=WORDS).map(|word| format!("w{word:03} ")).collect();
    let place = folder.display();
    let reported = |user: &str, text: &str| json!({ "when": { "user": user }, "text": text });
    let called = |user: &str, command: &str| {
        let calls = json!([{ "name": shell.tool, "args": (shell.args)(command) }]);
        json!({ "when": { "user": user, "results": 0 }, "calls": calls })
    };
    json!({ "replies": [
        reported("do: done", DONE),
        reported("do: again", AGAIN),
        { "when": { "user": "do: drip" }, "pieces": words, "delay_ms": 100 },
        { "when": { "user": "do: silence" }, "fault": "silence" },
        called("do: tick", &format!("sh '{place}/tick.sh'")),
        called("do: deaf", &format!("sh '{place}/deaf.sh'")),
        called("do: setsid", &format!("setsid sh '{place}/tick.sh' >/dev/null 2>&1 & sleep 300")),
    ]})
}

/// Waits until the agent is in the midst of it.
fn until_running(run: &mut Run<'_>, phase: Phase) -> anyhow::Result<()> {
    match phase {
        Phase::Answer => run.until("its answer drips", |run| run.said().contains("w005")),
        Phase::Silence => run.until("the model is asked", |run| {
            let requests = run.bench.model.requests();
            let is_it = |body: &Value| body.to_string().contains("do: silence");
            requests.iter().any(|request| request.fate == Fate::Waits && is_it(&request.body))
        }),
        Phase::Command => run.until("its command runs", |run| run.bench.ticks.count() >= 3),
    }
}

fn done(bench: &Bench<'_>, _stops: &mut Stops) -> anyhow::Result<Option<Seen>> {
    let outcome = bench.start(&["run", "do: done"])?.outcome()?;
    ensure!(outcome["status"] == "done", "{outcome}");
    ensure!(outcome["answer"].as_str().is_some_and(|answer| answer.contains(DONE)), "{outcome}");
    let alive = bench.alive();
    ensure!(outcome["receipt"]["quiet"].is_null() || alive.is_empty(), "quiet, and alive: {alive:?}");
    Ok(None)
}

fn stopped(bench: &Bench<'_>, stops: &mut Stops, prompt: &str, phase: Phase) -> anyhow::Result<Option<Seen>> {
    let mut run = bench.start(&["run", prompt])?;
    until_running(&mut run, phase)?;
    let (seen, outcome) = stop(run, stops, phase)?;
    ensure!(outcome["status"] == "stopped", "{outcome}");
    if phase == Phase::Answer {
        is_first_part(outcome["partial_text"].as_str().unwrap_or_default())?;
    }
    Ok(Some(seen))
}

/// What came of the dripping answer is all of it up to some word; some agents say something of their own before.
fn is_first_part(text: &str) -> anyhow::Result<()> {
    let words: Vec<&str> = text[text.find("w001").unwrap_or(0)..].split_whitespace().collect();
    let is_it = words.iter().zip(1..).all(|(word, place)| **word == format!("w{place:03}"));
    ensure!(words.len() >= 5 && is_it, "its partial text is {text:?}");
    Ok(())
}

/// Killed with SIGKILL in the midst of it: the agent goes with us, and what is resumed begins nothing twice.
fn killed(bench: &Bench<'_>, stops: &mut Stops, prompt: &str, phase: Phase) -> anyhow::Result<Option<Seen>> {
    let mut run = bench.start_kept(&["run", prompt, "--session", "s"])?;
    until_running(&mut run, phase)?;
    run.signal(Signal::KILL)?;
    drop(run);
    bench.until_gone()?;
    // The bench does not end a daemon that the agent started for itself.
    let is_alone = !bench.has_daemon();
    ensure!(!is_alone || !bench.ticks.continues(), "its command outlives our binary");
    let (ticks, asked) = (bench.ticks.count(), bench.model.requests().len());
    let outcome = bench.start_kept(&["resume", "s"])?.outcome()?;
    stops.hold(&outcome, &bench.running_beside(&outcome))?;
    ensure!(!is_alone || bench.ticks.count() == ticks, "its command was begun again");
    let asked = bench.model.requests().len() - asked;
    ensure!(asked == 0 || outcome["status"] == "done", "the model was asked again: {outcome}");
    let alone = if is_alone { "" } else { ", but for its daemon" };
    let peer = format!("went with our binary{alone}; on the resume the model was asked {asked} times");
    Ok(Some(Seen { peer, ours: bench.ours_of(&outcome), after_word: None }))
}

/// The next message of a conversation that was stopped: it is answered, and what was said before is known.
fn second(bench: &Bench<'_>, stops: &mut Stops) -> anyhow::Result<Option<Seen>> {
    let mut run = bench.start_kept(&["run", "do: drip", "--session", "s"])?;
    until_running(&mut run, Phase::Answer)?;
    let (_seen, outcome) = stop(run, stops, Phase::Answer)?;
    ensure!(outcome["status"] == "stopped", "{outcome}");
    let outcome = bench.start_kept(&["run", "do: again", "--session", "s"])?.outcome()?;
    ensure!(outcome["status"] == "done", "{outcome}");
    ensure!(outcome["answer"].as_str().is_some_and(|answer| answer.contains(AGAIN)), "{outcome}");
    let is_it = |body: &Value| body.to_string().contains("do: again");
    let requests = bench.model.requests();
    let of_second: Vec<_> = requests.iter().filter(|request| is_it(&request.body)).collect();
    let knows = |text: &str| of_second.iter().any(|request| request.body.to_string().contains(text));
    ensure!(knows("do: drip"), "the agent does not know what was said before: {outcome}");
    let reported = match (knows("w003"), outcome["receipt"]["quiet"].is_string()) {
        (true, _) => "knew the first message, and the part of its answer",
        (false, _) => "knew the first message, and not the part of its answer",
    };
    Ok(Some(Seen { peer: reported.into(), ours: bench.ours_of(&outcome), after_word: None }))
}
