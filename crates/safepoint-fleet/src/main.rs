//! Plays seeds of a simulated fleet for a time, or one seed of a large one, or of real sessions: `cargo xtask fleet`. `--watch WORD…`, at
//! the end, prints the steps of one that is played once in which a word occurs.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use safepoint_fleet::{FleetPlan, FleetReport, simulate};

/// How long seeds are played, in seconds, unless it is said.
const SECONDS: u64 = 120;

/// What is to be played.
struct Wanted {
    seed: u64,
    seconds: u64,
    /// Played once.
    once: Option<FleetPlan>,
    watch: Vec<String>,
}

impl Wanted {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut wanted = Self { seed: 1, seconds: SECONDS, once: None, watch: Vec::new() };
        while let Some(arg) = args.next() {
            let mut number = || {
                let number = args.next().and_then(|number| number.parse().ok());
                number.ok_or_else(|| format!("{arg} is followed by a number"))
            };
            match arg.as_str() {
                "--seed" => wanted.seed = number()?,
                "--seconds" => wanted.seconds = number()?,
                "--large" => wanted.once = Some(FleetPlan::large()),
                "--sessions" => wanted.once = Some(FleetPlan::sessions()),
                "--watch" => wanted.watch.extend(args.by_ref()),
                _ => {
                    let all = "--seconds N, --seed N, --large, --sessions and --watch WORD…";
                    return Err(format!("`{arg}` is none of {all}"));
                }
            }
        }
        Ok(wanted)
    }

    fn plays(self) -> bool {
        match self.once {
            Some(mut plan) => {
                plan.watch = self.watch;
                plays_once(&plan, self.seed)
            }
            None => plays_seeds(self.seed, Duration::from_secs(self.seconds)),
        }
    }
}

fn main() -> ExitCode {
    let is_whole = match Wanted::read(std::env::args().skip(1)) {
        Ok(wanted) => wanted.plays(),
        Err(wrong) => {
            println!("fleet: {wrong}");
            // Exit: as for any wrong use.
            return ExitCode::from(2);
        }
    };
    // Exit: CI reads it.
    if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

fn plays_once(plan: &FleetPlan, seed: u64) -> bool {
    let began = Instant::now();
    println!("fleet: seed {seed}, {} nodes, {} sessions, {} items", plan.nodes, plan.sessions, plan.items);
    let report = simulate(plan, seed);
    println!("{}  took               {:.0?}, trace {:016x}", report.figures, began.elapsed(), report.hash);
    is_whole(&report)
}

/// Says what is broken, if something is.
fn is_whole(report: &FleetReport) -> bool {
    let Some(broken) = &report.broken else { return true };
    println!("{}\nfleet: seed {} breaks a rule: {broken}", report.last.join("\n"), report.seed);
    false
}
