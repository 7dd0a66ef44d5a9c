//! The command line of `safepoint nodes`.

use clap::{Args, Subcommand};

use super::store::StoreArgs;

/// `safepoint nodes`. Exhaustive: two commands.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum NodesCommand {
    /// List the processes that hold sessions of the store or may take some, and those that ended in the last day
    #[command(after_help = "Exit codes: 0 listed, 1 failed, 2 wrong usage.")]
    Ls(StoreArgs),
    /// Ask a node to take no session any more, stop its turns at a safe point, give its sessions back and leave
    #[command(
        after_help = "Other nodes take its sessions; they resume turns of agents with `on_restart = \"resume\"`. It is asked through the store, and \
                      is not waited for.\n\nExit codes: 0 asked, \
                      1 failed, 2 wrong usage, 3 node not found, 4 it has ended."
    )]
    Drain(DrainArgs),
}

/// `safepoint nodes drain`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DrainArgs {
    /// The node's name or its id (safepoint nodes ls)
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
}
