//! The goals that are set beside the bare loops: rounds, stops, crowds, and parallel tools.

use crate::{
    figures::{Figures, both},
    process::files_for,
    race::{Pinned, Race},
    table::{Goal, Table},
};

pub(crate) async fn rounds(table: &mut Table) -> anyhow::Result<()> {
    let race = Race::start(Pinned::Apart)?;
    let many = race.run("chain", &[64, 20, 20]).await?;
    table.goal("64 agents × 20 rounds, rounds a second", "", &many.medians(0), Goal::TimesAtLeast(1.0));
    table.goal("client CPU a round in that", "µs", &many.medians(1), Goal::Times(1.0));
    let memory = many.lasts(2);
    let short = race.run("chain", &[1, 20, 200]).await?.medians(1);
    table.goal("one agent, 20 rounds: client CPU a round", "µs", &short, Goal::Times(0.8));
    let long = race.run("chain", &[1, 200, 20]).await?.medians(1);
    table.goal("one agent, 200 rounds: client CPU a round", "µs", &long, Goal::Times(0.8));
    table.goal("a round of 200 beside one of 20", "×", &grown(&long, &short), Goal::Most(FLAT));
    table.goal("peak memory of the 64 agents", "MiB", &memory, Goal::Times(1.5));
    Ok(())
}

/// What a round may cost more when the run is ten times as long, and its cost still counts as flat.
const FLAT: f64 = 1.1;

fn grown(long: &Figures, short: &Figures) -> Figures {
    let each = [0, 1, 2].map(|kind| long.each[kind] / short.each[kind]);
    let ratios = long.ratios.iter().zip(&short.ratios).map(|(long, short)| long / short).collect();
    Figures { each, ratio: each[2] / each[1], ratios, disturbed: both(long.disturbed, short.disturbed) }
}

/// Stops of one pass; five passes have more than the 300 that a 99th percentile wants.
const STOPS: usize = 64;
/// The same under load, where a stop takes longer to set up.
const OTHERS: usize = 32;

pub(crate) async fn stops(table: &mut Table) -> anyhow::Result<()> {
    let race = Race::start(Pinned::Apart)?;
    let hang = race.run("hang", &[STOPS, 0]).await?;
    table.goal("stop, silent stream → caller, p50", "µs", &hang.medians(0), Goal::Times(1.1));
    let stall = race.run("stall", &[STOPS, 0]).await?;
    table.goal("stop before headers → caller, p50", "µs", &stall.medians(0), Goal::Times(1.1));
    let drip = race.run("drip", &[STOPS, 0]).await?;
    let sees = "stop → server sees it, dripping";
    table.goal(&format!("{sees}, p50"), "ms", &drip.medians(1).scaled(1e-3), Goal::Times(1.1));
    table.goal(&format!("{sees}, p99"), "ms", &drip.p99(1).scaled(1e-3), Goal::Times(1.1));
    let nap = race.run("nap", &[STOPS, 0]).await?;
    table.goal("stop in a tool → caller, p50", "µs", &nap.medians(0), Goal::Times(1.5));
    let load = race.run("drip", &[STOPS, OTHERS]).await?;
    let what = format!("stop under {OTHERS} busy agents, from the intended moment until");
    table.goal(&format!("{what} the caller knows, p99"), "ms", &load.p99(2).scaled(1e-3), Goal::Times(0.5));
    table.goal(&format!("{what} the server sees it, p99"), "ms", &load.p99(3).scaled(1e-3), Goal::Times(0.5));
    Ok(())
}

pub(crate) async fn crowd(table: &mut Table) -> anyhow::Result<()> {
    const WANTED: usize = 10_000;
    let most = files_for(WANTED);
    let pinned = Race::start(Pinned::Apart)?.run("crowd", &[most]).await?;
    table.goal(&format!("memory of a waiting agent, {most}"), "KiB", &pinned.medians(0), Goal::Times(1.2));
    let what = format!("{most} stopped at once: every caller knows");
    table.goal(&what, "ms", &pinned.medians(2), Goal::Times(1.3));
    let free = Race::start(Pinned::Nowhere)?.run("crowd", &[most]).await?;
    table.goal(&format!("{what}, not pinned"), "ms", &free.medians(2), Goal::Times(1.3));
    for (laps, place) in [(&pinned, "pinned"), (&free, "not pinned")] {
        let what = format!("{most} stopped at once, {place}");
        let row = |table: &mut Table, what: &str, column: usize| {
            let Figures { each: [_, reqwest, ours], .. } = laps.medians(column);
            table.ratio(what, "ms", (ours, reqwest), 1.3);
        };
        row(table, &format!("{what}: until the server has seen every close"), 3);
        row(table, &format!("{what}: CPU of the whole client"), 4);
    }
    let switches = pinned.medians(1);
    let what = format!("{most} that wait: context switches in 2 s");
    table.ratio(&what, "", (switches.each[2], switches.each[1]), 1.0);
    Ok(())
}

pub(crate) async fn tools(table: &mut Table) -> anyhow::Result<()> {
    let race = Race::start(Pinned::Apart)?;
    let fan = race.run("fan", &[100, 10, 20]).await?;
    table.goal("100 parallel 10 ms tools", "ms", &fan.medians(0), Goal::Times(1.02));
    Ok(())
}
