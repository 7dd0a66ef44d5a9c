//! The result of a wrapped run: its one row, its receipt, its outcome.

use std::sync::Arc;

use jiff::Timestamp;
use safepoint_scope::Mode;

use super::{
    WrappedEnd,
    state::{WORK, WorkState, WrappedRun},
};
use crate::{
    contract::log::MemoryLog,
    run::{
        attempt::AttemptLock,
        executor::CallEnd,
        outcome::{Answer, LastWords, Outcome, OutcomeContext, Persisted, RunError, Stopped},
    },
    sync::clock,
    value::{
        effect::EffectClass,
        event::{ErrorReport, Fact, OutputExtent},
        history::{History, Message, OpenEnd},
        limits::millis,
        message::{AssistantMessage, CallResult, ToolCall},
        receipt::{CallReport, CallStatus, Ending, Receipt, RequestReport, StopReport, StopSource},
        usage::Usage,
    },
};

/// The code of a wrapped run that failed (S1.10).
const CODE: &str = "provider";

/// Why its outcome cannot be resumed.
const NO_RECORDS: &str = "a wrapped run keeps no records";

/// How it ended, before that is published.
pub(super) struct WrappedReceipt {
    pub(super) receipt: Arc<Receipt>,
    history: History,
    said: LastWords,
    pub(super) error: Option<ErrorReport>,
    row: Option<Row>,
}

type Row = (CallReport, CallResult, OutputExtent);

/// The ending, all considered: an answer stands; a failure under a stop that cut the work, or kept it from
/// beginning, does not count.
fn ending_of(state: &WorkState) -> Ending {
    let is_now = match &state.fired {
        Some(effect) => effect.mode == Mode::Now || state.begun_at.is_none(),
        None => false,
    };
    match &state.end {
        Some(WrappedEnd::Done(_)) => Ending::Done,
        Some(WrappedEnd::Failed(_)) if is_now => Ending::Stopped,
        Some(WrappedEnd::Stopped) | None if state.fired.is_some() => Ending::Stopped,
        Some(WrappedEnd::Failed(_) | WrappedEnd::Stopped) | None => Ending::Failed,
    }
}

pub(super) fn of(cell: &WrappedRun, state: &WorkState) -> WrappedReceipt {
    let ending = ending_of(state);
    let shared = cell.shared();
    let phase = if state.begun_at.is_some() { "call" } else { "before the start" };
    let effect = state.fired.as_ref().filter(|_| ending == Ending::Stopped);
    let stop = StopReport::of(&shared.scope.requests(), |logged| RequestReport::from(logged), effect, phase);
    let row = state.begun_at.map(|at| row(cell, state, ending, at));
    let receipt = Receipt {
        run: shared.run.clone(),
        path: shared.path.clone(),
        attempt: 1,
        ending,
        stop,
        rounds: 0,
        model: None,
        summaries: Vec::new(),
        provider_tools: Vec::new(),
        approvals_open: Vec::new(),
        calls: row.iter().map(|(report, ..)| report.clone()).collect(),
        approvals_cancelled: Vec::new(),
        waiting: Vec::new(),
        usage: Usage::default(),
        cost: None,
        usage_total: Usage::default(),
        cost_total: None,
        // All of its time is work: it has no questions.
        worked_ms: millis(cell.opened.elapsed()),
        started_at: cell.opened_at,
        settled_at: clock::now(),
        quiet_at: None,
        survivors: Vec::new(),
        late: Vec::new(),
        unrecorded: None,
    };
    let said = match &state.end {
        Some(WrappedEnd::Done(answer)) => answer,
        _ => &state.said,
    };
    let said = Arc::new(AssistantMessage::of_text(said));
    let message = match (&state.end, ending) {
        (_, Ending::Done | Ending::Stopped | Ending::Suspended) => None,
        (Some(WrappedEnd::Failed(why)), Ending::Failed) => Some(why.clone()),
        (_, Ending::Failed) => Some("the work ended without an answer, and no stop was requested".into()),
    };
    WrappedReceipt {
        history: history_of(cell, &said, ending),
        error: message.map(|message| ErrorReport::new(CODE, message, None)),
        receipt: Arc::new(receipt),
        said: LastWords::of(&said),
        row,
    }
}

fn row(cell: &WrappedRun, state: &WorkState, ending: Ending, began: Timestamp) -> Row {
    let (status, text) = match (&state.end, ending) {
        (None, _) => (CallStatus::LeftRunning, ""),
        (Some(WrappedEnd::Done(answer)), _) => (CallStatus::Completed, answer.as_str()),
        (Some(_), Ending::Stopped) => (CallStatus::Stopped, ""),
        (Some(WrappedEnd::Failed(why)), _) => (CallStatus::Failed, why.as_str()),
        (Some(WrappedEnd::Stopped), _) => (CallStatus::Failed, ""),
    };
    let by_stop = ending == Ending::Stopped;
    let mut end = CallEnd::new(status, text);
    end.judge_effect(EffectClass::Unsafe);
    end.started_at = Some(began);
    end.reason = cell.shared().scope.reason().filter(|_| by_stop);
    end.stopped_by = by_stop.then_some(StopSource::Run);
    end.finish_text("");
    let call = ToolCall { id: WORK.into(), name: cell.spec.name.clone(), args: String::new() };
    end.into_parts(&call, 1)
}

/// The conversation including the work: an answer closes it, and cut work stays open (S5.4).
fn history_of(cell: &WrappedRun, said: &Arc<AssistantMessage>, ending: Ending) -> History {
    let mut history = cell.history.clone();
    let message = Arc::clone(said);
    match ending {
        _ if said.text().is_empty() => {}
        Ending::Done => history.push(Message::Assistant(message)),
        Ending::Stopped | Ending::Suspended | Ending::Failed => history.leave_open(OpenEnd::Cut { message }),
    }
    history
}

impl WrappedReceipt {
    /// What is shown before the settlement.
    pub(super) fn facts(&self) -> impl Iterator<Item = Fact> {
        let row = self.row.iter().cloned();
        row.map(|(report, result, extent)| Fact::CallEnded { report: report.into(), result, extent })
    }

    pub(super) fn into_outcome(self) -> Outcome {
        let Self { receipt, history, said, error, .. } = self;
        let ending = receipt.ending;
        let ended = Arc::new(OutcomeContext {
            receipt,
            history,
            said: said.clone(),
            persisted: Persisted::No(NO_RECORDS.into()),
            log: Arc::new(MemoryLog::default()),
            lock: AttemptLock::default(),
            def: None,
        });
        match (ending, error) {
            (Ending::Done, _) => Outcome::Done(Answer::new(said, ended)),
            (Ending::Failed, Some(error)) => Outcome::Failed(RunError { error, ended }),
            (Ending::Stopped | Ending::Suspended | Ending::Failed, _) => Outcome::Stopped(Stopped { ended }),
        }
    }
}
