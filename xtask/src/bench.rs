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
        parts if parts.contains(&NODES) => run(&["--features", "safepoint-bench/postgres"], parts),
        parts => run(&[], parts),
    }
}

/// Counts as a test of the workspace, so that nothing is built for it alone.
pub(crate) fn counts(flags: &[&str]) -> anyhow::Result<()> {
    cargo::run(&[&["test", "--quiet", "--workspace", "--test", COUNTS, "--"], flags].concat())
}

fn run(features: &[&str], parts: &[&str]) -> anyhow::Result<()> {
    const PROGRAM: [&str; 5] = ["run", "--profile", "dist", "--package", "safepoint-bench"];
    cargo::run(&[&PROGRAM[..], features, &["--"], parts].concat())
}
