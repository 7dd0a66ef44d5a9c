//! The command line of the commands on stored sessions.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::duration::parse as duration;

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
    /// List stored sessions that have not changed for a time, and remove them with --yes
    #[command(
        after_help = "Never removed: a session that a process owns. Removed only if --also names it: one that waits for a decision, \
                      has open approvals, or in which a message waits. Sessions in which nothing was said go whatever their age. \
                      The snapshots of files go with their session.\n\nExit codes: 0 listed or removed, 1 failed, 2 wrong usage, 3 session \
                      of --also not found."
    )]
    Prune(PruneArgs),
}

/// `safepoint store prune`.
#[derive(Clone, Debug, Args)]
pub(crate) struct PruneArgs {
    /// How long a session has not changed, such as 30d
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) older: Duration,
    /// Remove what is listed; without it nothing is removed
    #[arg(long)]
    pub(crate) yes: bool,
    /// A session of that age that is removed although it waits for a person, or a message waits in it
    #[arg(long, value_name = "ID")]
    pub(crate) also: Vec<String>,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
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
