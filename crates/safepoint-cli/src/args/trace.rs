//! The command line of `safepoint trace`.

use std::path::PathBuf;

use clap::Args;

use super::store::Where;

/// `safepoint trace`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TraceArgs {
    /// The session
    pub(crate) session: String,
    /// Writes a page instead that needs nothing else: a browser opens it, without a network
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: Where,
}
