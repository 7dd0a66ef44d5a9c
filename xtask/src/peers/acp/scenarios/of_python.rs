//! An agent made with the Python library: it reacts to a stop as its script says.

use anyhow::ensure;
use rustix::process::{Pid, Signal, kill_process};

use super::{Bench, Reported, Scenario, is_alive, run, start, stopped, until};

pub(in super::super) const ALL: [(&str, Scenario); 5] = [
    ("a turn", answers),
    ("a question, allowed and denied", asked),
    ("stopped in the middle of its work", ends),
    ("the same, and it ignores a cancel", deaf),
    ("our binary is killed: the agent is gone", killed),
];

fn answers(bench: &Bench) -> anyhow::Result<Option<Reported>> {
    let outcome = run(bench, &["hello"])?;
    ensure!(outcome["answer"] == "I am at it. It is done.", "{outcome}");
    Ok(None)
}

fn asked(bench: &Bench) -> anyhow::Result<Option<Reported>> {
    for (approve, answer) in [("auto", "I am at it. Paid."), ("deny", "I am at it. Not paid.")] {
        let outcome = run(bench, &["ask", "--approve", approve])?;
        ensure!(outcome["answer"] == answer, "{outcome}");
    }
    ensure!(bench.noticed("answered y") && bench.noticed("answered n"), "it was not answered");
    Ok(None)
}

fn ends(bench: &Bench) -> anyhow::Result<Option<Reported>> {
    let run = start(bench, &["work"])?;
    until("it works", || bench.noticed("works"))?;
    let ours = stopped(bench, run)?;
    ensure!(bench.noticed("asked") && bench.noticed("ended"), "it was not asked");
    ensure!(bench.ended().as_deref() == Some("cancelled"), "{:?}", bench.wrote());
    ensure!(ours.contains("it said `cancelled`"), "{ours}");
    Ok(Some(Reported { peer: "got the cancel, ended its work, answered `cancelled`".into(), ours }))
}

fn deaf(bench: &Bench) -> anyhow::Result<Option<Reported>> {
    let run = start(bench, &["deaf"])?;
    until("it works", || bench.noticed("works"))?;
    let ours = stopped(bench, run)?;
    ensure!(bench.noticed("asked"), "it was not asked");
    ensure!(!bench.noticed("ended") && bench.ended().is_none(), "{:?}", bench.wrote());
    ensure!(ours.contains("it said nothing to that"), "{ours}");
    Ok(Some(Reported { peer: "got the cancel, worked on, answered nothing".into(), ours }))
}

fn killed(bench: &Bench) -> anyhow::Result<Option<Reported>> {
    let mut run = start(bench, &["deaf"])?;
    until("it works", || bench.noticed("works"))?;
    kill_process(Pid::from_child(&run), Signal::KILL)?;
    run.wait()?;
    until("the agent is gone", || !is_alive(&bench.log().display().to_string()))?;
    Ok(None)
}
