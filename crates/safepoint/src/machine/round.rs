//! The calls of one message: which may begin now, which are over, and what they leave to a resume.

use std::sync::Arc;

use safepoint_scope::SafePoints;
use serde_json::Value;

use super::Due;
use crate::{
    approval::{ApprovalRequest, Decision},
    event::Answered,
    history::{OpenCall, Tail, note},
    ids::CallId,
    message::{AssistantMessage, CallResult, ToolCall, Verdict},
    receipt::{CallReport, CallStatus, Ending, StoppedBy},
    tool::EffectClass,
};

/// The calls of one message, in its order.
#[derive(Debug)]
pub(crate) struct Round {
    message: Arc<AssistantMessage>,
    calls: Vec<Call>,
}

/// One call and how far it is.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) call: ToolCall,
    pub(crate) step: Step,
    /// Known once it has begun.
    pub(crate) effect: Option<EffectClass>,
    /// Whether it may run beside others; known once it was looked at.
    overlaps: bool,
}

/// How far a call is. Exhaustive: the round must place each.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Nobody has looked at it.
    Wanted,
    /// A person was asked.
    Asked(ApprovalRequest),
    /// A person said yes, perhaps with other arguments; the rules have yet to speak of those.
    Approved(Option<Value>),
    /// It may begin, with these arguments.
    Cleared(Value),
    /// It runs.
    Running,
    /// It ran when its process ended, and may not run twice: what it did is unknown.
    Lost,
    /// It is over.
    Ended { report: CallReport, result: CallResult },
}

impl Call {
    pub(super) fn answered(&mut self, answer: &Answered) {
        match answer {
            Answered::Decided(Decision::Approve) => self.step = Step::Approved(None),
            Answered::Decided(Decision::ApproveWith { args }) => {
                self.step = Step::Approved(Some(args.clone()))
            }
            // The call's end follows as a fact of its own.
            Answered::Decided(Decision::Deny { .. } | Decision::Respond { .. })
            | Answered::Expired
            | Answered::Withdrawn => {}
        }
    }

    /// The rules have spoken: it may begin.
    pub(super) fn clear(&mut self, args: Value, overlaps: bool) {
        self.step = Step::Cleared(args);
        self.overlaps = overlaps;
    }

    fn is_over(&self) -> bool {
        matches!(self.step, Step::Ended { .. })
    }
}

impl Round {
    pub(super) fn new(message: Arc<AssistantMessage>) -> Self {
        let calls = message
            .calls()
            .map(|call| Call { call: call.clone(), step: Step::Wanted, effect: None, overlaps: false })
            .collect();
        Self { message, calls }
    }

    pub(super) fn message(&self) -> &AssistantMessage {
        &self.message
    }

    pub(super) fn call(&self, index: usize) -> Option<&Call> {
        self.calls.get(index)
    }

    pub(super) fn at_mut(&mut self, index: usize) -> Option<&mut Call> {
        self.calls.get_mut(index)
    }

    pub(super) fn call_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.call.id == *id)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| !call.is_over())
    }

    pub(super) fn running_call(&self, id: &CallId) -> Option<&ToolCall> {
        let found = self.calls.iter().find(|call| call.call.id == *id)?;
        matches!(found.step, Step::Running).then_some(&found.call)
    }

    pub(super) fn is_running(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.step, Step::Running))
    }

    /// Whether every call has an end that stands. One that the run's stop ended may be taken up again, so the round
    /// stays open until it is resumed or a new turn closes it (S5.3).
    pub(super) fn is_complete(&self) -> bool {
        self.calls.iter().all(|call| match &call.step {
            Step::Ended { report, .. } => report.stopped_by != Some(StoppedBy::Run),
            _ => false,
        })
    }

    pub(super) fn report_mut(&mut self, id: &CallId) -> Option<&mut CallReport> {
        self.calls.iter_mut().find_map(|call| match &mut call.step {
            Step::Ended { report, .. } if report.call_id == *id => Some(report),
            _ => None,
        })
    }

    /// The rows of the calls that are over, in the order of the calls.
    pub(super) fn reports(&self) -> impl Iterator<Item = &CallReport> {
        self.calls.iter().filter_map(|call| match &call.step {
            Step::Ended { report, .. } => Some(report),
            _ => None,
        })
    }

    /// The boundary before the next call: until one has started it is also the one after the model (S1.3, S2.4).
    pub(super) fn gate(&self) -> SafePoints {
        let started = self.calls.iter().any(|call| call.effect.is_some());
        if started {
            SafePoints::AFTER_STARTED_CALLS
        } else {
            SafePoints::AFTER_MODEL | SafePoints::AFTER_STARTED_CALLS
        }
    }

    pub(super) fn due(&self, parallel: usize, gate: SafePoints) -> Due {
        let unjudged: Vec<usize> =
            self.indices(|step| matches!(step, Step::Wanted | Step::Approved(_) | Step::Lost));
        if !unjudged.is_empty() {
            return Due::Judge(unjudged);
        }
        let calls = self.startable(parallel.max(1));
        if !calls.is_empty() {
            return Due::StartCalls { calls, gate };
        }
        let only_questions = self.open().all(|call| matches!(call.step, Step::Asked(_)));
        if only_questions { Due::Settle(Ending::Suspended) } else { Due::Wait }
    }

    fn indices(&self, which: impl Fn(&Step) -> bool) -> Vec<usize> {
        self.calls.iter().enumerate().filter(|(_, call)| which(&call.step)).map(|(index, _)| index).collect()
    }

    /// In the order of the calls: those that overlap go together up to the limit, any other goes alone. A call that
    /// waits for a person holds up nobody.
    fn startable(&self, parallel: usize) -> Vec<usize> {
        let mut running = self.calls.iter().filter(|call| matches!(call.step, Step::Running)).count();
        let mut alone = self.calls.iter().any(|call| matches!(call.step, Step::Running) && !call.overlaps);
        let mut calls = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            if !matches!(call.step, Step::Cleared(_)) {
                continue;
            }
            let fits = if call.overlaps { !alone && running < parallel } else { running == 0 };
            if !fits {
                break;
            }
            running += 1;
            alone |= !call.overlaps;
            calls.push(index);
        }
        calls
    }

    pub(super) fn closed(&self) -> (AssistantMessage, Vec<CallResult>) {
        let results = self
            .calls
            .iter()
            .filter_map(|call| match &call.step {
                Step::Ended { result, .. } => Some(result.clone()),
                _ => None,
            })
            .collect();
        ((*self.message).clone(), results)
    }

    /// What a new turn would close this round with.
    pub(super) fn tail(&self) -> Tail {
        let calls = self
            .calls
            .iter()
            .map(|call| OpenCall {
                result: match &call.step {
                    Step::Ended { result, .. } => result.clone(),
                    Step::Running | Step::Lost => call.note(note::STOPPED_UNKNOWN),
                    Step::Wanted | Step::Asked(_) | Step::Approved(_) | Step::Cleared(_) => {
                        call.note(note::NOT_STARTED)
                    }
                },
            })
            .collect();
        Tail::Open { message: (*self.message).clone(), calls }
    }

    /// Takes a round up again: what never began is wanted, what may run twice runs again, the rest stays told (S5.3,
    /// S7.3).
    pub(super) fn reopen(&mut self) {
        for call in &mut self.calls {
            let twice = call.may_run_twice();
            match &mut call.step {
                Step::Ended { report, .. } if report.stopped_by == Some(StoppedBy::Run) => {
                    if report.status == CallStatus::NotStarted || twice {
                        call.step = Step::Wanted;
                    } else {
                        report.stopped_by = None;
                    }
                }
                Step::Running if !twice => call.step = Step::Lost,
                Step::Running | Step::Wanted | Step::Cleared(_) => call.step = Step::Wanted,
                // A question that a suspension left open stays open, and a yes stays a yes.
                Step::Ended { .. } | Step::Asked(_) | Step::Lost | Step::Approved(_) => {}
            }
        }
    }
}

impl Call {
    fn may_run_twice(&self) -> bool {
        match self.effect {
            None | Some(EffectClass::ReadOnly | EffectClass::Idempotent | EffectClass::Keyed) => true,
            Some(EffectClass::Unsafe) => false,
        }
    }

    fn note(&self, text: &str) -> CallResult {
        CallResult {
            call_id: self.call.id.clone(),
            name: self.call.name.clone(),
            text: text.into(),
            verdict: Verdict::Bad,
        }
    }
}
