//! `bench`: measures, each beside loops written by hand; `bench counts`: what does not depend on how busy the machine is.

use crate::cargo;

/// The part that is counted, and not timed: CI runs it.
const COUNTS: &str = "counts";

/// The part that needs a database, by `SAFEPOINT_BENCH_DATABASE`.
const NODES: &str = "nodes";

/// Hands everything to the runner, which knows what there is to measure.
pub(crate) fn bench(args: &[String]) -> anyhow::Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match &args[..] {
        [part, flags @ ..] if *part == COUNTS => counts(flags),
        parts if parts.contains(&NODES) => {
            run(&["--profile", "dist", "--features", "safepoint-bench/postgres"], "safepoint-bench", parts)
        }
        parts => run(&["--profile", "dist"], "safepoint-bench", parts),
    }
}

/// Counts with the settings of the tests, so that nothing is built for it alone.
pub(crate) fn counts(flags: &[&str]) -> anyhow::Result<()> {
    run(&["--quiet"], COUNTS, flags)
}

fn run(how: &[&str], program: &str, args: &[&str]) -> anyhow::Result<()> {
    let recipe = [&["run"], how, &["--package", "safepoint-bench", "--bin", program, "--"], args].concat();
    cargo::run(&recipe)
}
