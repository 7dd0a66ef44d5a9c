//! `stores`: the store that needs a server, and the job queue beside it, tested against a real one. The tests start it; without one they fail, and say what to install.

use crate::watched;

/// What is built, and with it the unit tests of the store.
const BUILT: [&str; 7] =
    ["--package", "safepoint-stores", "--features", "postgres", "--lib", "--test", "postgres"];

/// The job queue in the database, as a placement.
const QUEUE: [&str; 7] =
    ["--package", "safepoint-nodes", "--features", "graphile", "--lib", "--test", "graphile"];

/// All that a server over a database may have: one build for the tests of its commands and for those of its nodes.
const FEATURES: &str = "graphile,restate";

/// The command line over a database, with a server of the same kind.
const COMMANDS: [&str; 6] = ["--package", "safepoint-cli", "--features", FEATURES, "--test", "postgres"];

/// Real nodes over a database. One world at a time: each is several processes, and leases are short.
const NODES: [&str; 8] =
    ["--package", "safepoint-cli", "--features", FEATURES, "--test", "nodes", "--", "--test-threads=1"];

/// Runs those tests.
pub(crate) fn stores() -> anyhow::Result<()> {
    watched::watched(&BUILT.map(str::to_owned))?;
    watched::watched(&QUEUE.map(str::to_owned))?;
    watched::watched(&COMMANDS.map(str::to_owned))?;
    nodes()
}

/// Runs the tests of real nodes alone.
pub(crate) fn nodes() -> anyhow::Result<()> {
    watched::watched(&NODES.map(str::to_owned))
}
