//! Plays seeds of a simulated fleet for a time, or the large one once: `cargo xtask fleet`.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use safepoint_testkit::fleet::{FleetPlan, FleetReport, simulate};

/// How long seeds are played, in seconds, unless it is said.
const SECONDS: u64 = 120;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    let seed = number("--seed").unwrap_or(1);
    let is_well = match args.iter().any(|arg| arg == "--large") {
        true => plays_large(seed),
        false => plays_seeds(seed, Duration::from_secs(number("--seconds").unwrap_or(SECONDS))),
    };
    // Exit: CI reads it.
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One seed after the other, from this one on.
fn plays_seeds(first: u64, time: Duration) -> bool {
    let (plan, began) = (FleetPlan::small(), Instant::now());
    let (mut steps, mut effects, mut seed) = (0, 0, first);
    while began.elapsed() < time {
        let report = simulate(&plan, seed);
        if !is_whole(&report) {
            return false;
        }
        (steps, effects, seed) = (steps + report.figures.steps, effects + report.figures.effects, seed + 1);
    }
    println!(
        "fleet: seeds {first} to {} in {:.0?}, each of {} nodes, {} sessions and {} faults: {steps} steps checked, {effects} effects",
        seed - 1,
        began.elapsed(),
        plan.nodes,
        plan.sessions,
        plan.faults,
    );
    true
}

fn plays_large(seed: u64) -> bool {
    let (plan, began) = (FleetPlan::large(), Instant::now());
    println!("fleet: seed {seed}, {} nodes, {} sessions, {} items", plan.nodes, plan.sessions, plan.items);
    let report = simulate(&plan, seed);
    println!("{}  took               {:.0?}, trace {:016x}", report.figures, began.elapsed(), report.hash);
    is_whole(&report)
}

/// Says what is broken, if something is.
fn is_whole(report: &FleetReport) -> bool {
    let Some(broken) = &report.broken else { return true };
    println!("{}\nfleet: seed {} breaks a rule: {broken}", report.last.join("\n"), report.seed);
    false
}
