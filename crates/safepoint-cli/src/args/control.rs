//! The command line of the commands that talk to a running session.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::{duration::parse as duration, server::ServerArgs, store::StoreArgs};

const PUSH: &str = "\
Exit codes: 0 queued, or with --wait answered; 1 failed; 2 wrong usage; 3 session not found; 4 too late, or with --wait
settled without an answer; 5 conflict; 6 inbox full or closed; 7 --timeout passed.";

const WITHDRAW: &str = "\
Exit codes: 0 withdrawn; 1 failed; 2 wrong usage; 3 session or item not found; 4 too late: a turn has it; 7 --timeout passed.";

const STOP: &str = "\
Exit codes: 0 stop requested, or with --wait ended; 1 failed, or with --wait=quiet not known to be quiet; 2 wrong usage;
3 session, run, call or node not found; 4 too late: already ended; 7 --timeout passed.";

/// Flags of each of these commands.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// The session's id or a unique end of it (safepoint sessions ls)
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// How long to wait for an answer, or with --wait for the end; then exit code 7
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// `safepoint push`.
#[derive(Clone, Debug, Args)]
#[command(after_help = PUSH)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The message; `-` reads it from stdin
    pub(crate) text: String,
    /// What to do with the message while a turn is running
    #[arg(long, value_enum, default_value = "enqueue")]
    pub(crate) policy: PolicyArg,
    /// The safe points at which a preempt stops the turn; default: now
    #[arg(long, value_name = "POINTS")]
    pub(crate) at: Option<String>,
    /// Force the preempting stop after this time
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) within: Option<Duration>,
    /// Delay the preempting stop by this time
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) delay: Option<Duration>,
    /// Preempt this turn only
    #[arg(long, value_name = "ID")]
    pub(crate) turn: Option<String>,
    /// Your id for this message; a second push with the same id adds nothing
    #[arg(long, value_name = "CLIENT_ID")]
    pub(crate) id: Option<String>,
    /// Wait for the final outcome
    #[arg(long)]
    pub(crate) wait: bool,
}

/// `safepoint steer`.
#[derive(Clone, Debug, Args)]
#[command(after_help = PUSH)]
pub(crate) struct SteerArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The message; `-` reads it from stdin
    pub(crate) text: String,
    /// What to do with a steer that cannot be delivered
    #[arg(long, value_enum, default_value = "queue")]
    pub(crate) or: OrArg,
    /// Wait for the final outcome
    #[arg(long)]
    pub(crate) wait: bool,
}

/// `safepoint withdraw`.
#[derive(Clone, Debug, Args)]
#[command(after_help = WITHDRAW)]
pub(crate) struct WithdrawArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The item, as push printed it
    pub(crate) item: String,
}

/// `safepoint stop`.
#[derive(Clone, Debug, Args)]
#[command(after_help = STOP)]
pub(crate) struct StopArgs {
    /// The session's id or a unique end of it (safepoint sessions ls)
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) session: Option<String>,
    /// Stop every session that a process has open, all of them or none; asked of the store, and not waited for
    #[arg(long, conflicts_with_all = ["server", "run", "call", "wait", "scope"])]
    pub(crate) all: bool,
    /// With --all: only those that this node holds (safepoint nodes ls)
    #[arg(long, value_name = "NAME", requires = "all")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// How long to wait for an answer, or with --wait for the end; then exit code 7
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Stop now
    #[arg(long, conflicts_with_all = ["at", "when_idle", "within"])]
    pub(crate) now: bool,
    /// Stop at the first of these safe points: turn-end, after-model, after-started-calls, after-all-calls, any
    #[arg(long, value_name = "POINTS", conflicts_with = "when_idle")]
    pub(crate) at: Option<String>,
    /// Stop once the session has been idle for this time
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) when_idle: Option<Duration>,
    /// Force the stop after this time; `never` waits for the safe point; default 5s, or never with --at
    #[arg(long, value_name = "DUR|never")]
    pub(crate) within: Option<String>,
    /// Stop only the root run, or the whole tree
    #[arg(long, value_enum, default_value = "tree")]
    pub(crate) scope: ScopeArg,
    /// Stop this run only; the session continues
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Stop this call only; its run continues
    #[arg(long, value_name = "ID")]
    pub(crate) call: Option<String>,
    /// The limit of all clean-up times together
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) cleanup_cap: Option<Duration>,
    /// Abandon the turn: it cannot be resumed
    #[arg(long)]
    pub(crate) abandon: bool,
    /// The reason, shown in the receipt
    #[arg(long, value_name = "TEXT")]
    pub(crate) because: Option<String>,
    /// Wait for the end: settled (the default) or quiet
    #[arg(long, value_name = "FOR", num_args = 0..=1, require_equals = true, default_missing_value = "settled",
        value_parser = ["settled", "quiet"])]
    pub(crate) wait: Option<String>,
}

/// As the command line names the policies. Exhaustive: S6.6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PolicyArg {
    #[default]
    /// Wait in the queue
    Enqueue,
    /// Steer the running turn with its next request
    Steer,
    /// Stop the running turn and start with this message
    Preempt,
    /// Refuse the message while a turn is running
    Reject,
    /// Stop the running turn now and drop it from the history
    Rollback,
}

/// What becomes of a steer that cannot be delivered. Exhaustive: two choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrArg {
    #[default]
    /// Queue the message
    Queue,
    /// Return the message
    Return,
}

/// How far a stop reaches. Exhaustive: this run alone, or also all runs below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScopeArg {
    /// Only the root run
    Root,
    /// The root run and all runs below it
    Tree,
}
