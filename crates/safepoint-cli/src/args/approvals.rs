//! The command line of the commands that decide about calls.

use clap::{Args, ValueEnum};

use super::store::Where;

/// `safepoint approvals`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// The session
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) place: Where,
}

/// `safepoint approve`, `deny`, `respond`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DecideArgs {
    /// The session
    pub(crate) session: String,
    /// The approval, as `safepoint approvals` names it, or an end of it; where only one is open it need not be named
    pub(crate) approval: Option<String>,
    /// Other arguments instead, as JSON (approve)
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// And put no such question in this session any more (approve): `call` = the same tool with exactly these arguments
    /// (what --always alone means), `tool` = every call of the tool, whatever its arguments
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true,
        default_missing_value = "call", conflicts_with = "args")]
    pub(crate) always: Option<Reach>,
    /// The text for the model (deny, respond)
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) place: Where,
}

/// How far a yes reaches. Exhaustive: the two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reach {
    Call,
    Tool,
}
