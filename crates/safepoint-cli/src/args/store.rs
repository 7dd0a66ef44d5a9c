//! The command line of the commands on stored sessions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The store, and the form of the output.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store's file; default: $XDG_DATA_HOME/safepoint/store.db, or the same under ~/.local/share
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    /// One JSON object per line on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// `safepoint store`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Check every stored session, and name the first damaged record of each
    Check(StoreArgs),
    /// Print a session's journal, one JSON object per record; a damaged record is marked in its place
    Export(ExportArgs),
}

/// `safepoint store export`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session
    pub(crate) session: String,
    /// The store's file; default: $XDG_DATA_HOME/safepoint/store.db, or the same under ~/.local/share
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
}
