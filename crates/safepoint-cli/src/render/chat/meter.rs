//! What a conversation has used: the tokens of its context, of each turn, and what they cost.
//!
//! **Invariants**: a fold of facts; it reads no clock. A cost is a sum over calls whose price is known; where one is not, or may have
//! been billed beyond what is known, that is said.

use std::time::{Duration, Instant};

use safepoint::{
    History, Receipt, Usage,
    event::{EventKind, Fact},
    ids::TurnId,
    receipt::{Ending, ModelReport, ModelState},
    usage::{ExtraBilling, UsageSource},
};

use super::{
    compact::Compaction,
    state::{Action, State, Tone},
};
use crate::prices::{Figures, Prices};

pub(crate) mod footer;
pub(crate) mod table;

pub(crate) use footer::tokens;
use table::Fixed;

/// What is known of a conversation's use.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) figures: Figures,
    counts: Counts,
    /// The turn that compacts the conversation.
    pub(super) compaction: Compaction,
}

/// The turns, and how much of the window the conversation takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(super) turns: Vec<TurnCount>,
    pub(super) context: Option<ContextSize>,
}

/// The tokens of the next request, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextSize {
    pub(crate) tokens: u64,
    /// Whether the provider has counted them.
    pub(crate) is_exact: bool,
}

/// What one turn has used, its sub-agents included.
#[derive(Clone, Debug)]
pub(crate) struct TurnCount {
    pub(super) turn: TurnId,
    pub(super) all: Sum,
    /// The part of it that sub-agents used.
    pub(super) below: Sum,
    pub(super) rounds: u32,
    /// The attempt that runs.
    begun: Option<Instant>,
    /// The time of attempts that are over.
    took: Duration,
    pub(super) ending: Option<Ending>,
    /// Requests that ended with their program: what they used is not known.
    pub(super) lost: u32,
    /// Requests of which the end is not recorded yet.
    open: u32,
}

/// A sum over requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(super) usage: Usage,
    pub(super) requests: u32,
    pub(super) cost: f64,
    /// Requests whose price is not known.
    pub(super) unpriced: u32,
}

impl Meter {
    /// What is used from now on is measured by these.
    pub(crate) fn set(&mut self, figures: Figures) {
        self.figures = figures;
    }

    /// What was used before the session was opened.
    pub(crate) fn earlier(&mut self, mut past: Counts) {
        // A turn that was resumed meanwhile is in both.
        for turn in std::mem::take(&mut self.counts.turns) {
            past.turn(turn.turn).join(turn);
        }
        past.context = self.counts.context.or(past.context);
        self.counts = past;
    }

    /// An event of a turn's run, or of a run below it.
    pub(crate) fn event(&mut self, turn: TurnId, kind: &EventKind, now: Instant) {
        let (mut kind, mut is_root) = (kind, true);
        while let EventKind::Child { event, .. } = kind {
            (kind, is_root) = (event, false);
        }
        let EventKind::Fact(fact) = kind else { return };
        if is_root && let Fact::AttemptOpened { .. } = **fact {
            self.counts.turn(turn).begun = Some(now);
        }
        self.counts.fact(turn, fact, (is_root, &self.figures.prices));
    }

    /// A turn has ended.
    pub(crate) fn ended(&mut self, turn: TurnId, receipt: &Receipt, now: Instant) {
        let count = self.counts.turn(turn);
        count.ending = Some(receipt.ending);
        count.took += count.begun.take().map_or(Duration::ZERO, |begun| now.saturating_duration_since(begun));
    }

    pub(crate) fn context(&self) -> Option<ContextSize> {
        self.counts.context
    }

    /// Whether a model was asked at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.turns.iter().all(|turn| turn.all.requests == 0 && turn.lost == 0)
    }
}

impl State {
    /// What was asked for with `/context`.
    pub(crate) fn tell_context(&mut self, history: &History, fixed: &Fixed) {
        let filling = self.meter.filling(history, fixed);
        self.tell(Tone::Plain, &filling);
    }

    /// `/cost` and `/context`; false for any other.
    pub(super) fn meter_command(&mut self, name: &str) -> bool {
        match name {
            // A command is typed: a key was pressed.
            "cost" => {
                let cost = self.pressed.map(|now| self.meter.cost(now));
                cost.into_iter().for_each(|cost| self.tell(Tone::Plain, &cost));
            }
            "context" => self.actions.push(Action::Context),
            _ => return false,
        }
        true
    }
}

impl Counts {
    /// One recorded fact of a run: the turn's own, or one below it.
    pub(crate) fn fact(&mut self, turn: TurnId, fact: &Fact, (is_root, prices): (bool, &Prices)) {
        match fact {
            Fact::AttemptOpened { .. } if is_root => self.turn(turn).cut_off(),
            Fact::ModelStarted { round } => {
                let count = self.turn(turn);
                count.open += 1;
                count.rounds = if is_root { *round } else { count.rounds };
            }
            Fact::SummaryStarted { .. } => self.turn(turn).open += 1,
            Fact::ModelEnded { report, .. } | Fact::ModelTooLong { report, .. } => {
                self.turn(turn).add(report, is_root, prices);
                if is_root && !matches!(fact, Fact::ModelTooLong { .. }) && report.usage.input > 0 {
                    self.context = Some(ContextSize::after(&report.usage));
                }
            }
            Fact::SummaryEnded { report, shortened, .. } => {
                self.turn(turn).add(report, is_root, prices);
                let after = shortened.as_ref().filter(|_| is_root);
                self.context = after.map(|cut| ContextSize::estimated(cut.tokens_after)).or(self.context);
            }
            Fact::HistoryShortened(cut) if is_root => {
                self.context = Some(ContextSize::estimated(cut.tokens_after));
            }
            Fact::Settled { receipt, .. } if is_root => self.turn(turn).ending = Some(receipt.ending),
            _ => {}
        }
    }

    /// The same of an earlier owner of the session.
    pub(crate) fn past(&mut self, turn: TurnId, fact: &Fact, (is_root, prices): (bool, &Prices)) {
        self.fact(turn, fact, (is_root, prices));
        if let Fact::Settled { receipt, .. } = fact
            && is_root
        {
            self.turn(turn).took += Duration::from_millis(receipt.worked_ms);
        }
    }

    /// The owner of all of them is gone: what had not ended never does.
    pub(crate) fn cut_off(&mut self) {
        self.turns.iter_mut().for_each(TurnCount::cut_off);
    }

    fn turn(&mut self, turn: TurnId) -> &mut TurnCount {
        let at = self.turns.iter().position(|count| count.turn == turn).unwrap_or_else(|| {
            self.turns.push(TurnCount::new(turn));
            self.turns.len() - 1
        });
        &mut self.turns[at]
    }
}

impl ContextSize {
    /// After this request and its reply; reasoning is not sent again by most.
    fn after(usage: &Usage) -> Self {
        let said = usage.output.saturating_sub(usage.reasoning);
        Self { tokens: usage.input.saturating_add(said), is_exact: usage.source == UsageSource::Exact }
    }

    fn estimated(tokens: u64) -> Self {
        Self { tokens, is_exact: false }
    }
}

impl TurnCount {
    fn new(turn: TurnId) -> Self {
        let (all, below) = (Sum::default(), Sum::default());
        Self {
            turn,
            all,
            below,
            rounds: 0,
            begun: None,
            took: Duration::ZERO,
            ending: None,
            lost: 0,
            open: 0,
        }
    }

    fn add(&mut self, report: &ModelReport, is_root: bool, prices: &Prices) {
        self.open = self.open.saturating_sub(1);
        if report.state == ModelState::NeverSent {
            return;
        }
        self.all.add(report, prices);
        if !is_root {
            self.below.add(report, prices);
        }
    }

    fn cut_off(&mut self) {
        self.lost += std::mem::take(&mut self.open);
    }

    /// Takes in what a later attempt of the same turn has used.
    fn join(&mut self, later: Self) {
        self.all.join(&later.all);
        self.below.join(&later.below);
        self.rounds = self.rounds.max(later.rounds);
        self.took += later.took;
        (self.begun, self.ending) = (later.begun, later.ending.or(self.ending));
        (self.open, self.lost) = (self.open + later.open, self.lost + later.lost);
    }

    pub(super) fn elapsed(&self, now: Instant) -> Duration {
        self.took + self.begun.map_or(Duration::ZERO, |begun| now.saturating_duration_since(begun))
    }
}

impl Sum {
    fn add(&mut self, report: &ModelReport, prices: &Prices) {
        self.usage.add(&report.usage);
        self.requests += 1;
        match prices.of(&report.model, &report.usage) {
            Some(cost) => self.cost += cost,
            None => self.unpriced += 1,
        }
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.usage.add(&other.usage);
        self.requests += other.requests;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
    }

    /// Whether the provider may have billed more than this: a request was cut, or its figures are estimates.
    pub(super) fn is_floor(&self) -> bool {
        self.usage.billed_beyond == ExtraBilling::Unknown || self.usage.source == UsageSource::Estimated
    }

    /// `$0.0431`, `at least $0.0431`; none where no price is known.
    pub(super) fn price(&self) -> Option<String> {
        if self.requests == self.unpriced {
            return None;
        }
        let least = if self.is_floor() || self.unpriced > 0 { "≥ " } else { "" };
        Some(format!("{least}{}", dollars(self.cost)))
    }
}

/// `$12.35`, `$0.0431`.
fn dollars(cost: f64) -> String {
    if cost >= 1.0 { format!("${cost:.2}") } else { format!("${cost:.4}") }
}
