//! The command line of the commands that talk to a running session.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::args::duration::parse as duration;

/// What each of them takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// The session's id, or an end of it that no other has (safepoint sessions ls)
    pub(crate) session: String,
    /// One JSON object a line on stdout, nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// Where kept sessions are; default: $XDG_DATA_HOME/safepoint/store.db, or the same under ~/.local/share
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    /// How long to wait for its answer; with --wait, for the end. Exit code 7 after that
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// `safepoint push`.
#[derive(Clone, Debug, Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to say; `-` reads it from stdin
    pub(crate) text: String,
    /// What happens if a turn is at work
    #[arg(long, value_enum, default_value = "enqueue")]
    pub(crate) policy: PolicyWord,
    /// The safe points at which a preempt stops the turn; default: now
    #[arg(long, value_name = "POINTS")]
    pub(crate) at: Option<String>,
    /// After so long the preempt stops it now
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) within: Option<Duration>,
    /// The preempt is asked only after so long
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) delay: Option<Duration>,
    /// The turn that the preempt means, and no other
    #[arg(long, value_name = "ID")]
    pub(crate) turn: Option<String>,
    /// An id of yours: the same again is the same item
    #[arg(long, value_name = "CLIENT_ID")]
    pub(crate) id: Option<String>,
    /// Waits until it has come to rest
    #[arg(long)]
    pub(crate) wait: bool,
}

/// `safepoint steer`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SteerArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to say; `-` reads it from stdin
    pub(crate) text: String,
    /// Where it goes if it cannot be delivered
    #[arg(long, value_enum, default_value = "queue")]
    pub(crate) or: OrWord,
    /// Waits until it has come to rest
    #[arg(long)]
    pub(crate) wait: bool,
}

/// `safepoint withdraw`.
#[derive(Clone, Debug, Args)]
pub(crate) struct WithdrawArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The item, as push named it
    pub(crate) item: String,
}

/// `safepoint stop`.
#[derive(Clone, Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// At once
    #[arg(long, conflicts_with_all = ["at", "when_idle", "within"])]
    pub(crate) now: bool,
    /// At the first of these: turn-end, after-model, after-started-calls, after-all-calls, any
    #[arg(long, value_name = "POINTS", conflicts_with = "when_idle")]
    pub(crate) at: Option<String>,
    /// Once it was idle for so long
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) when_idle: Option<Duration>,
    /// After so long now; `never` waits for the safe point; default 5s, or never with --at
    #[arg(long, value_name = "DUR|never")]
    pub(crate) within: Option<String>,
    /// Its own run, or the whole tree
    #[arg(long, value_enum, default_value = "tree")]
    pub(crate) scope: ScopeWord,
    /// This run alone; the session goes on
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// This call alone; its run goes on
    #[arg(long, value_name = "ID")]
    pub(crate) call: Option<String>,
    /// The bound over all clean-up times together
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) cleanup_cap: Option<Duration>,
    /// The turn will not be resumed
    #[arg(long)]
    pub(crate) abandon: bool,
    /// Why, as the receipt tells it
    #[arg(long, value_name = "TEXT")]
    pub(crate) because: Option<String>,
    /// Waits for the end: settled (the default) or quiet
    #[arg(long, value_name = "FOR", num_args = 0..=1, require_equals = true, default_missing_value = "settled",
        value_parser = ["settled", "quiet"])]
    pub(crate) wait: Option<String>,
}

/// As the command line names the policies. Exhaustive: S6.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PolicyWord {
    /// It waits its turn
    Enqueue,
    /// It goes to the turn at work, with its next request
    Steer,
    /// The turn at work is stopped for it
    Preempt,
    /// It is refused while a turn is at work
    Reject,
    /// The turn at work is stopped now, and forgotten
    Rollback,
}

/// Where a steer goes that cannot be delivered. Exhaustive: into the queue, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrWord {
    /// It waits for a turn
    Queue,
    /// It comes back
    Return,
}

/// Exhaustive: this run alone, or all below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeWord {
    /// The session's own run
    Root,
    /// It and all below it
    Tree,
}
