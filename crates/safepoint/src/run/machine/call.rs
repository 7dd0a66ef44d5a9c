//! One call of a round, and its state.

use std::sync::Arc;

use serde_json::Value;

use super::SharedCall;
use crate::value::{
    approval::{ApprovalRequest, Decision, OnUnknownEffect},
    effect::{EffectClass, SideEffect},
    event::Resolution,
    history::note,
    ids::ApprovalId,
    message::{CallResult, ResultStatus},
    receipt::{CallReport, CallStatus, ChildReport, ReasonReport, StopSource},
};

/// One call and its state.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) call: SharedCall,
    pub(crate) step: CallState,
    /// Known once it has begun.
    pub(crate) effect: Option<EffectClass>,
    /// Whether it may run in parallel; known once it was checked.
    pub(super) overlaps: bool,
    /// The arguments of the run that is its work, once that has begun: resuming it needs no other approval.
    pub(super) run: Option<Arc<Value>>,
    /// Its arguments when it last began.
    pub(crate) given: Option<Arc<Value>>,
    /// The remote agent's name for its work: beginning it again asks for that, and repeats nothing.
    pub(crate) named: Option<String>,
    /// Its arguments, if a hook has changed them.
    pub(crate) changed: Option<Arc<Value>>,
    /// A person's approval, which outlives the process (S7.2).
    allowed: Option<Allowed>,
    /// Whether an earlier attempt began it, and its end is unknown.
    may_have_run: bool,
}

/// The state of a call. Exhaustive: the round must place each.
#[derive(Clone, Debug)]
pub(crate) enum CallState {
    /// Not checked yet.
    Requested,
    /// A person was asked.
    AwaitingApproval(ApprovalRequest),
    /// A person approved it.
    Approved(Allowed),
    /// Its run is to be resumed where it is: the call was approved earlier. A suspension keeps the open
    /// questions of that run; a stop withdrew them, and they are asked again under new ids (S8.3).
    Resuming { args: Arc<Value>, asks_again: bool },
    /// It may begin, with these arguments; a run that resumes treats its questions as above.
    Ready { args: Arc<Value>, asks_again: bool },
    /// It runs.
    Running,
    /// The run that is its work waits for a person, and nothing of it is alive.
    Suspended { child: ChildReport, approvals: Vec<ApprovalRequest> },
    /// It was running when its process ended, and may not run twice: its effect is unknown.
    EffectUnknown,
    /// It is over.
    Ended { report: Arc<CallReport>, result: CallResult },
}

/// What a person approved.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub(crate) args: Arc<Value>,
    /// Whether the person changed them: the rules then still apply.
    pub(crate) is_changed: bool,
    /// The arguments that the person was asked about.
    pub(crate) asked: Value,
    /// The tool as it was declared then; empty if an older release asked.
    pub(crate) definition: String,
    /// What the person tells the model with the result; empty for nothing.
    message: String,
}

impl Allowed {
    /// An approval of what was asked about, with the person's arguments if they changed it.
    fn by(request: &ApprovalRequest, changed: Option<(&Value, &str)>) -> Self {
        let (is_changed, asked) = (changed.is_some(), request.args.clone());
        let (args, message) = changed.unwrap_or((&asked, ""));
        let (args, message) = (Arc::new(args.clone()), message.to_owned());
        Self { args, is_changed, asked, definition: request.definition.clone(), message }
    }
}

impl Call {
    pub(super) fn new(call: SharedCall) -> Self {
        Self {
            call,
            step: CallState::Requested,
            effect: None,
            overlaps: false,
            run: None,
            given: None,
            named: None,
            changed: None,
            allowed: None,
            may_have_run: false,
        }
    }

    pub(super) fn answered(&mut self, id: &ApprovalId, answer: &Resolution) {
        if let CallState::Suspended { approvals, .. } = &mut self.step {
            approvals.retain(|request| request.id != *id);
            if approvals.is_empty() {
                self.step = self.again(true);
            }
            return;
        }
        match answer {
            Resolution::Decided(Decision::Approve | Decision::ApproveAlways { .. }) => self.approve(None),
            Resolution::Decided(Decision::ApproveWith { args, message }) => {
                self.approve(Some((args, message)));
            }
            // If the call itself ends, a separate fact follows.
            Resolution::Withdrawn => {
                self.step = if self.is_lost() { CallState::EffectUnknown } else { self.wanted() };
            }
            Resolution::Decided(Decision::Deny { .. } | Decision::Respond { .. }) | Resolution::Expired => {}
        }
    }

    /// The approved arguments may differ from those that the model requested.
    fn approve(&mut self, changed: Option<(&Value, &str)>) {
        if let CallState::AwaitingApproval(request) = &self.step {
            self.allowed = Some(Allowed::by(request, changed));
        }
        self.step = self.wanted();
    }

    /// What the person who approved it tells the model with the result (S8.20).
    pub(crate) fn said(&self) -> Option<&str> {
        self.allowed.as_ref().map(|allowed| allowed.message.as_str()).filter(|said| !said.is_empty())
    }

    /// What was approved is not what would run any more.
    pub(super) fn revoke(&mut self) {
        self.allowed = None;
    }

    /// Resumes the call: one that never began is requested, a child run resumes inside, and one that may run
    /// twice runs again. Any other keeps its result, or a person is asked (S5.3, S7.3).
    pub(super) fn reopen(&mut self, on_unknown: OnUnknownEffect) {
        if matches!(self.step, CallState::Ended { .. }) {
            // It was stopped, at its remote agent too: there is nothing to resume.
            self.named = None;
        }
        let (child, twice) = (self.run.is_some(), self.may_run_twice());
        match &mut self.step {
            CallState::Ended { report, .. } if report.stopped_by == Some(StopSource::Run) => {
                if report.status == CallStatus::NotStarted {
                    self.step = self.wanted();
                } else if child {
                    let is_kept = report.reason.as_ref().is_some_and(ReasonReport::is_of_a_failure);
                    self.step = self.again(!is_kept);
                } else if twice {
                    self.begin_to_doubt();
                    self.step = self.wanted();
                } else if on_unknown == OnUnknownEffect::Ask && report.effect == SideEffect::Unknown {
                    self.begin_to_doubt();
                    self.step = CallState::EffectUnknown;
                } else {
                    Arc::make_mut(report).stopped_by = None;
                }
            }
            CallState::Suspended { .. } | CallState::Running if child => self.step = self.again(false),
            CallState::Ready { args, asks_again } if child => {
                self.step = CallState::Resuming { args: Arc::clone(args), asks_again: *asks_again };
            }
            CallState::Running => {
                self.begin_to_doubt();
                self.step = if twice { self.wanted() } else { CallState::EffectUnknown };
            }
            CallState::Suspended { .. } | CallState::Requested | CallState::Ready { .. } => {
                self.step = self.wanted()
            }
            // A question that a suspension left open stays open, and an approval stays valid.
            CallState::Ended { .. }
            | CallState::AwaitingApproval(_)
            | CallState::EffectUnknown
            | CallState::Approved(_)
            | CallState::Resuming { .. } => {}
        }
    }

    /// To be checked: an approval that was given is not asked for again.
    fn wanted(&self) -> CallState {
        self.allowed.clone().map_or(CallState::Requested, CallState::Approved)
    }

    fn begin_to_doubt(&mut self) {
        self.may_have_run = match self.effect {
            None | Some(EffectClass::ReadOnly) => false,
            Some(EffectClass::Idempotent | EffectClass::Keyed | EffectClass::Unsafe) => true,
        };
    }

    /// Whether an earlier attempt may have run it: whatever ends it now, its result must not say that nothing
    /// was done.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.may_have_run
    }

    /// Whether only a person may begin it again.
    fn is_lost(&self) -> bool {
        self.is_in_doubt() && !self.may_run_twice()
    }

    /// Its run is to resume.
    pub(super) fn again(&self, asks_again: bool) -> CallState {
        match &self.run {
            Some(args) => CallState::Resuming { args: Arc::clone(args), asks_again },
            None => CallState::Requested,
        }
    }

    /// Whether its run resumes when the run that requested it is resumed.
    pub(super) fn has_run_to_resume(&self) -> bool {
        let resumes = match &self.step {
            CallState::Ended { report, .. } => report.stopped_by == Some(StopSource::Run),
            CallState::Running
            | CallState::Resuming { .. }
            | CallState::Ready { .. }
            | CallState::Suspended { .. } => true,
            CallState::Requested
            | CallState::AwaitingApproval(_)
            | CallState::Approved { .. }
            | CallState::EffectUnknown => false,
        };
        resumes && self.has_run()
    }

    /// Its row and its result, once it is over.
    pub(crate) fn end(&self) -> Option<(&CallReport, &CallResult)> {
        if let CallState::Ended { report, result } = &self.step { Some((report, result)) } else { None }
    }

    /// Whether its run was begun earlier.
    pub(crate) fn has_run(&self) -> bool {
        self.run.is_some()
    }

    fn may_run_twice(&self) -> bool {
        match self.effect {
            None | Some(EffectClass::ReadOnly | EffectClass::Idempotent | EffectClass::Keyed) => true,
            Some(EffectClass::Unsafe) => self.named.is_some(),
        }
    }

    /// What the model would see if a new turn closed the call now.
    pub(super) fn result(&self) -> CallResult {
        match &self.step {
            CallState::Ended { result, .. } => result.clone(),
            // A stop is an end that is recorded.
            CallState::Running | CallState::EffectUnknown => self.note(note::CUT_OFF),
            CallState::Suspended { .. } | CallState::Resuming { .. } => self.note(note::STOPPED_UNKNOWN),
            CallState::Ready { .. } if self.run.is_some() => self.note(note::STOPPED_UNKNOWN),
            _ if self.is_in_doubt() => self.note(note::CUT_OFF),
            CallState::Requested
            | CallState::AwaitingApproval(_)
            | CallState::Approved(_)
            | CallState::Ready { .. } => self.note(note::NOT_STARTED),
        }
    }

    fn note(&self, text: &str) -> CallResult {
        CallResult::of_text(self.call.id.clone(), &self.call.name, text, ResultStatus::Error)
    }
}

#[cfg(test)]
mod tests;
