//! `fleet`: simulated nodes, leases and placement, with everything that goes wrong by seed.

use crate::cargo;

/// Its tests, and seeds for two minutes; seeds alone with `[--seconds N] [--seed N]`; or the large fleet once: `--large`.
pub(crate) fn fleet(args: &[String]) -> anyhow::Result<()> {
    const BUILT: [&str; 11] = [
        "run",
        "--quiet",
        "--profile",
        "fleet",
        "--package",
        "safepoint-testkit",
        "--features",
        "fleet",
        "--bin",
        "safepoint-fleet",
        "--",
    ];
    const TESTS: [&str; 9] = [
        "test",
        "--profile",
        "fleet",
        "--package",
        "safepoint-testkit",
        "--features",
        "fleet",
        "--lib",
        "fleet",
    ];
    if args.is_empty() {
        cargo::run(&TESTS)?;
    }
    let args: Vec<&str> = BUILT.into_iter().chain(args.iter().map(String::as_str)).collect();
    cargo::run(&args)
}
