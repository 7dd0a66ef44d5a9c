//! Questions about calls, and their answers (S8).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::value::ids::{ApprovalId, CallId, Path};

mod bound;

pub use bound::{StoredApprovalError, decode_approval, digest};
pub(crate) use bound::{hashed, sorted};

/// What becomes, when a run is taken up again, of an unsafe call that began and whose end is not known (S7.3).
/// Exhaustive: it is never run again unasked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknownEffect {
    /// The model is told that its effect is unknown.
    #[default]
    Tell,
    /// A person is asked, as [`ApprovalKind::AfterUnknownEnd`]. Where nobody can be asked, the model is told; where every call
    /// that asks may run, too, for nobody has looked whether it happened.
    Ask,
}

impl OnUnknownEffect {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::Tell
    }
}

/// What a person is asked about a call. Exhaustive: before it, after it may have happened, or while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// May it run?
    #[default]
    #[serde(rename = "may_run")]
    BeforeCall,
    /// It began, and nobody knows whether it happened. Approving runs it (again), responding says that it is done, with
    /// this result, and denying gives it up: the model is told that its effect is unknown.
    #[serde(rename = "may_have_run")]
    AfterUnknownEnd,
    /// The call runs, and asks whether it may do this: [`ApprovalRequest::tool`] is the call's tool and, behind a
    /// slash, what it would do. It waits for the answer, and a stop takes the question back with the call.
    #[serde(rename = "mid_call")]
    DuringCall,
}

impl ApprovalKind {
    fn is_default(&self) -> bool {
        *self == Self::BeforeCall
    }
}

/// The question: exactly this call, with exactly these arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Names the question.
    pub id: ApprovalId,
    /// Which run of the tree asks; the root's path is empty.
    #[serde(default, skip_serializing_if = "Path::is_root")]
    pub path: Path,
    /// What is asked about the call.
    #[serde(default, skip_serializing_if = "ApprovalKind::is_default")]
    pub question: ApprovalKind,
    /// The call that waits.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The tool as it was declared, and the place that it works on, in a digest: what a yes that lasts is bound to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub definition: String,
    /// How long a plain yes holds.
    #[serde(default, skip_serializing_if = "Holds::is_once")]
    pub holds: Holds,
    /// What it would be given.
    pub args: Value,
    /// Binds a decision to this tool, as it is declared, with these arguments; see [`digest`].
    pub digest: String,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it is over without an answer.
    pub expires_at: Timestamp,
}

/// How long a plain [`Decision::Approve`] holds. Exhaustive: for what was asked, or for the rest of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// This once.
    #[default]
    Once,
    /// For the rest of the session, for exactly what was asked: as [`Decision::ApproveAlways`] with [`AllowScope::Call`].
    Session,
}

impl Holds {
    fn is_once(&self) -> bool {
        *self == Self::Once
    }
}

/// How far a yes reaches that holds for the rest of the session. Exhaustive: this very call, or its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowScope {
    /// The same tool with exactly the same arguments.
    Call,
    /// Every call of the tool, whatever its arguments.
    Tool,
}

/// The answer. Exhaustive: the executor must act on each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Run it.
    Approve,
    /// Run it, and in the rest of this session put no question about what this covers, whichever of the session's runs
    /// wants it (S8.6). A rule that denies still denies; [`ApprovalMode::Deny`](crate::approval::ApprovalMode::Deny) still runs nothing that asks; questions
    /// that are open stay open. It holds after a restart, and in no other session; without a session, in this tree of
    /// runs. As an answer to [`ApprovalKind::AfterUnknownEnd`] it is [`Decision::Approve`], and covers nothing further.
    ApproveAlways {
        /// What.
        covers: AllowScope,
    },
    /// Run it with these arguments instead: validated again, and the rules speak again. What the rule asks that asked
    /// before is answered by this; what a rule denies, or another one asks, is not.
    ApproveWith {
        /// The arguments to use.
        args: Value,
    },
    /// Do not run it.
    Deny {
        /// What the model is told; empty for the standard note.
        message: String,
    },
    /// Do not run it: this is its result.
    Respond {
        /// What the model is told as the result.
        result: String,
    },
}

/// Who decides through a handle, unless it says another name.
pub(crate) const HOLDER: &str = "the holder of the handle";

/// An answer, and in whose name it is: those who come later are told, and where the session is kept it is kept with it. A
/// [`Decision`] alone is in the name of the holder of the handle.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruled {
    pub(crate) decision: Decision,
    pub(crate) by: String,
}

impl Decision {
    /// The same in the name of `who`.
    #[must_use]
    pub fn by(self, who: impl Into<String>) -> Ruled {
        Ruled { decision: self, by: who.into() }
    }
}

impl From<Decision> for Ruled {
    fn from(decision: Decision) -> Self {
        decision.by(HOLDER)
    }
}
