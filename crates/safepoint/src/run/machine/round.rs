//! The calls of one message: which may begin now, which are over, and what they leave to a resume.
//!
//! **Invariants**: a call changes only through [`Round::change`], which keeps the tally and the index
//! consistent.

use std::{collections::HashMap, sync::Arc};

use safepoint_scope::SafePoints;

use super::{Call, CallState, NextStep, SharedCall, tally::Tally};
use crate::value::{
    approval::OnUnknownEffect,
    history::{OpenCall, OpenEnd, note},
    ids::CallId,
    message::{AssistantMessage, CallResult},
    receipt::{CallReport, Ending},
};

/// Up to this number of calls a search is faster than an index.
const FEW: usize = 8;

/// The calls of one message, in its order.
#[derive(Debug)]
pub(crate) struct Round {
    message: Arc<AssistantMessage>,
    calls: Vec<Call>,
    /// Where each call is; empty while they are few.
    index: HashMap<CallId, usize>,
    tally: Tally,
    /// Calls that the model requested beyond the limit of one message.
    left_out: u64,
}

impl Round {
    pub(super) fn new(message: Arc<AssistantMessage>, left_out: u64) -> Self {
        let mut calls = Vec::with_capacity(message.calls().count());
        calls.extend(SharedCall::all(&message).map(Call::new));
        let placed = calls.iter().enumerate().filter(|_| calls.len() > FEW);
        let index = placed.map(|(place, call)| (call.call.id.clone(), place)).collect();
        let mut tally = Tally::default();
        calls.iter().for_each(|call| tally.add(call));
        Self { message, calls, index, tally, left_out }
    }

    pub(super) fn message(&self) -> &Arc<AssistantMessage> {
        &self.message
    }

    pub(super) fn call(&self, index: usize) -> Option<&Call> {
        self.calls.get(index)
    }

    pub(super) fn place(&self, id: &CallId) -> Option<usize> {
        if self.calls.len() > FEW {
            return self.index.get(id).copied();
        }
        self.calls.iter().position(|call| call.call.id == *id)
    }

    /// The one way in which a call changes.
    pub(super) fn change(&mut self, index: usize, change: impl FnOnce(&mut Call)) {
        if let Some(call) = self.calls.get_mut(index) {
            self.tally.remove(call);
            change(call);
            self.tally.add(call);
        }
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.end().is_none())
    }

    pub(super) fn runs_to_resume(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.has_run_to_resume())
    }

    pub(super) fn running_call(&self, id: &CallId) -> Option<&SharedCall> {
        let found = self.place(id).and_then(|place| self.call(place))?;
        matches!(found.step, CallState::Running).then_some(&found.call)
    }

    /// Whether this call runs, and every other one is over by itself.
    pub(super) fn waits_only_for(&self, id: &CallId) -> bool {
        self.tally.over + 1 == self.calls.len() && self.tally.stopped == 0 && self.running_call(id).is_some()
    }

    pub(super) fn is_running(&self) -> bool {
        self.tally.running > 0
    }

    /// Whether a stop has ended a part of it: nothing more begins, and what runs continues to its end (S9.3).
    pub(super) fn is_closing(&self) -> bool {
        self.tally.stopped > 0
    }

    /// Whether nothing would happen without a person, if `parked` of the running calls wait for one inside.
    pub(super) fn is_resting(&self, parked: usize) -> bool {
        parked > 0 && self.tally.running == parked && self.tally.unjudged == 0
    }

    /// Whether only a person's decision can continue the round, if `waiting` of the running calls wait for
    /// one.
    pub(super) fn waits_for_a_person(&self, waiting: usize, parallel: usize) -> bool {
        self.tally.questions + waiting > 0
            && self.tally.running == waiting
            && self.tally.unjudged == 0
            && self.startable(parallel.max(1)).is_empty()
    }

    /// Whether every open call waits for a person.
    pub(super) fn only_questions(&self) -> bool {
        self.tally.questions > 0 && self.tally.questions + self.tally.over == self.calls.len()
    }

    /// Whether every call has a final end. A call that the run's stop ended may be resumed, so the round
    /// stays open until it is resumed or a new turn closes it (S5.3).
    pub(super) fn is_complete(&self) -> bool {
        self.tally.over == self.calls.len() && self.tally.stopped == 0
    }

    pub(super) fn report_mut(&mut self, id: &CallId) -> Option<&mut CallReport> {
        let call = self.place(id).and_then(|place| self.calls.get_mut(place))?;
        match &mut call.step {
            CallState::Ended { report, .. } => Some(Arc::make_mut(report)),
            _ => None,
        }
    }

    /// The rows of the calls that are over, in the order of the calls.
    pub(super) fn reports(&self) -> impl Iterator<Item = &CallReport> {
        self.calls.iter().filter_map(Call::end).map(|(report, _)| report)
    }

    /// The boundary before the next call. Until one has started it is also the boundary after the model
    /// (S1.3, S2.4).
    pub(super) fn gate(&self) -> SafePoints {
        if self.tally.begun > 0 {
            SafePoints::AFTER_STARTED_CALLS
        } else {
            SafePoints::AFTER_MODEL | SafePoints::AFTER_STARTED_CALLS
        }
    }

    pub(super) fn due(&self, parallel: usize, gate: SafePoints) -> NextStep {
        if self.tally.unjudged > 0 {
            return NextStep::Judge(self.unjudged());
        }
        let calls = self.startable(parallel.max(1));
        if !calls.is_empty() {
            return NextStep::StartCalls { calls, gate };
        }
        if self.only_questions() { NextStep::Settle(Ending::Suspended) } else { NextStep::Wait }
    }

    fn unjudged(&self) -> Vec<usize> {
        let of = |step: &CallState| {
            matches!(
                step,
                CallState::Requested
                    | CallState::Approved(_)
                    | CallState::Resuming { .. }
                    | CallState::EffectUnknown
            )
        };
        self.calls.iter().enumerate().filter(|(_, call)| of(&call.step)).map(|(index, _)| index).collect()
    }

    /// In the order of the calls: parallel calls start together up to the limit, any other starts alone. A
    /// call that waits for a person blocks no other.
    fn startable(&self, parallel: usize) -> Vec<usize> {
        if self.tally.cleared == 0 || self.tally.running >= parallel {
            return Vec::new();
        }
        let alone = self.calls.iter().any(|call| matches!(call.step, CallState::Running) && !call.overlaps);
        let ready = self.calls.iter().enumerate();
        let ready = ready.filter(|(_, call)| matches!(call.step, CallState::Ready { .. }));
        let mut fits = fitting((self.tally.running, alone), parallel);
        ready.take_while(|(_, call)| fits(call.overlaps)).map(|(index, _)| index).collect()
    }

    /// The message and its results; the rows of the calls go to `reports`.
    pub(super) fn close(
        mut self,
        reports: &mut Vec<Arc<CallReport>>,
    ) -> (Arc<AssistantMessage>, Vec<CallResult>) {
        let mut results = Vec::with_capacity(self.calls.len());
        for call in std::mem::take(&mut self.calls) {
            if let CallState::Ended { report, result } = call.step {
                reports.push(report);
                results.push(result);
            }
        }
        let results = self.with_left_out(results);
        (self.message, results)
    }

    /// What a new turn would close this round with.
    pub(super) fn tail(&self) -> OpenEnd {
        let results = self.with_left_out(self.calls.iter().map(Call::result).collect());
        let calls = results.into_iter().map(|result| OpenCall { result }).collect();
        OpenEnd::Open { message: Arc::clone(&self.message), calls }
    }

    /// Adds the number of omitted calls to the last result, for the model.
    fn with_left_out(&self, mut results: Vec<CallResult>) -> Vec<CallResult> {
        if let (more @ 1.., Some(last)) = (self.left_out, results.last_mut()) {
            Arc::make_mut(&mut last.text).push_str(&note::calls_left_out(more));
        }
        results
    }

    /// Resumes the round (S5.3, S7.3).
    pub(super) fn reopen(&mut self, on_unknown: OnUnknownEffect) {
        for index in 0..self.calls.len() {
            self.change(index, |call| call.reopen(on_unknown));
        }
    }
}

/// Says of each next call, which may overlap with others or not, whether it begins beside those that run and those before it.
fn fitting((mut running, mut is_alone): (usize, bool), parallel: usize) -> impl FnMut(bool) -> bool {
    move |overlaps| {
        let fits = if overlaps { !is_alone && running < parallel } else { running == 0 };
        running += usize::from(fits);
        is_alone |= fits && !overlaps;
        fits
    }
}

/// How many of the calls of a new message begin at once, if all may begin: which of them overlap with others is given.
pub(crate) fn first_starts(overlaps: impl Iterator<Item = bool>, parallel: usize) -> usize {
    let mut fits = fitting((0, false), parallel.max(1));
    overlaps.take_while(|overlaps| fits(*overlaps)).count()
}

#[cfg(test)]
mod tests;
