//! `stores`: the store that needs a server, and what brings sessions to nodes beside it, tested against a real one. The tests start it;
//! without one they fail, and say what to install.

use crate::{cargo, watched};

/// What is built for all of it, at once: the same crates of others have other features in each smaller build, and all that uses them is
/// built anew.
const BUILT: [&str; 8] = [
    "--package",
    "safepoint-stores",
    "--package",
    "safepoint-nodes",
    "--package",
    "safepoint-cli",
    "--features",
    "safepoint-stores/postgres,safepoint-nodes/graphile,safepoint-nodes/restate,safepoint-cli/graphile,safepoint-cli/restate",
];

/// The store, the job queue in its database, and the commands over it; with the unit tests of the first two.
const STORES: [&str; 5] = ["--lib", "--test", "postgres", "--test", "graphile"];

/// Real nodes over a database. One world at a time: each is several processes, and leases are short.
const NODES: [&str; 4] = ["--test", "nodes", "--", "--test-threads=1"];

/// Runs those tests.
pub(crate) fn stores() -> anyhow::Result<()> {
    tests(&STORES)?;
    nodes()
}

/// Runs the tests of real nodes alone.
pub(crate) fn nodes() -> anyhow::Result<()> {
    tests(&NODES)
}

fn tests(which: &[&str]) -> anyhow::Result<()> {
    // One run says all that fails.
    let args = [&BUILT[..], &["--no-fail-fast"], which].concat();
    watched::watched(&args.into_iter().map(str::to_owned).collect::<Vec<_>>())
}

/// A command that runs one test of the durable engine, by its whole name.
pub(crate) fn restate(test: &str) -> std::process::Command {
    let mut command = cargo::command();
    command.args(["test", "--quiet"]).args(BUILT).args(["--test", "restate"]);
    command.args(["--", "--exact", test, "--nocapture"]);
    command
}
