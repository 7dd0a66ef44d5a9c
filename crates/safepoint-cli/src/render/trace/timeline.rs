//! What a session's journal tells, as steps on a line of time: what text, JSON and the page all show.

use jiff::Timestamp;
use safepoint::{Usage, ids::TurnId, raw::store::Liveness, session::ItemOutcome, store::SessionRow};
use serde::Serialize;
use serde_json::{Map, Value};

use super::holder::Holder;

/// A session, looked back on.
pub(crate) struct Timeline {
    pub(crate) row: SessionRow,
    /// How the session stands, for people.
    pub(crate) state: String,
    pub(crate) turns: Vec<Turn>,
    /// The runs, in the order of their coming. The root run of every turn is the first.
    pub(crate) runs: Vec<Lane>,
    /// Turn by turn, and within a turn in the order of their beginning.
    pub(crate) steps: Vec<Step>,
    /// Who held the session, in their order, as far as that is known.
    pub(crate) holders: Vec<Holder>,
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lane {
    /// The agent's name, with a number if another has it; empty for the root.
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
}

/// One thing that happened.
#[derive(Clone, Debug, Default)]
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

/// What a step is, by its name in JSON. Exhaustive: each has a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Attempt,
    Model,
    Retry,
    Call,
    Child,
    Approval,
    Steer,
    #[serde(rename = "stop_requested")]
    StopAsked,
    StopEscalated,
    StopObserved,
    Settled,
    Quiet,
    TurnEnded,
    #[default]
    Other,
    Damaged,
}

/// How a step looks. Exhaustive: five looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
    Stopped,
    /// It has no recorded end.
    Open,
}

impl Kind {
    /// Whether it lasts.
    pub(crate) fn is_span(self) -> bool {
        matches!(self, Self::Attempt | Self::Model | Self::Retry | Self::Call | Self::Child | Self::Approval)
    }
}

impl Step {
    /// Adds fields of its JSON.
    pub(super) fn add<const N: usize>(&mut self, fields: [(&str, Value); N]) {
        self.fields.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }
}

impl Timeline {
    /// The steps of one turn, or those before the first.
    pub(super) fn steps_of(&self, turn: Option<TurnId>) -> &[Step] {
        let from = self.steps.partition_point(|step| step.turn < turn);
        let to = self.steps.partition_point(|step| step.turn <= turn);
        &self.steps[from..to]
    }

    /// How much it is, in one line.
    pub(super) fn counts(&self) -> String {
        let (turns, usage) = (many(self.turns.len(), "turn"), self.usage());
        format!("{turns}, {} records, {} tokens in, {} out", self.row.head, usage.input, usage.output)
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

/// How a session stands, by its row.
pub(super) fn state_of(row: &SessionRow) -> &str {
    let is_dead = row.holder.as_ref().is_none_or(|held| held.owner.life() == Liveness::Dead);
    match row.label.as_str() {
        "" => "new",
        "running" if is_dead => "interrupted",
        "cut" => "interrupted",
        label => label,
    }
}

/// A count with its noun.
pub(super) fn many(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
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
