//! `check`: what CI runs, one step after the other, up to the first failure.

use crate::{
    bench, cargo, features,
    first_minute::{self, Measured},
    fuzz, optional, peers, spec, stores, tidy, watched,
};

/// Runs what CI runs, save loom and the fleet, which build the world anew.
pub(crate) fn check() -> anyhow::Result<()> {
    cargo::run(&["fmt", "--all", "--", "--check"])?;
    cargo::run(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    tidy::tidy()?;
    first_minute::first_minute(Measured::Crates)?;
    features::features()?;
    watched::watched(&[])?;
    optional::optional()?;
    stores::stores()?;
    bench::counts(&[])?;
    fuzz::smoke()?;
    peers::peers(&peers::Wanted::of(&[])?)?;
    spec::spec(&[])?;
    cargo::doc(&["doc", "--workspace", "--no-deps"])
}
