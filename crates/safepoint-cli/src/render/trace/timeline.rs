//! What a session's journal tells, as steps on a line of time: what text, JSON and the page all show.

use jiff::Timestamp;
use safepoint::{Usage, ids::TurnId, raw::store::Liveness, session::ItemOutcome, store::SessionRow};
use serde_json::{Map, Value};

/// A session, looked back on.
pub(crate) struct Timeline {
    pub(crate) row: SessionRow,
    pub(crate) turns: Vec<Turn>,
    /// The runs, in the order of their coming. The root run of every turn is the first.
    pub(crate) runs: Vec<Lane>,
    /// Turn by turn, and within a turn in the order of their beginning.
    pub(crate) steps: Vec<Step>,
}

/// One turn.
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    /// What it was asked.
    pub(crate) asked: String,
    /// The outcome; none while the turn runs, or if its process ended first.
    pub(crate) fate: Option<ItemOutcome>,
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
    /// Of all its runs.
    pub(crate) usage: Usage,
    pub(crate) rounds: u32,
}

/// One run's place in the tree of its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    /// The agent's name, with a number if another has it; empty for the root.
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Where in the journal it begins.
    pub(crate) position: u64,
    pub(crate) turn: Option<TurnId>,
    /// Which of the story's runs.
    pub(crate) run: usize,
    pub(crate) round: Option<u32>,
    pub(crate) kind: Kind,
    pub(crate) tone: Tone,
    pub(crate) from: Option<Timestamp>,
    /// When it was over, of what lasts; none if it has no recorded end.
    pub(crate) to: Option<Timestamp>,
    /// What it is.
    pub(crate) title: String,
    /// How it went.
    pub(crate) said: String,
    /// Everything else, by its name in JSON.
    pub(crate) fields: Map<String, Value>,
}

/// What a step is. Exhaustive: each has a name and a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Attempt,
    Model,
    Retry,
    Call,
    Child,
    Approval,
    Steer,
    StopAsked,
    StopEscalated,
    StopObserved,
    Settled,
    Quiet,
    TurnEnded,
    Other,
    Damaged,
}

/// How a step looks. Exhaustive: five looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
    Stopped,
    /// It has no recorded end.
    Open,
}

impl Kind {
    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Attempt => "attempt",
            Self::Model => "model",
            Self::Retry => "retry",
            Self::Call => "call",
            Self::Child => "child",
            Self::Approval => "approval",
            Self::Steer => "steer",
            Self::StopAsked => "stop_requested",
            Self::StopEscalated => "stop_escalated",
            Self::StopObserved => "stop_observed",
            Self::Settled => "settled",
            Self::Quiet => "quiet",
            Self::TurnEnded => "turn_ended",
            Self::Other => "other",
            Self::Damaged => "damaged",
        }
    }

    /// Whether it lasts.
    pub(crate) fn is_span(self) -> bool {
        matches!(self, Self::Attempt | Self::Model | Self::Retry | Self::Call | Self::Child | Self::Approval)
    }
}

impl Tone {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Stopped => "stopped",
            Self::Open => "open",
        }
    }
}

impl Step {
    /// Adds fields of its JSON.
    pub(super) fn add<const N: usize>(&mut self, fields: [(&str, Value); N]) {
        self.fields.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }
}

impl Timeline {
    /// How the session stands.
    pub(crate) fn state(&self) -> &str {
        let is_dead = self.row.holder.as_ref().is_none_or(|held| held.owner.life() == Liveness::Dead);
        match self.row.label.as_str() {
            "" => "new",
            "running" if is_dead => "interrupted",
            label => label,
        }
    }

    /// How many records could not be read.
    pub(crate) fn damaged(&self) -> usize {
        self.steps.iter().filter(|step| step.kind == Kind::Damaged).count()
    }

    /// Of all turns.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.turns.iter().for_each(|turn| usage.add(&turn.usage));
        usage
    }
}

impl Lane {
    pub(crate) fn depth(&self) -> usize {
        self.path.len()
    }
}

/// How a turn stands, for people.
pub(crate) fn standing(fate: Option<ItemOutcome>) -> &'static str {
    match fate {
        None => "no recorded end",
        Some(ItemOutcome::Completed(_)) => "completed",
        Some(ItemOutcome::Preempted(_)) => "preempted",
        Some(ItemOutcome::Failed(_)) => "failed",
        Some(ItemOutcome::Interrupted(_)) => "stopped",
        Some(ItemOutcome::Suspended(_)) => "suspended",
        Some(ItemOutcome::RolledBack(_)) => "forgotten",
        Some(
            ItemOutcome::Dropped | ItemOutcome::Withdrawn | ItemOutcome::Returned(_) | ItemOutcome::Unhandled,
        ) => "not run",
    }
}
