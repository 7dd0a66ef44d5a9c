//! One call of a round, and how far it is.

use serde_json::Value;

use crate::{
    approval::{ApprovalRequest, Decision},
    event::Answered,
    history::note,
    ids::ApprovalId,
    message::{CallResult, ToolCall, Verdict},
    receipt::{CallReport, CallStatus, ChildReport, StoppedBy},
    tool::EffectClass,
};

/// One call and how far it is.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) call: ToolCall,
    pub(crate) step: Step,
    /// Known once it has begun.
    pub(crate) effect: Option<EffectClass>,
    /// Whether it may run beside others; known once it was looked at.
    pub(super) overlaps: bool,
    /// What the run that is its work was given, once that has begun: a resume of it needs no other approval.
    pub(super) run: Option<Value>,
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
    /// Its run is to be taken up again where it is: the call was allowed before.
    Again { args: Value, questions: Questions },
    /// It may begin, with these arguments.
    Cleared { args: Value, questions: Questions },
    /// It runs.
    Running,
    /// The run that is its work waits for a person, and nothing of it is alive.
    Suspended { child: ChildReport, approvals: Vec<ApprovalRequest> },
    /// It ran when its process ended, and may not run twice: what it did is unknown.
    Lost,
    /// It is over.
    Ended { report: CallReport, result: CallResult },
}

/// What a child run that is taken up again does with its open questions. Exhaustive: a suspension keeps them, a stop
/// took them back, and they are asked again under new ids (S8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Questions {
    Keep,
    AskAgain,
}

impl Call {
    pub(super) fn new(call: ToolCall) -> Self {
        Self { call, step: Step::Wanted, effect: None, overlaps: false, run: None }
    }

    pub(super) fn answered(&mut self, id: &ApprovalId, answer: &Answered) {
        if let Step::Suspended { approvals, .. } = &mut self.step {
            approvals.retain(|request| request.id != *id);
            if approvals.is_empty() {
                self.step = self.again(Questions::AskAgain);
            }
            return;
        }
        match answer {
            Answered::Decided(Decision::Approve) => self.step = Step::Approved(None),
            Answered::Decided(Decision::ApproveWith { args }) => {
                self.step = Step::Approved(Some(args.clone()))
            }
            // Where the call itself ends, that follows as a fact of its own.
            Answered::Withdrawn => self.step = Step::Wanted,
            Answered::Decided(Decision::Deny { .. } | Decision::Respond { .. }) | Answered::Expired => {}
        }
    }

    /// Takes it up again: what never began is wanted, a child run goes on inside, what may run twice runs again, the
    /// rest stays told (S5.3, S7.3).
    pub(super) fn reopen(&mut self) {
        let (child, twice) = (self.run.is_some(), self.may_run_twice());
        match &mut self.step {
            Step::Ended { report, .. } if report.stopped_by == Some(StoppedBy::Run) => {
                if report.status == CallStatus::NotStarted {
                    self.step = Step::Wanted;
                } else if child {
                    self.step = self.again(Questions::AskAgain);
                } else if twice {
                    self.step = Step::Wanted;
                } else {
                    report.stopped_by = None;
                }
            }
            Step::Suspended { .. } | Step::Running if child => self.step = self.again(Questions::Keep),
            Step::Cleared { args, questions } if child => {
                self.step = Step::Again { args: args.clone(), questions: *questions };
            }
            Step::Running if !twice => self.step = Step::Lost,
            Step::Running | Step::Suspended { .. } | Step::Wanted | Step::Cleared { .. } => {
                self.step = Step::Wanted;
            }
            // A question that a suspension left open stays open, and a yes stays a yes.
            Step::Ended { .. } | Step::Asked(_) | Step::Lost | Step::Approved(_) | Step::Again { .. } => {}
        }
    }

    /// Its run is to go on.
    pub(super) fn again(&self, questions: Questions) -> Step {
        match &self.run {
            Some(args) => Step::Again { args: args.clone(), questions },
            None => Step::Wanted,
        }
    }

    /// Whether a run that is its work was begun before.
    pub(crate) fn has_run(&self) -> bool {
        self.run.is_some()
    }

    fn may_run_twice(&self) -> bool {
        match self.effect {
            None | Some(EffectClass::ReadOnly | EffectClass::Idempotent | EffectClass::Keyed) => true,
            Some(EffectClass::Unsafe) => false,
        }
    }

    /// What the model would be told if a new turn closed it now.
    pub(super) fn result(&self) -> CallResult {
        match &self.step {
            Step::Ended { result, .. } => result.clone(),
            Step::Running | Step::Lost | Step::Suspended { .. } | Step::Again { .. } => {
                self.note(note::STOPPED_UNKNOWN)
            }
            Step::Cleared { .. } if self.run.is_some() => self.note(note::STOPPED_UNKNOWN),
            Step::Wanted | Step::Asked(_) | Step::Approved(_) | Step::Cleared { .. } => {
                self.note(note::NOT_STARTED)
            }
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
