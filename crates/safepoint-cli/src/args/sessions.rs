//! The command line of `safepoint sessions`.

use clap::{Args, Subcommand};

use safepoint::ids::TurnId;

use super::{names, server::ServerArgs, store::StoreArgs};

/// How many stored sessions are listed by default.
const NEWEST: usize = 50;

/// `safepoint sessions`. Exhaustive: four commands.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List stored sessions, newest first, and running ones
    #[command(after_help = "Exit codes: 0 listed, 1 failed, 2 wrong usage.")]
    Ls(LsArgs),
    /// Show the state, queue and open approvals of a session
    #[command(after_help = "Exit codes: 0 shown, 1 failed, 2 wrong usage, 3 session not found.")]
    Show(OneArgs),
    /// Make a new session that continues a stored one from the end of a turn
    #[command(
        after_help = "What later turns did stands, and the model learns of it. --files restores the files under the session's \
                      directory; what others changed since is left unless --also names it. --plan shows all of that first. The old \
                      session stays as it is; `safepoint trace` shows its turns.\n\nExit codes: 0 made, 1 failed, 2 wrong usage, 3 session or turn not found, 5 the name is taken, or \
                      the session is not stored."
    )]
    Fork(ForkArgs),
    /// Remove a stored session and its data; refused while a process owns it
    #[command(
        after_help = "Exit codes: 0 removed, 1 failed, 2 wrong usage, 3 session not found, 5 a process owns it."
    )]
    Rm(OneArgs),
}

/// `safepoint sessions ls`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LsArgs {
    /// How many of the newest stored sessions to list
    #[arg(long, short = 'n', value_name = "N", default_value_t = NEWEST)]
    pub(crate) most: usize,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// `safepoint sessions fork`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ForkArgs {
    /// The session's id or a unique end of it
    pub(crate) session: String,
    /// The turn at whose end the new session begins, as `turn-3` or `3`; by default the last one that has ended
    #[arg(long, value_name = "TURN")]
    pub(crate) at: Option<TurnId>,
    /// The name of the new session; by default a fresh one
    #[arg(long, value_name = "NAME", value_parser = names::parse)]
    pub(crate) name: Option<String>,
    /// Restore the files too, as a chat's snapshot before the next turn has them
    #[arg(long)]
    pub(crate) files: bool,
    /// With --files: a file that another person or program changed since, and that is restored all the same
    #[arg(long, value_name = "PATH", requires = "files")]
    pub(crate) also: Vec<String>,
    /// Show what would be done and what cannot be undone, and do nothing
    #[arg(long)]
    pub(crate) plan: bool,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

/// `safepoint sessions show` and `rm`.
#[derive(Clone, Debug, Args)]
pub(crate) struct OneArgs {
    /// The session's id or a unique end of it
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
