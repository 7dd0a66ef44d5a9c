//! May this call run? Rules, questions and decisions (S8, in process).

use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    sync::callback::{self, Panicked},
    value::ids::{ApprovalId, CallId, Path},
};

mod bound;

pub use bound::{Undecidable, digest, read_stored};
pub(crate) use bound::{hashed, sorted};

/// What a rule says of a call. Exhaustive: a call runs, waits for a person, or does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not run; the model is told why.
    Deny(String),
}

/// What a tool says of its own calls, where no rule speaks. Exhaustive: three answers to one question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// Its calls run without a question.
    #[default]
    NotNeeded,
    /// Each call is put to a person.
    Needed,
}

/// The arguments that a rule speaks of.
type Matches = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// One rule on a tool and its arguments; the first that fits decides.
#[derive(Clone)]
pub struct Rule {
    tool: String,
    matches: Option<Matches>,
    ruling: Ruling,
}

impl Rule {
    /// A rule for every call of `tool`, in whose name a `*` stands for any text: `*` is every tool, `git__*` every
    /// tool whose name begins so.
    #[must_use]
    pub fn on(tool: impl Into<String>, ruling: Ruling) -> Self {
        Self { tool: tool.into(), matches: None, ruling }
    }

    /// Narrows the rule to arguments that `matches` accepts.
    #[must_use]
    pub fn when(mut self, matches: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.matches = Some(Arc::new(matches));
        self
    }

    fn fits(&self, tool: &str, args: &Value) -> bool {
        is_named(&self.tool, tool) && self.matches.as_ref().is_none_or(|matches| matches(args))
    }
}

/// Whether a name is as the pattern says. Each star but the last is given as little as it needs, which misses nothing.
fn is_named(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("tool", &self.tool).field("ruling", &self.ruling).finish_non_exhaustive()
    }
}

/// Who decides when a call needs approval. Exhaustive: the three modes of `--approve`.
#[derive(Clone, Default)]
pub enum Approvals {
    /// Put it to the approver; where there is none, do as `Unanswered` says.
    Ask(Option<Arc<dyn Approver>>, Unanswered),
    /// Every call that asks may run. What a rule denies stays denied.
    Auto,
    /// No call that asks may run.
    #[default]
    Deny,
}

/// What happens to a question that nobody can be asked. Exhaustive: it is never allowed (S8.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// The call is denied.
    #[default]
    Deny,
    /// The run suspends until a decision is given from outside.
    Suspend,
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(approver, unanswered) => {
                f.debug_tuple("Ask").field(&approver.is_some()).field(unanswered).finish()
            }
            Self::Auto => f.write_str("Auto"),
            Self::Deny => f.write_str("Deny"),
        }
    }
}

/// What becomes, when a run is taken up again, of an unsafe call that began and whose end is not known (S7.3).
/// Exhaustive: it is never run again unasked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknown {
    /// The model is told that its effect is unknown.
    #[default]
    Tell,
    /// A person is asked, as [`Question::MayHaveRun`]. Where nobody can be asked, the model is told; where every call
    /// that asks may run, too, for nobody has looked whether it happened.
    Ask,
}

impl OnUnknown {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::Tell
    }
}

/// What a person is asked about a call. Exhaustive: before it, after it may have happened, or while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// May it run?
    #[default]
    MayRun,
    /// It began, and nobody knows whether it happened. Approving runs it (again), responding says that it is done, with
    /// this result, and denying gives it up: the model is told that its effect is unknown.
    MayHaveRun,
    /// The call runs, and asks whether it may do this: [`ApprovalRequest::tool`] is the call's tool and, behind a
    /// slash, what it would do. It waits for the answer, and a stop takes the question back with the call.
    MidCall,
}

impl Question {
    fn is_default(&self) -> bool {
        *self == Self::MayRun
    }
}

/// Somebody who can be asked while the run waits.
pub trait Approver: Send + Sync + 'static {
    /// Puts the question; the answer may take as long as it takes.
    ///
    /// # Cancel safety
    /// Dropped when the run is stopped, the approval expires, or somebody else decides first.
    fn ask(&self, question: ApprovalRequest) -> BoxFuture<'static, Decision>;

    /// The same, of somebody who may leave without an answer. None: nobody can be asked here any more, and the question
    /// is left as [`Unanswered`] says: denied, or open, so that the run suspends.
    ///
    /// # Cancel safety
    /// As [`Approver::ask`].
    fn ask_or_leave(&self, question: ApprovalRequest) -> BoxFuture<'static, Option<Decision>> {
        let asked = self.ask(question);
        Box::pin(async move { Some(asked.await) })
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
    #[serde(default, skip_serializing_if = "Question::is_default")]
    pub question: Question,
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
    /// For the rest of the session, for exactly what was asked: as [`Decision::ApproveAlways`] with [`Covers::Call`].
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
pub enum Covers {
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
    /// wants it (S8.6). A rule that denies still denies; [`Approvals::Deny`] still runs nothing that asks; questions
    /// that are open stay open. It holds after a restart, and in no other session; without a session, in this tree of
    /// runs. As an answer to [`Question::MayHaveRun`] it is [`Decision::Approve`], and covers nothing further.
    ApproveAlways {
        /// What.
        covers: Covers,
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

/// What the rules, the tool's own word and the mode together say of one call. A rule that panics says nothing.
pub(crate) fn rule(rules: &[Rule], own: Approval, tool: &str, args: &Value) -> Result<Ruling, Panicked> {
    let spoken = callback::call(|| rules.iter().find(|rule| rule.fits(tool, args)))?;
    Ok(match (spoken, own) {
        (Some(rule), _) => rule.ruling.clone(),
        (None, Approval::NotNeeded) => Ruling::Allow,
        (None, Approval::Needed) => Ruling::Ask,
    })
}

/// Whether it is one and the same rule that speaks of both.
pub(crate) fn is_one_rule(
    rules: &[Rule],
    tool: &str,
    (one, other): (&Value, &Value),
) -> Result<bool, Panicked> {
    let place = |args| rules.iter().position(|rule| rule.fits(tool, args));
    callback::call(|| place(one) == place(other))
}

/// What a rule says that names this and nothing else; none where there is no such rule.
pub(crate) fn rule_of_its_own(rules: &[Rule], tool: &str, args: &Value) -> Result<Option<Ruling>, Panicked> {
    let spoken = callback::call(|| rules.iter().find(|rule| rule.tool == tool && rule.fits(tool, args)))?;
    Ok(spoken.map(|rule| rule.ruling.clone()))
}
