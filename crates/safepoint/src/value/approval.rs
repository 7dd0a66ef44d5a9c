//! Questions about calls, and their answers (S8).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::value::{
    ids::{ApprovalId, CallId, Path},
    is_default,
};

mod bound;

pub use bound::{StoredApprovalError, decode_approval, digest};
pub(crate) use bound::{hashed, sorted};

/// What happens on resume to an unsafe call that began and whose end is unknown (S7.3). Exhaustive: it is
/// never run again without a person's approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknownEffect {
    /// The model learns that its effect is unknown.
    #[default]
    Tell,
    /// A person is asked, as [`ApprovalKind::AfterUnknownEnd`]. Without an approver the model learns that the
    /// effect is unknown. So it does where every call that asks may run, because no person has checked what
    /// happened.
    Ask,
}

/// What a person is asked about a call. Exhaustive: before it, after it may have happened, or while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// May it run?
    #[default]
    #[serde(rename = "may_run")]
    BeforeCall,
    /// It began, and its effect is unknown. Approving runs it (again), responding supplies its result, and
    /// denying gives it up: the model learns that its effect is unknown.
    #[serde(rename = "may_have_run")]
    AfterUnknownEnd,
    /// The call runs, and asks whether it may do this: [`ApprovalRequest::tool`] is the call's tool and,
    /// behind a slash, what it would do. It waits for the answer, and a stop withdraws the question with the
    /// call.
    #[serde(rename = "mid_call")]
    DuringCall,
}

/// The question: exactly this call, with exactly these arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Names the question.
    pub id: ApprovalId,
    /// Which run of the tree asks; the root's path is empty.
    #[serde(default, skip_serializing_if = "Path::is_root")]
    pub path: Path,
    /// What is asked about the call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub question: ApprovalKind,
    /// The call that waits.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// A digest of the tool's declaration and place: a lasting approval is bound to it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub definition: String,
    /// How long a plain approval is valid.
    #[serde(default, skip_serializing_if = "is_default")]
    pub holds: Holds,
    /// The arguments that it would get.
    pub args: Value,
    /// Binds a decision to this tool, as declared, with these arguments; see [`digest`].
    pub digest: String,
    /// When it was requested.
    pub asked_at: Timestamp,
    /// When it expires without an answer.
    pub expires_at: Timestamp,
}

/// How long a plain [`Decision::Approve`] is valid. Exhaustive: for what was asked, or for the rest of the
/// session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// This once.
    #[default]
    Once,
    /// For the rest of the session, for exactly what was asked: as [`Decision::ApproveAlways`] with [`AllowScope::Call`].
    Session,
}

/// What an approval for the rest of the session covers. Exhaustive: this very call, or its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AllowScope {
    /// The same tool with exactly the same arguments.
    Call,
    /// Every call of the tool, whatever its arguments.
    Tool,
}

/// The answer. Exhaustive: the executor must act on each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Run it.
    Approve,
    /// Run it, and ask no further question in this session about what this covers, in any of the session's
    /// runs (S8.6). A rule that denies still denies;
    /// [`ApprovalMode::Deny`](crate::approval::ApprovalMode::Deny) still runs nothing that needs approval;
    /// open questions stay open. It is valid after a restart, and in no other session; without a session, in
    /// this tree of runs. As an answer to [`ApprovalKind::AfterUnknownEnd`] it is [`Decision::Approve`], and
    /// covers nothing further.
    ApproveAlways {
        /// What.
        covers: AllowScope,
    },
    /// Run it with these arguments instead: they are validated again, and the rules apply again. This answers
    /// the rule that asked before; what a rule denies, or another rule asks, it does not cover.
    ApproveWith {
        /// The arguments to use.
        args: Value,
        /// The text for the model, below the result of the call: what was changed, and why. Empty for none. It may
        /// be missing where a decision is read.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// Do not run it.
    Deny {
        /// The text for the model; empty for the standard note. It may be missing where a decision is read.
        #[serde(default)]
        message: String,
    },
    /// Do not run it: this is its result.
    Respond {
        /// The result that the model gets.
        result: String,
    },
}

/// Who decides through a handle, unless another name is given.
pub(crate) const HOLDER: &str = "the holder of the handle";

/// An answer, and who gave it: a later decision gets that name, and a stored session keeps it. A [`Decision`]
/// alone is in the name of the holder of the handle.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruled {
    pub(crate) decision: Decision,
    pub(crate) by: String,
    /// Whether it is applied whatever it says: a store has accepted it, or no one waits to learn that it was refused.
    pub(crate) is_taken: bool,
}

impl Ruled {
    /// The same, to be applied whatever it says.
    pub(crate) fn taken(self) -> Self {
        Self { is_taken: true, ..self }
    }
}

impl Decision {
    /// [`Decision::Deny`], with this text for the model.
    ///
    /// ```
    /// # use safepoint::approval::Decision;
    /// let no = Decision::deny("Not before Friday.");
    /// // From a browser it is JSON; the message may be missing.
    /// let read: Decision = serde_json::from_str(r#"{"decision": "deny", "message": "Not before Friday."}"#)?;
    /// assert_eq!(read, no);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into() }
    }

    /// [`Decision::ApproveWith`], without a text for the model.
    ///
    /// ```
    /// # use safepoint::approval::Decision;
    /// let yes = Decision::approve_with(serde_json::json!({"euros": 50}));
    /// // From a browser it is JSON; a message is optional, and the model gets it with the result.
    /// let read: Decision = serde_json::from_str(r#"{"decision": "approve_with", "args": {"euros": 50}}"#)?;
    /// assert_eq!(read, yes);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn approve_with(args: Value) -> Self {
        Self::ApproveWith { args, message: String::new() }
    }

    /// The decision, in the name of `who`.
    #[must_use]
    pub fn by(self, who: impl Into<String>) -> Ruled {
        Ruled { decision: self, by: who.into(), is_taken: false }
    }
}

impl From<Decision> for Ruled {
    fn from(decision: Decision) -> Self {
        decision.by(HOLDER)
    }
}
