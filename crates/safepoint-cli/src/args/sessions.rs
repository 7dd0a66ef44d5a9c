//! The command line of `safepoint sessions`.

use clap::{Args, Subcommand};

use super::store::Where;

/// How many kept sessions are listed, unless it is said.
const NEWEST: usize = 50;

/// `safepoint sessions`. Exhaustive: three commands.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// The sessions that are kept, newest first, and those that run
    Ls(LsArgs),
    /// How one stands: what it is doing, what waits in it, which questions are open
    Show(OneArgs),
    /// Removes a kept session with all that belongs to it; refused while somebody holds it
    Rm(OneArgs),
}

/// `safepoint sessions ls`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LsArgs {
    /// How many of the kept ones, the newest
    #[arg(long, short = 'n', value_name = "N", default_value_t = NEWEST)]
    pub(crate) most: usize,
    #[command(flatten)]
    pub(crate) place: Where,
}

/// `safepoint sessions show` and `rm`.
#[derive(Clone, Debug, Args)]
pub(crate) struct OneArgs {
    /// The session's id, or an end of it that no other has
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) place: Where,
}
