//! The agent loop as a pure machine: facts in, the next step out. No clock, no tasks, no randomness.
//!
//! **Invariants**: state changes only by [`Machine::apply`] of a recorded fact. A step stays due until the
//! fact that announces it is applied. Once a demand fires, the only steps are to wait for what runs, and to
//! settle.

use std::{sync::Arc, time::Duration};

use safepoint_scope::{Demand, Mode, SafePoints};

use crate::{
    contract::log::Recorded,
    definition::{answer::AnswerSchema, window::Cut},
    value::{
        approval::{ApprovalKind, ApprovalRequest, OnUnknownEffect},
        effect::SideEffect,
        event::{Completion, ErrorReport, Fact},
        history::{History, Message},
        ids::CallId,
        message::{AssistantMessage, CallResult},
        receipt::{CallKind, CallReport, CallStatus, Ending, ModelReport, ProviderToolReport},
        usage::Usage,
    },
};

mod answer;
mod call;
mod children;
mod context;
mod hooked;
mod reports;
mod round;
mod shared_call;
mod spent;
mod tally;
mod view;

pub(crate) use call::{Allowed, Call, CallState};
pub(crate) use children::ChildUsage;
pub(crate) use context::{PendingSteer, StepContext, over_attempts};
pub(crate) use round::{Round, first_starts};
pub(crate) use shared_call::SharedCall;
pub(crate) use view::AnnouncedModel;

use spent::Spent;

/// A run's state: the fold of its recorded facts.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    history: History,
    stage: RunStage,
    rounds: u32,
    attempt: u32,
    usage: Usage,
    usage_before: Usage,
    below: ChildUsage,
    spent: Spent,
    effect: SideEffect,
    model: Option<ModelReport>,
    summaries: Vec<ModelReport>,
    /// What the provider ran itself; none in most runs, which it then does not make larger.
    provider_tools: Option<Box<ProviderTools>>,
    calls: Vec<Arc<CallReport>>,
    /// Open questions of running calls.
    live: Vec<ApprovalRequest>,
    failure: Option<ErrorReport>,
    form: Option<Arc<AnswerSchema>>,
    /// Answers of this attempt that did not fit.
    missed: u32,
    request: NextRequest,
}

/// What is known of the next request beside the conversation. By default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NextRequest {
    /// Whether a hook has changed it: what the provider counts is then not the conversation.
    is_changed: bool,
    /// Whether the provider has refused it as too long.
    length: RequestLength,
}

/// Whether a request was refused as too long (S12.11). Exhaustive: it was not; it was, and is to be shortened; or it was
/// shortened for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RequestLength {
    #[default]
    Unknown,
    Refused,
    Shortened,
}

/// What the provider ran itself in an attempt, by its tools.
#[derive(Debug, Default)]
struct ProviderTools(Vec<ProviderToolReport>);

/// Where a run is. Exhaustive: each phase of S2 is one of them.
#[derive(Debug, Default)]
enum RunStage {
    /// A model call is next.
    #[default]
    Ready,
    /// Its history is being summarised first, because it does not fit.
    Summarising,
    /// The model streams.
    Streaming,
    /// The message was cut: what had arrived.
    Cut(Arc<AssistantMessage>),
    /// The calls of a message.
    Calls(Round),
    /// The model requested nothing more.
    Answered(Arc<AssistantMessage>),
}

/// The next step.
#[derive(Debug, PartialEq)]
pub(crate) enum NextStep {
    /// Begin a model call, if this gate lets it pass.
    CallModel { gate: SafePoints },
    /// Omit the oldest rounds from what is sent.
    Shorten(Cut),
    /// Replace them by a summary, if this gate lets its model call pass.
    Summarise { cut: Cut, gate: SafePoints },
    /// The history does not fit, and nothing may be omitted: fail.
    Refuse(String),
    /// End the streaming model call, for a stop or for a steer.
    CutModel(Completion),
    /// Make the pending steers part of the history.
    TakeSteer,
    /// Check these calls: are they valid, may they run?
    Judge(Vec<usize>),
    /// Begin these calls, if this gate lets them pass.
    StartCalls { calls: Vec<usize>, gate: SafePoints },
    /// Wait for something that runs.
    Wait,
    /// Fix the outcome.
    Settle(Ending),
    /// A limit is reached: request a stop with this code and text.
    Limit { code: safepoint_scope::Code, text: String },
}

impl Machine {
    /// A machine whose answers must match a schema.
    pub(crate) fn answering(form: Option<Arc<AnswerSchema>>) -> Self {
        Self { form, ..Self::default() }
    }

    /// The next step under `demand`, which the caller has checked against the clock.
    pub(crate) fn next_step(&self, demand: Option<Demand>, bounds: &StepContext<'_>) -> NextStep {
        if self.failure.is_some() {
            return self.wind_down(Ending::Failed);
        }
        let is_due = demand.is_some_and(|demand| demand.fires_at(self.ready_gate()));
        match &self.stage {
            // A final answer is not a safe point: under a stop the run completes, and its pending steers
            // return.
            RunStage::Answered(_) if !bounds.steered.asks() || demand.is_some() => {
                NextStep::Settle(Ending::Done)
            }
            RunStage::Answered(_) if bounds.reached(self).is_some() => NextStep::Settle(Ending::Done),
            RunStage::Answered(_) => NextStep::TakeSteer,
            RunStage::Cut(_) => NextStep::Settle(Ending::Stopped),
            // Nothing has changed since the boundary before these, so the run is still there (S2.21, S12.2).
            RunStage::Streaming if bounds.is_unsent && is_due => NextStep::CutModel(Completion::Stopped),
            RunStage::Summarising if is_due => NextStep::CutModel(Completion::Stopped),
            RunStage::Streaming => match (demand, bounds.steered) {
                (Some(Demand { mode: Mode::Now, .. }), _) => NextStep::CutModel(Completion::Stopped),
                (_, PendingSteer::AtOnce) => NextStep::CutModel(Completion::Steered),
                (_, PendingSteer::No | PendingSteer::Noticed | PendingSteer::Waiting) => NextStep::Wait,
            },
            RunStage::Ready => self.due_ready(demand, bounds),
            RunStage::Summarising => NextStep::Wait,
            RunStage::Calls(round) => {
                let gate = round.gate();
                if round.is_closing() || demand.is_some_and(|demand| demand.fires_at(gate)) {
                    return self.wind_down(Ending::Stopped);
                }
                match round.due(bounds.limits.parallel_calls, gate) {
                    // Suspended is a safe point of every set (S8.3).
                    NextStep::Settle(Ending::Suspended) if demand.is_some() => {
                        NextStep::Settle(Ending::Stopped)
                    }
                    due => due,
                }
            }
        }
    }

    /// Whether a model call is next once this end of a call is applied, if nothing else comes in between.
    pub(crate) fn calls_model_after(&self, ended: &CallReport, bounds: &StepContext<'_>) -> bool {
        let RunStage::Calls(round) = &self.stage else { return false };
        let is_answer =
            |form: &Arc<AnswerSchema>| round.message().calls().any(|call| call.name == form.name());
        // What a run below has used counts towards the limits, and what is added to the history may fill the window.
        let is_counted = ended.child.is_some() || bounds.meter.is_some();
        self.failure.is_none()
            && ended.stopped_by.is_none()
            && round.waits_only_for(&ended.call_id)
            && !is_counted
            && !self.form.as_ref().is_some_and(is_answer)
            && bounds.steered == PendingSteer::No
            && bounds.reached(self).is_none()
    }

    /// The gate of the next call of the round, if there is a round.
    pub(crate) fn call_gate(&self) -> Option<SafePoints> {
        if let RunStage::Calls(round) = &self.stage { Some(round.gate()) } else { None }
    }

    fn due_ready(&self, demand: Option<Demand>, bounds: &StepContext<'_>) -> NextStep {
        let gate = self.ready_gate();
        if demand.is_some_and(|demand| demand.fires_at(gate)) {
            return NextStep::Settle(Ending::Stopped);
        }
        match (bounds.reached(self), bounds.steered) {
            (Some(limit), _) => limit,
            (None, _) if bounds.is_compacting() => bounds.fitted(self, gate),
            (None, PendingSteer::No) => bounds.fitted(self, gate),
            (None, PendingSteer::Noticed | PendingSteer::Waiting | PendingSteer::AtOnce) => {
                NextStep::TakeSteer
            }
        }
    }

    /// Before the first model call nothing has happened, so the state is complete for every set of points.
    pub(crate) fn ready_gate(&self) -> SafePoints {
        match self.model {
            None => SafePoints::ANY,
            Some(_) => SafePoints::AFTER_STARTED_CALLS | SafePoints::AFTER_ALL_CALLS,
        }
    }

    fn wind_down(&self, ending: Ending) -> NextStep {
        match &self.stage {
            RunStage::Calls(round) if round.is_running() => NextStep::Wait,
            RunStage::Streaming | RunStage::Summarising => NextStep::CutModel(Completion::Stopped),
            _ => NextStep::Settle(ending),
        }
    }

    /// Applies one recorded fact to the state.
    pub(crate) fn apply(&mut self, recorded: &Recorded) {
        match &**recorded.fact() {
            Fact::AttemptOpened { attempt, history, on_unknown, limits, .. } => {
                self.add_up(limits.as_ref());
                self.open(*attempt, history.as_ref(), *on_unknown);
            }
            Fact::TimeTaken { ms } => self.spent.take(Duration::from_millis(*ms)),
            Fact::Settled { receipt, .. } => self.spent.settle(receipt),
            Fact::ModelStarted { round } => {
                self.rounds = *round;
                self.stage = RunStage::Streaming;
            }
            Fact::HistoryShortened(shortened) => self.shorten(shortened),
            Fact::SummaryStarted { .. } => self.stage = RunStage::Summarising,
            Fact::SummaryEnded { whole, report, shortened } => {
                self.summary_ended(whole, report, shortened.as_ref());
            }
            Fact::ModelEnded { message, whole, report } => self.model_ended(message, whole, report),
            Fact::ModelTooLong { report, .. } => self.model_too_long(report),
            Fact::HookActed(acted) => self.hook_acted(&acted.action),
            Fact::SteerTaken { steers, .. } => {
                let messages = steers.iter().map(|steer| Message::User(steer.message.clone()));
                messages.for_each(|message| self.history.push(message));
                self.stage = RunStage::Ready;
            }
            Fact::CallStarted { call_id, effect, work, args, .. } => self.change(call_id, |call| {
                call.effect = Some(*effect);
                call.given = Some(Arc::clone(args));
                call.step = CallState::Running;
                if *work != CallKind::Tool {
                    call.run = Some(Arc::clone(args));
                }
            }),
            Fact::RemoteTaskNamed { call_id, task } => {
                self.change(call_id, |call| call.named = Some(task.clone()))
            }
            Fact::CallEnded { report, result, .. } => self.call_ended(report, result),
            Fact::ChildSuspended { call_id, child, approvals } => {
                let step = CallState::Suspended { child: child.clone(), approvals: approvals.clone() };
                self.used_below(child);
                self.change(call_id, |call| call.step = step);
            }
            Fact::ApprovalRequested(request) if request.question == ApprovalKind::DuringCall => {
                self.live.push(request.clone());
            }
            Fact::ApprovalRequested(request) => {
                self.change(&request.call_id, |call| {
                    call.step = CallState::AwaitingApproval(request.clone())
                });
            }
            Fact::ApprovalResolved { id, .. } if self.live.iter().any(|request| request.id == *id) => {
                self.live.retain(|request| request.id != *id);
            }
            Fact::ApprovalResolved { id, call_id, answer } => {
                self.change(call_id, |call| call.answered(id, answer));
            }
            Fact::HistoryRepaired { .. }
            | Fact::StopRequested(_)
            | Fact::StopEscalated
            | Fact::StopObserved { .. } => {}
        }
    }

    /// A start takes its history; a resume continues what the last attempt left (S5.3).
    fn open(&mut self, attempt: u32, history: Option<&History>, on_unknown: OnUnknownEffect) {
        self.attempt = attempt;
        if let Some(history) = history {
            self.history = history.clone();
        }
        self.calls.clear();
        self.model = None;
        self.summaries.clear();
        self.provider_tools = None;
        self.failure = None;
        self.missed = 0;
        self.request.is_changed = false;
        if self.request.length == RequestLength::Shortened {
            self.request.length = RequestLength::Unknown;
        }
        match &mut self.stage {
            RunStage::Cut(_) | RunStage::Streaming | RunStage::Summarising => self.stage = RunStage::Ready,
            RunStage::Calls(round) => round.reopen(on_unknown),
            RunStage::Ready | RunStage::Answered(_) => {}
        }
        self.close_round();
    }

    fn call_ended(&mut self, report: &Arc<CallReport>, result: &CallResult) {
        self.effect = self.effect.and(report.effect);
        report.child.iter().for_each(|child| self.used_below(child));
        self.change(&report.call_id, |call| {
            if report.status == CallStatus::NotStarted {
                // It was announced and then not let pass: nothing of the round has begun with it.
                call.effect = None;
                call.run = None;
            }
            if report.stopped_by.is_none() {
                // It is never resumed: its arguments are kept in its message alone (S12.4).
                call.given = None;
            }
            call.step = CallState::Ended { report: Arc::clone(report), result: result.clone() };
        });
        self.close_round();
    }

    fn close_round(&mut self) {
        if let RunStage::Calls(round) = &self.stage
            && round.is_complete()
            && let RunStage::Calls(round) = std::mem::take(&mut self.stage)
        {
            let (message, results) = round.close(&mut self.calls);
            self.stage = self.after_calls(&message, &results);
            self.history.push(Message::Assistant(message));
            self.history.push(Message::Results { results });
        }
    }

    /// Makes the run fail as soon as nothing of it runs.
    pub(crate) fn fail(&mut self, error: ErrorReport) {
        self.failure.get_or_insert(error);
    }

    fn change(&mut self, id: &CallId, change: impl FnOnce(&mut Call)) {
        if let RunStage::Calls(round) = &mut self.stage
            && let Some(place) = round.place(id)
        {
            round.change(place, change);
        }
    }
}

#[cfg(test)]
mod tests;
