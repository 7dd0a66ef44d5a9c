//! What answers say: the types of their JSON, from which the document of the API is made.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use safepoint::session::ItemOutcome;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// An agent of the server.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentAnswer {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionAnswer {
    pub(crate) id: String,
    pub(crate) agent: String,
    pub(crate) title: String,
    pub(crate) state: SessionState,
    pub(crate) open: OpenAt,
    /// Whether it survives the end of the server.
    pub(crate) durable: bool,
    /// The turn that runs.
    pub(crate) turn: Option<RunningTurn>,
    /// The turn that ended early and may be resumed. What waits begins once it is, or with the next item that is pushed. A list says it
    /// of sessions that the server has open alone.
    pub(crate) resumable: Option<String>,
    /// Whether what waits begins with a resume or with the next item that is pushed alone, and no turn is `resumable`.
    pub(crate) held: bool,
    /// What waits for its turn.
    pub(crate) waiting: Vec<String>,
    /// How many questions are open.
    pub(crate) approvals: usize,
    pub(crate) created: Timestamp,
    pub(crate) updated: Timestamp,
    /// The id of its last recorded event: a stream continues behind it.
    pub(crate) cursor: Option<String>,
}

/// How a session is. Exhaustive: as the store and its owner say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionState {
    /// A turn runs.
    Running,
    /// Items wait for a turn.
    Queued,
    /// It is at rest, in the hands of its owner.
    Open,
    /// It is at rest.
    Idle,
    /// Its turn waits for a decision.
    Suspended,
    /// Its last turn was stopped.
    Stopped,
    /// Its last turn failed.
    Failed,
    /// Its owner died in a turn.
    Crashed,
}

impl SessionState {
    const ALL: [Self; 8] = [
        Self::Running,
        Self::Queued,
        Self::Open,
        Self::Idle,
        Self::Suspended,
        Self::Stopped,
        Self::Failed,
        Self::Crashed,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Queued => "queued",
            Self::Open => "open",
            Self::Idle => "idle",
            Self::Suspended => "suspended",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
        }
    }
}

impl FromStr for SessionState {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is no state of a session; the states are {all}")
        })
    }
}

/// Where a session is open. Exhaustive: in this server, in another process, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpenAt {
    Here,
    Elsewhere,
    No,
}

/// The turn that runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunningTurn {
    pub(crate) id: String,
    pub(crate) run: String,
    /// What of it is alive.
    pub(crate) alive: Vec<String>,
    /// Whether it was asked to stop.
    pub(crate) stopping: bool,
}

/// Items of a list, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListPage<T> {
    pub(crate) data: Vec<T>,
    /// What `after` is for the next page, which there may be behind a short or an empty one too; null: there is none.
    pub(crate) next: Option<String>,
}

/// An item: where it is, and what became of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ItemAnswer {
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) state: ItemState,
    /// The turn that has it, or had it.
    pub(crate) turn: Option<String>,
    /// What became of it; null while that is open.
    pub(crate) outcome: Option<&'static str>,
    /// Why it came back: a stable code.
    pub(crate) returned: Option<&'static str>,
    /// What its turn answered, if it completed.
    pub(crate) answer: Option<String>,
    /// The code of a stop that had ended its turn before that was resumed: where ends are final, that is its end.
    #[serde(skip)]
    pub(crate) stopped_by: Option<String>,
}

impl ItemAnswer {
    /// Whether nothing of it is left to stop: it is at rest, and waits for no decision.
    pub(crate) fn is_over(&self) -> bool {
        self.state == ItemState::Rest && self.outcome != Some("suspended")
    }
}

/// Where an item is. Exhaustive: it waits, a turn has it, or it is at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemState {
    Accepted,
    Running,
    Rest,
}

/// A stop.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StopAnswer {
    /// Its number among the session's stops; null if it is not durable.
    pub(crate) number: Option<u64>,
    /// Whether the store has it: then it outlives the server.
    pub(crate) recorded: bool,
    /// The turn that it reached.
    pub(crate) turn: Option<String>,
    /// The item that it withdrew, where no turn had it: nothing of it has run.
    pub(crate) withdrawn: Option<String>,
    /// Whether it found the next turn planned, which does not begin: what waits is held until a resume, or the next item.
    pub(crate) held: bool,
    pub(crate) state: StopState,
    /// What of the turn is alive, while it has not settled.
    pub(crate) waits_for: Vec<String>,
    /// Whether nothing of the turn is alive; null while that is open.
    pub(crate) quiet: Option<bool>,
    /// What was alive at the deadline.
    pub(crate) survivors: Vec<String>,
    /// The account of the turn, once it has settled.
    pub(crate) receipt: Option<Value>,
}

impl StopAnswer {
    /// A stop that is under way.
    pub(crate) fn requested() -> Self {
        Self {
            number: None,
            recorded: false,
            turn: None,
            withdrawn: None,
            held: false,
            state: StopState::Requested,
            waits_for: Vec::new(),
            quiet: None,
            survivors: Vec::new(),
            receipt: None,
        }
    }
}

/// How far a stop is. Exhaustive; no state says stopped before the turn has settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopState {
    /// It is under way.
    Requested,
    /// It had its first effect.
    Observed,
    /// The outcome of the turn is fixed.
    Settled,
    /// Nothing of the turn is alive.
    Quiet,
    /// Something of it was alive at the deadline.
    NotQuiet,
    /// The end of the server's process cut the turn before it had settled: what of it was alive then is not known.
    Crashed,
}

/// A turn.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TurnAnswer {
    pub(crate) id: String,
    /// How it ended; null while it runs.
    pub(crate) outcome: Option<&'static str>,
    /// What the model said last.
    pub(crate) answer: Option<String>,
    /// Whether nothing of it is alive; null while that is open.
    pub(crate) quiet: Option<bool>,
    pub(crate) survivors: Vec<String>,
    pub(crate) receipt: Option<Value>,
}

/// A question.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalAnswer {
    pub(crate) id: String,
    pub(crate) session: String,
    pub(crate) tool: String,
    /// What is asked: `may_run`, `may_have_run` or `mid_call`.
    pub(crate) question: Value,
    pub(crate) args: Value,
    pub(crate) digest: String,
    pub(crate) asked_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    /// `open`, `decided`, `withdrawn` or `expired`.
    pub(crate) state: &'static str,
    /// Who decided, and when.
    pub(crate) by: Option<String>,
    pub(crate) at: Option<Timestamp>,
}

/// A decision that was taken.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DecisionAnswer {
    pub(crate) approval: String,
    /// Whether the same decision had been taken before.
    pub(crate) already: bool,
}

/// A step of a session's journal.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepAnswer {
    /// Its place in the journal, from 0.
    pub(crate) position: u64,
    /// The id that its event has in a stream.
    pub(crate) id: String,
    pub(crate) at: Option<Timestamp>,
    /// The event, as the stream has it.
    pub(crate) event: Value,
}

/// Whether something was done.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DoneAnswer {
    pub(crate) status: &'static str,
}

/// What became of a turn, and of its items, that the end of its owner's process has cut. A resume takes it up again.
pub(crate) const CRASHED: &str = "crashed";

/// What is said of a turn of this session that the end of a process has cut.
pub(crate) fn crashed_words(session: impl fmt::Display) -> String {
    format!(
        "The end of the server's process cut the turn; what it had begun may have happened. `safepoint resume {session}` continues it"
    )
}

/// The word for an outcome, the turn that it names, and the code with which the item came back.
pub(crate) fn outcome_words(
    outcome: ItemOutcome,
) -> (&'static str, Option<safepoint::ids::TurnId>, Option<&'static str>) {
    match outcome {
        ItemOutcome::Completed(turn) => ("completed", Some(turn), None),
        ItemOutcome::Preempted(turn) => ("preempted", Some(turn), None),
        ItemOutcome::Failed(turn) => ("failed", Some(turn), None),
        ItemOutcome::Interrupted(turn) => ("interrupted", Some(turn), None),
        ItemOutcome::Suspended(turn) => ("suspended", Some(turn), None),
        ItemOutcome::RolledBack(turn) => ("rolled_back", Some(turn), None),
        ItemOutcome::Dropped => ("dropped", None, None),
        ItemOutcome::Withdrawn => ("withdrawn", None, None),
        ItemOutcome::Returned(why) => ("returned", None, Some(why.code())),
        ItemOutcome::Unhandled => ("unhandled", None, None),
    }
}
