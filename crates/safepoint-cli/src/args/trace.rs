//! The command line of `safepoint trace`.

use std::path::PathBuf;

use clap::Args;

use super::{server::ServerArgs, store::StoreArgs};

/// `safepoint trace`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "With --server, --json has the lines of run --json and those around its turns, as far as they are recorded.\n\nExit codes: 0 shown, 1 failed, 2 wrong usage, 3 session not found."
)]
pub(crate) struct TraceArgs {
    /// The session
    pub(crate) session: String,
    /// Write the timeline as one HTML page instead; a browser opens it without a network
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
