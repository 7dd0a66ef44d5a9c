//! The command line of the commands on kept sessions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Where, and in which form.
#[derive(Clone, Debug, Args)]
pub(crate) struct Where {
    /// The store's file; default: $XDG_DATA_HOME/safepoint/store.db, or the same under ~/.local/share
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    /// One JSON object a line on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// `safepoint store`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Verifies the chain of every session, and names the first bad record of each
    Check(Where),
    /// What is readable of a session's journal: one JSON object a record, a damaged one in its place
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
