//! Model calls: announced, permitted, streamed by a performer, and cut where required.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use jiff::Timestamp;
use safepoint_scope::SafePoints;
use tokio::time::timeout;
use tracing::Span;

use super::{
    Driver, LogFailure, RunContext,
    model_errors::{endless, filtered, too_long},
    reading::{ReadPart, Reader},
    stream::{CallModel, SharedDraft, Writer},
    summary::SummaryCall,
};
use crate::{
    contract::{
        hook::{HookOf, HookedMessage},
        log::Recorded,
        model::{Finish, GuardedConversation, ModelError, ModelErrorKind, OnModelStop},
    },
    run::{draft::Draft, outcome::LastWords, spans},
    sync::{
        Mutex,
        callback::{self, Panicked},
        clock,
    },
    value::{
        event::{Completion, Fact},
        history::History,
        message::AssistantMessage,
        receipt::{ModelReport, ModelState},
        usage::Usage,
    },
};

mod shorter;
mod spanned;
mod writer;

use writer::changed_facts;

/// The run's conversation with its model.
pub(super) struct ModelCalls {
    /// Opened for its first call: what it is asked for depends on its history.
    conversation: Option<GuardedConversation>,
    /// The call in progress.
    streaming: Option<ModelCall>,
    /// A call that was cut and is still read for its bill.
    draining: Option<Box<ModelCall>>,
    /// What readers saw of the answer of the last call, if that is the run's answer.
    said: LastWords,
}

impl ModelCalls {
    pub(super) fn new() -> Self {
        Self { conversation: None, streaming: None, draining: None, said: LastWords::default() }
    }

    /// The conversation, which begins with the first call.
    fn open(&mut self, cx: &RunContext, history: &History) -> &mut GuardedConversation {
        self.conversation.get_or_insert_with(|| cx.def.model.open(cx.def.spec_on(history)))
    }

    /// Notes what readers saw of the answer of a call, if that is the run's answer.
    pub(super) fn was_said(&mut self, said: LastWords) {
        self.said = said;
    }

    pub(super) fn said(&self) -> &LastWords {
        &self.said
    }

    /// How long a cut call is read for its bill.
    pub(super) fn drain_time(&self, cx: &RunContext) -> Duration {
        self.draining.as_ref().map_or(Duration::ZERO, |_| cx.def.limits.drain_timeout)
    }

    /// Whether a request waits to be sent, or to be sent again.
    pub(super) fn is_unsent(&self) -> bool {
        self.streaming.as_ref().is_some_and(|streaming| streaming.draft.lock().draft.is_unsent())
    }

    /// Drops the conversation: it may hold a connection's buffers, and is not needed any more.
    pub(super) fn end(&mut self) -> Result<(), Panicked> {
        self.conversation.as_mut().map_or(Ok(()), GuardedConversation::end)
    }

    /// Tells the provider that the reply is not wanted, if dropping the exchange does not. Only quiet waits
    /// for this.
    fn release(&mut self, cx: &RunContext, streaming: &mut ModelCall) {
        let release = match &mut streaming.summary {
            None => self.conversation.as_mut().and_then(GuardedConversation::release),
            Some(summary) => summary.release(),
        };
        if let Some(release) = release {
            let bound = cx.def.limits.release_timeout;
            drop(cx.scope.spawn("telling the provider", async move {
                if timeout(bound, callback::run(release)).await.is_err() {
                    // The provider was asked; its answer changes nothing.
                }
            }));
        }
    }

    /// Keeps reading the cut exchange for its bill alone, for a bounded time; the run is not quiet before.
    fn drain(&mut self, cx: &RunContext, mut streaming: ModelCall) {
        streaming.draft.lock().permission = Writer::UsageOnly;
        let bound = cx.def.limits.drain_timeout;
        if let Reader::Task(mut task) = std::mem::replace(&mut streaming.reader, Reader::Absent) {
            drop(cx.scope.spawn("draining for the bill", async move {
                if timeout(bound, &mut task).await.is_err() {
                    task.dropper().drop_now();
                }
            }));
        }
        self.draining = Some(Box::new(streaming));
    }

    /// The bill of a call that was read after its cut: its usage, and whether its end was reached.
    pub(super) fn drained(&mut self) -> Option<(Usage, ModelState)> {
        let streaming = self.draining.take()?;
        let locked = streaming.draft.lock();
        let state = if locked.draft.finish().is_some() { ModelState::Completed } else { ModelState::Closed };
        Some((locked.draft.usage(), state))
    }

    /// Takes out the call of this round, which has ended. A call that exceeded the limit is cut by the stop
    /// that this caused, even if its end came together with the excess.
    fn ended(&mut self, round: u32) -> Option<ModelCall> {
        let is_whole = |streaming: &ModelCall| !streaming.draft.lock().draft.is_full();
        self.streaming.take_if(|streaming| streaming.round == round && is_whole(streaming))
    }

    /// Reads on of the reply, if the driver does.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<(u32, ReadPart)> {
        let Some(streaming) = &mut self.streaming else { return Poll::Pending };
        streaming.reader.poll(cx).map(|part| (streaming.round, part))
    }

    /// The driver does not read on: the reply that it reads, if it does, gets a task apart from the driver.
    pub(super) fn leave_reading(&mut self, cx: &RunContext) {
        if let Some(streaming) = &mut self.streaming {
            streaming.reader.leave((&cx.shared, streaming.round));
        }
    }

    /// Whether a call is in progress.
    pub(super) fn has_begun(&self) -> bool {
        self.streaming.is_some()
    }

    /// Whether the call of this round is in progress.
    pub(super) fn is_at(&self, round: u32) -> bool {
        self.streaming.as_ref().is_some_and(|streaming| streaming.round == round)
    }
}

/// A model call in progress.
struct ModelCall {
    round: u32,
    /// The model that is asked first.
    model: Arc<str>,
    /// What it summarises, if it is not the call of a round but the summary of the history before one.
    summary: Option<Box<SummaryCall>>,
    started_at: Timestamp,
    /// Shared with the performer: see [`SharedDraft`].
    draft: Arc<Mutex<SharedDraft>>,
    reader: Reader,
    span: Span,
}

impl Driver {
    pub(super) async fn call_model(&mut self, gate: SafePoints) -> Result<(), LogFailure> {
        let round = self.machine.next_round();
        if !self.request_passed(&HookOf::Model(round), |hooks, request| hooks.before_model(round, request)) {
            return self.wait().await;
        }
        let announced = self.record(Fact::ModelStarted { round }).await?;
        self.stream(round, None, (gate, &announced)).await
    }

    /// Begins the announced call, of a round or for a summary, if the gate lets it pass.
    pub(super) async fn stream(
        &mut self,
        round: u32,
        summary: Option<Box<SummaryCall>>,
        (gate, announced): (SafePoints, &Recorded),
    ) -> Result<(), LogFailure> {
        // A remote agent makes no model call here: its message counts as sent only if it says so.
        let draft = Draft::new(&self.cx.def.limits, self.cx.def.is_remote);
        let model =
            summary.as_ref().map_or_else(|| self.cx.def.model.shared_name(), |summary| summary.model());
        let mut streaming = ModelCall {
            round,
            span: spans::model_call(&model, round),
            model,
            summary,
            started_at: clock::now(),
            draft: Arc::new(Mutex::new(SharedDraft::new(draft))),
            reader: Reader::Absent,
        };
        match self.cx.scope.pass::<CallModel>(gate, announced) {
            Ok(permit) => {
                if let Some(writer) = self.writer(&streaming) {
                    let scope = permit.into_scope();
                    let reply = self.reply(&mut streaming);
                    streaming.reader = self.reader(reply, writer, (&streaming.span, scope));
                }
            }
            // The scope has the stop; there is nothing else to unwind to.
            Err(stop) => {
                drop(stop);
                self.observe(Some(gate)).await?;
            }
        }
        let refused = matches!(streaming.reader, Reader::Absent);
        self.model.streaming = Some(streaming);
        if refused { Box::pin(self.cut_model(Completion::Stopped, Vec::new())).await } else { Ok(()) }
    }

    /// Ends the exchange on this side, and keeps what has arrived. An exchange that a steer cuts is released
    /// in any case. `asked` is recorded first, in the same append.
    pub(super) async fn cut_model(
        &mut self,
        whole: Completion,
        mut asked: Vec<Arc<Fact>>,
    ) -> Result<(), LogFailure> {
        let Some(mut streaming) = self.model.streaming.take() else {
            return self.record_all(asked).await.map(drop);
        };
        let is_unsent = streaming.draft.lock().draft.is_unsent();
        if whole == Completion::Stopped {
            asked.extend(self.observed(is_unsent.then(|| self.machine.ready_gate())));
        }
        // What was not sent has no bill.
        let is_drained =
            self.cx.def.on_cut == OnModelStop::Drain && whole == Completion::Stopped && !is_unsent;
        if is_drained && matches!(streaming.reader, Reader::Task(_)) && streaming.summary.is_none() {
            self.end_model(&mut streaming, (Completion::Stopped, ModelState::Draining), asked).await?;
            self.model.drain(&self.cx, streaming);
            return Ok(());
        }
        // The run's outcome is next then, with no append that is waited for and no code of a user.
        let is_last =
            whole == Completion::Stopped && self.cx.def.hooks.is_empty() && self.recorder.is_instant();
        match is_last {
            true => streaming.reader.end_with_this_poll(&self.cx.shared),
            false => streaming.reader.end(),
        }
        self.model.release(&self.cx, &mut streaming);
        self.end_model(&mut streaming, (whole, ModelState::Closed), asked).await
    }

    /// Releases the exchange of a call whose end cannot be recorded any more. Nothing more of it is shown, and the receipt has it.
    pub(super) fn end_model_for_failure(&mut self) {
        if let Some(mut streaming) = self.model.streaming.take() {
            streaming.reader.end();
            self.model.release(&self.cx, &mut streaming);
            let (message, report) = self.take_message(&streaming, ModelState::Closed);
            self.recorder.keep_unrecorded_model(report, &message);
        }
    }

    pub(super) async fn model_ended(
        &mut self,
        round: u32,
        error: Option<ModelError>,
    ) -> Result<(), LogFailure> {
        let Some(mut streaming) = self.model.ended(round) else { return Ok(()) };
        if error.is_some() {
            self.model.release(&self.cx, &mut streaming);
        }
        if error.as_ref().is_some_and(|error| error.kind() == ModelErrorKind::Unreachable) {
            streaming.draft.lock().draft.never_left();
        }
        if let Some(error) = error.as_ref().filter(|error| self.may_shorten(error, &streaming)) {
            return Box::pin(self.retry_shorter(&mut streaming, error)).await;
        }
        let finish = streaming.draft.lock().draft.finish().cloned();
        let (whole, state) = match (error, finish) {
            (Some(error), _) => (Completion::Failed(self.failed(&error)), ModelState::Closed),
            (None, Some(Finish::Length)) => (Completion::Failed(too_long()), ModelState::Completed),
            (None, Some(Finish::Filtered)) => (Completion::Failed(filtered()), ModelState::Completed),
            (None, Some(Finish::Natural | Finish::Other(_))) => (Completion::Complete, ModelState::Completed),
            (None, None) => (Completion::Failed(endless()), ModelState::Closed),
        };
        self.end_model(&mut streaming, (whole, state), Vec::new()).await
    }

    /// Records the end of a call behind what was `asked`, in one append.
    async fn end_model(
        &mut self,
        streaming: &mut ModelCall,
        (whole, state): (Completion, ModelState),
        mut asked: Vec<Arc<Fact>>,
    ) -> Result<(), LogFailure> {
        if streaming.summary.is_some() {
            return Box::pin(self.end_summary(streaming, (whole, state), asked)).await;
        }
        asked.extend(changed_facts(streaming));
        let ended = self.ended_fact(streaming, (whole, state));
        let Fact::ModelEnded { message, whole, report } = &*ended else { return Ok(()) };
        if asked.is_empty()
            && *whole == Completion::Complete
            && let Some(starts) = self.starts_after(message)
        {
            let begun = self.record_with_starts(Arc::clone(&ended), starts).await;
            let begun = begun.inspect_err(|_| self.keep_unrecorded_round(message, report))?;
            streaming.end_span(whole, report);
            return Box::pin(self.begin_calls(begun)).await;
        }
        asked.push(Arc::clone(&ended));
        let recorded = self.record_all(asked).await;
        recorded.inspect_err(|_| self.recorder.keep_unrecorded_model(report.clone(), message))?;
        streaming.end_span(whole, report);
        let hooked =
            || HookedMessage { message: Arc::clone(message), whole: whole.clone(), report: report.clone() };
        self.notify(|hooks| hooks.after_model(&hooked()));
        Ok(())
    }

    /// The same for the call of a summary.
    async fn end_summary(
        &mut self,
        streaming: &mut ModelCall,
        (whole, state): (Completion, ModelState),
        mut asked: Vec<Arc<Fact>>,
    ) -> Result<(), LogFailure> {
        asked.extend(changed_facts(streaming));
        let (message, report) = self.take_message(streaming, state);
        self.record_all(asked).await?;
        streaming.end_span(&whole, &report);
        let Some(summary) = &mut streaming.summary else { return Ok(()) };
        self.summarised(summary, &message, (whole, report)).await
    }

    /// The fact of an end. Made apart, so that no future has room for its parts.
    fn ended_fact(&self, streaming: &ModelCall, (whole, state): (Completion, ModelState)) -> Arc<Fact> {
        let (message, report) = self.take_message(streaming, state);
        Arc::new(Fact::ModelEnded { message: Arc::new(message), whole, report })
    }

    /// Withdraws the permission to write, and takes what was written.
    fn take_message(&self, streaming: &ModelCall, state: ModelState) -> (AssistantMessage, ModelReport) {
        let mut locked = streaming.draft.lock();
        // One critical section withdraws the permission and takes the message: a delta is either in it,
        // or neither kept nor shown.
        locked.permission = Writer::Closed;
        let message = locked.draft.message(|id| self.machine.is_taken(id));
        let report = ModelReport {
            model: locked.draft.model().unwrap_or_else(|| Arc::clone(&streaming.model)).to_string(),
            round: streaming.round,
            state: if locked.draft.is_sent() { state } else { ModelState::NeverSent },
            usage: locked.draft.usage(),
            started_at: streaming.started_at,
            ended_at: clock::now(),
            retries: std::mem::take(&mut locked.retries),
            calls_left_out: locked.draft.calls_left_out(),
        };
        (message, report)
    }
}
