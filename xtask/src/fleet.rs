//! `fleet`: simulated nodes, leases and placement, with everything that goes wrong by seed.

use crate::cargo;

/// Its tests, and seeds for two minutes; seeds alone with `[--seconds N] [--seed N]`; or the large fleet once: `--large`.
pub(crate) fn fleet(args: &[String]) -> anyhow::Result<()> {
    /// Built beside all else, where it waits for no lock.
    const BUILT: [&str; 6] =
        ["--profile", "fleet", "--target-dir", "target/fleet", "--package", "safepoint-fleet"];
    if args.is_empty() {
        cargo::run(&[&["test", "--lib"], &BUILT[..]].concat())?;
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    cargo::run(&[&["run", "--quiet"], &BUILT[..], &["--"], &args].concat())
}
