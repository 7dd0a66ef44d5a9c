//! What a run's machine knows of its child runs: their usage, which ones wait, and this run's boundary for a
//! stop from above.

use std::collections::HashSet;

use safepoint_scope::{Demand, Mode, SafePoints};

use super::{Call, CallState, Machine, Round, RunStage};
use crate::value::{
    ids::{ApprovalId, CallId},
    receipt::ChildReport,
    usage::{Price, TotalCost, Usage},
};

/// The usage and cost of an attempt's child runs, as far as they have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildUsage {
    pub(crate) usage: Usage,
    /// What counts against the limit: zero for what has no price.
    pub(crate) cost: f64,
    /// What is known of it, for the receipt.
    pub(crate) known: TotalCost,
}

impl ChildUsage {
    /// This usage at this price.
    pub(super) fn of(usage: Usage, price: Option<&Price>) -> Self {
        let cost = price.map(|price| price.of(&usage));
        let mut known = TotalCost::default();
        known.add(&usage, cost);
        Self { usage, cost: cost.unwrap_or(0.0), known }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.usage.add(&other.usage);
        self.cost += other.cost;
        self.known.add_all(other.known);
    }
}

impl Machine {
    pub(super) fn used_below(&mut self, child: &ChildReport) {
        if let Some(receipt) = &child.receipt {
            self.below.usage.add(&receipt.usage_total);
            self.below.cost += child.cost;
            self.below.known.add(&receipt.usage_total, receipt.cost_total);
        }
    }

    /// The run of this call has its answer and resumes; that run records the answer.
    pub(crate) fn resume_child(&mut self, id: &CallId) {
        self.change(id, |call| call.step = call.again(false));
    }

    /// The child runs that wait for decisions.
    pub(crate) fn suspended(&self) -> impl Iterator<Item = &ChildReport> {
        self.round().into_iter().flat_map(Round::open).filter_map(|call| match &call.step {
            CallState::Suspended { child, .. } => Some(child),
            _ => None,
        })
    }

    /// The call whose suspended run waits for this answer.
    pub(crate) fn suspended_on(&self, id: &ApprovalId) -> Option<CallId> {
        let waits = |call: &&Call| matches!(&call.step, CallState::Suspended { approvals, .. } if approvals.iter().any(|of| of.id == *id));
        self.round()?.open().find(waits).map(|call| call.call.id.clone())
    }

    /// Lets resuming child runs ask their open questions again.
    pub(crate) fn ask_again(&mut self) {
        for call in self.open_calls() {
            self.change(&call.call.id, |call| {
                if let CallState::Resuming { asks_again, .. } = &mut call.step {
                    *asks_again = true;
                }
            });
        }
    }

    /// Whether nothing would happen without a person, if `parked` of the running calls wait for one inside.
    pub(crate) fn is_resting(&self, parked: usize) -> bool {
        self.round().is_some_and(|round| round.is_resting(parked))
    }

    /// Whether only a person's decision can continue the run, if `inside` of its calls are runs that wait for
    /// one.
    pub(crate) fn waits_for_a_person(&self, inside: usize, parallel: usize) -> bool {
        let Some(round) = self.round() else { return false };
        let asking: HashSet<&CallId> = self.live.iter().map(|request| &request.call_id).collect();
        round.waits_for_a_person(inside + asking.len(), parallel)
    }

    /// Whether nothing more begins: a stop has taken effect at the run's boundary, or the run fails.
    pub(crate) fn is_winding_down(&self, demand: Option<Demand>) -> bool {
        let closes = self.round().is_some_and(Round::is_closing);
        let fires = |demand: Demand| match self.boundary() {
            Some(gate) => demand.fires_at(gate),
            None => demand.mode == Mode::Now,
        };
        self.failure().is_some() || closes || demand.is_some_and(fires)
    }

    /// The run's boundary: the points that a demand other than `Now` must name to end the run here.
    pub(crate) fn boundary(&self) -> Option<SafePoints> {
        match &self.stage {
            RunStage::Ready | RunStage::Summarising => Some(self.ready_gate()),
            RunStage::Calls(round) if round.only_questions() => Some(SafePoints::ANY),
            RunStage::Calls(round) => Some(round.gate()),
            RunStage::Streaming | RunStage::Cut(_) | RunStage::Answered(_) => None,
        }
    }
}
