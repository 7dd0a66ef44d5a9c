//! The command line of the commands that decide about calls.

use clap::{Args, ValueEnum};

use super::{server::ServerArgs, store::StoreArgs};

/// `safepoint approvals`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// The session
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// `safepoint approve`, `deny`, `respond`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DecideArgs {
    /// The session
    pub(crate) session: String,
    /// The approval's id (safepoint approvals) or a unique end of it; not needed if only one is open
    pub(crate) approval: Option<String>,
    /// Run the call with these arguments instead, as JSON (approve)
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Also allow later calls in this session without asking (approve): `call` = the same tool with exactly these arguments
    /// (the default), `tool` = every call of the tool
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true,
        default_missing_value = "call", conflicts_with = "args")]
    pub(crate) always: Option<Reach>,
    /// The text for the model (deny, respond, and approve with --args)
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// How far an approval reaches. Exhaustive: the two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reach {
    Call,
    Tool,
}
