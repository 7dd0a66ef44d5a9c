//! The command line of the commands on stored sessions.

use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::{
    duration::parse as duration,
    place::{self, StorePlace},
};

/// The store, and the form of the output.
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store: a file, or postgres://… for a database; default: $SAFEPOINT_STORE, $XDG_DATA_HOME/safepoint/store.db or ~/.local/share/safepoint/store.db
    #[arg(long, value_name = "PATH|URL", value_parser = place::parser(), value_hint = ValueHint::AnyPath)]
    pub(crate) store: Option<StorePlace>,
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
    /// Copy sessions from one store to another: from a file to a database and back, or from file to file
    #[command(
        after_help = "Each session is copied whole and its journal verified on both sides; what was copied before and has gone on in FROM is \
                      brought up to date. Refused: a session that a process has open, and one that has gone on in TO. The others are \
                      copied all the same. FROM keeps its sessions; work on in one of the two alone.\n\nExit codes: 0 copied or there \
                      already, 1 failed or one was refused, 2 wrong usage, 3 session not found."
    )]
    Copy(CopyArgs),
    /// Make the tables of a database, or bring those of an earlier release to this one
    #[command(
        after_help = "Each command that opens a database does the same, if its role may; programs may leave it to this one. Nothing is to be \
                      done for a file.\n\nExit codes: 0 they are of this release, 1 failed, 2 wrong usage."
    )]
    Migrate(StoreArgs),
    /// List stored sessions that have not changed for a time, and remove them with --yes
    #[command(
        after_help = "Never removed: a session that a process owns. Removed only if --also names it: one that waits for a decision, \
                      has open approvals, or in which a message waits. Sessions in which nothing was said go whatever their age. \
                      The snapshots of files go with their session.\n\nExit codes: 0 listed or removed, 1 failed, 2 wrong usage, 3 session \
                      of --also not found."
    )]
    Prune(PruneArgs),
}

/// `safepoint store copy`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CopyArgs {
    /// The store that has the sessions
    #[arg(value_name = "FROM", value_parser = place::parser(), value_hint = ValueHint::AnyPath)]
    pub(crate) from: StorePlace,
    /// The store that gets them; a file is made if there is none
    #[arg(value_name = "TO", value_parser = place::parser(), value_hint = ValueHint::AnyPath)]
    pub(crate) to: StorePlace,
    /// These sessions, each by its id or a unique end of it; default: all
    #[arg(value_name = "SESSION")]
    pub(crate) sessions: Vec<String>,
    /// One JSON object per line on stdout
    #[arg(long)]
    pub(crate) json: bool,
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
    /// The store: a file, or postgres://… for a database; default: $SAFEPOINT_STORE, $XDG_DATA_HOME/safepoint/store.db or ~/.local/share/safepoint/store.db
    #[arg(long, value_name = "PATH|URL", value_parser = place::parser(), value_hint = ValueHint::AnyPath)]
    pub(crate) store: Option<StorePlace>,
}
