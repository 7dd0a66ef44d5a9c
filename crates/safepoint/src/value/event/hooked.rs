//! What a hook did, as it is recorded: who changed what, or decided what.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::value::ids::CallId;

/// What a hook did. It is recorded before what comes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HookReport {
    /// The hook's name.
    pub hook: String,
    /// What it did.
    pub action: HookAction,
}

impl HookReport {
    /// A report of this hook.
    #[must_use]
    pub fn new(hook: impl Into<String>, action: HookAction) -> Self {
        Self { hook: hook.into(), action }
    }
}

/// What a hook changed or decided. What was taken out of a text is in no report: it has the sizes alone. Exhaustive: the
/// machine must apply each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "did", rename_all = "snake_case")]
pub enum HookAction {
    /// It changed what is sent in one model call. The conversation stays as it is.
    RequestChanged {
        /// The round.
        round: u32,
        /// A digest of the messages as they would have been sent.
        before: String,
        /// A digest of the messages as they are sent.
        after: String,
        /// How many messages are sent.
        messages: usize,
    },
    /// It answered in the model's place: the model is not called, and the run ends with this answer.
    RunAnswered {
        /// The round that the model call would have begun.
        round: u32,
        /// The answer.
        text: String,
    },
    /// It changed what the model, or a summary, said, before it was shown or recorded.
    TextChanged {
        /// The round.
        round: u32,
        /// How many bytes the model said.
        bytes_before: u64,
        /// How many bytes are left of that.
        bytes_after: u64,
    },
    /// It changed the arguments of a call, which is judged again.
    ArgsChanged {
        /// The call.
        call_id: CallId,
        /// A digest of the arguments as they were.
        before: String,
        /// The arguments from now on.
        args: Arc<Value>,
    },
    /// It refused a call; the call's result has the reason.
    CallRefused {
        /// The call.
        call_id: CallId,
    },
    /// It answered a call in its tool's place.
    CallAnswered {
        /// The call.
        call_id: CallId,
    },
    /// It changed the result of a call before it was recorded.
    ResultChanged {
        /// The call.
        call_id: CallId,
        /// How many bytes the result had.
        bytes_before: u64,
        /// How many it has.
        bytes_after: u64,
    },
    /// It did not say in time whether the result of a call may be used, so the result is withheld.
    ResultWithheld {
        /// The call.
        call_id: CallId,
    },
}
