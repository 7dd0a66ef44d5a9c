//! Model calls: announced, permitted, streamed by a performer, and cut where they must be.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use safepoint_scope::{Effect, Permit, SafePoints, Task};
use tokio::time::timeout;
use tracing::{Instrument as _, Span};

use super::{
    Broken, Conductor,
    model_errors::{dead, endless, filtered, report, retry, too_long},
    window::Summing,
    word::Word,
};
use crate::{
    callback,
    draft::{Draft, Sent},
    event::{EventKind, Fact, Wholeness},
    hook::HookedMessage,
    log::Recorded,
    model::{Delta, Finish, ModelError, ModelErrorKind, OnCut, Reply},
    receipt::{ModelReport, ModelState, RetryReport},
    shared::{HookKey, Msg, Shared},
    spans,
    usage::Usage,
};

/// The effect of calling a model.
#[derive(Debug)]
pub(super) enum CallModel {}

impl Effect for CallModel {
    type Announcement = Recorded;
}

/// A model call that is under way.
pub(super) struct Streaming {
    round: u32,
    purpose: Purpose,
    started_at: Timestamp,
    pen: Arc<Mutex<Pen>>,
    task: Option<Task<()>>,
    span: Span,
}

/// What a model call is for. Exhaustive: a round, or the summary of a history before one.
pub(super) enum Purpose {
    Round,
    Summary(Box<Summing>),
}

/// The draft, and whether it may still be written: taken away when the call is cut, so that a chunk that arrives a
/// moment later changes nothing and is shown to nobody.
#[derive(Default)]
struct Pen {
    draft: Draft,
    hand: Hand,
    retries: Vec<RetryReport>,
}

/// Who may write. Exhaustive: the performer, nobody any more, or the performer, but only the bill.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Hand {
    #[default]
    Performer,
    Nobody,
    Clerk,
}

impl Streaming {
    pub(super) fn new(model: &str, round: u32, purpose: Purpose) -> Self {
        let pen = Arc::new(Mutex::new(Pen::default()));
        let span = spans::model_call(model, round);
        Self { round, purpose, started_at: Timestamp::now(), pen, task: None, span }
    }

    pub(super) fn round(&self) -> u32 {
        self.round
    }
}

impl Conductor {
    pub(super) async fn call_model(&mut self, gate: SafePoints) -> Result<(), Broken> {
        let round = self.machine.next_round();
        if !self
            .hook_passed(HookKey::Model(round), |hooks, machine| hooks.before_model(round, machine.history()))
        {
            return self.wait().await;
        }
        let announced = self.record(Fact::ModelStarted { round }).await?;
        let streaming = Streaming::new(self.def.model.name(), round, Purpose::Round);
        self.stream(streaming, gate, &announced).await
    }

    /// Begins what was announced, if the gate lets it pass.
    pub(super) async fn stream(
        &mut self,
        mut streaming: Streaming,
        gate: SafePoints,
        announced: &Recorded,
    ) -> Result<(), Broken> {
        match self.scope.pass::<CallModel>(gate, announced) {
            Ok(permit) => {
                let (stream, shown) = match &mut streaming.purpose {
                    Purpose::Round => {
                        let sent = self.machine.history().sent();
                        (self.conversation.stream(&sent), Shown::All)
                    }
                    Purpose::Summary(summing) => (summing.stream(), Shown::OnlyRetries),
                };
                let (pen, shared) = (Arc::clone(&streaming.pen), Arc::clone(&self.shared));
                let most = self.def.limits.model_output_bytes;
                let page = Page { pen, shared, round: streaming.round, most, shown };
                let performer = perform(permit, stream, page, self.def.on_cut);
                let span = streaming.span.clone();
                streaming.task = Some(self.scope.spawn("model call", performer.instrument(span)));
            }
            // The stop is in the scope's hands; the value has nowhere to unwind to but here.
            Err(stop) => {
                drop(stop);
                self.observe(Some(gate)).await?;
            }
        }
        let refused = streaming.task.is_none();
        self.streaming = Some(streaming);
        if refused { self.cut_model(Wholeness::Cut).await } else { Ok(()) }
    }

    /// Ends the exchange at our end, and keeps what had arrived. One that a steer cuts is released in any case.
    pub(super) async fn cut_model(&mut self, whole: Wholeness) -> Result<(), Broken> {
        let Some(mut streaming) = self.streaming.take() else { return Ok(()) };
        if whole == Wholeness::Cut {
            self.observe(None).await?;
        }
        let is_drained = self.def.on_cut == OnCut::Drain && whole == Wholeness::Cut;
        if is_drained && streaming.task.is_some() && matches!(streaming.purpose, Purpose::Round) {
            self.end_model(&mut streaming, Wholeness::Cut, ModelState::Draining).await?;
            self.drain(streaming);
            return Ok(());
        }
        if let Some(task) = &streaming.task {
            task.dropper().drop_now();
        }
        self.part(&mut streaming);
        self.end_model(&mut streaming, whole, ModelState::Closed).await
    }

    /// Tells the provider that the reply is not wanted, where the drop does not say so. Nothing waits for it but quiet.
    fn part(&mut self, streaming: &mut Streaming) {
        let parting = match &mut streaming.purpose {
            Purpose::Round => self.conversation.part(),
            Purpose::Summary(summing) => summing.part(),
        };
        if let Some(parting) = parting {
            let bound = self.def.limits.parting;
            drop(self.scope.spawn("telling the provider", async move {
                if timeout(bound, callback::run(parting)).await.is_err() {
                    // It was asked; what it does is its affair.
                }
            }));
        }
    }

    /// Reads the cut exchange on, for its bill alone and for a bounded time; the run is not quiet before.
    fn drain(&mut self, mut streaming: Streaming) {
        lock(&streaming.pen).hand = Hand::Clerk;
        let bound = self.def.limits.drain;
        if let Some(mut task) = streaming.task.take() {
            drop(self.scope.spawn("draining for the bill", async move {
                if timeout(bound, &mut task).await.is_err() {
                    task.dropper().drop_now();
                }
            }));
        }
        self.draining = Some(streaming);
    }

    /// The bill of a call that was read on: what it used, and whether its end was reached.
    pub(super) fn drained(&mut self) -> Option<(Usage, ModelState)> {
        let streaming = self.draining.take()?;
        let pen = lock(&streaming.pen);
        let state = if pen.draft.finish().is_some() { ModelState::Completed } else { ModelState::Closed };
        Some((pen.draft.usage(), state))
    }

    pub(super) async fn model_ended(&mut self, round: u32, error: Option<ModelError>) -> Result<(), Broken> {
        let Some(mut streaming) = self.streaming.take_if(|streaming| streaming.round == round) else {
            return Ok(());
        };
        if error.is_some() {
            self.part(&mut streaming);
        }
        if error.as_ref().is_some_and(|error| error.kind() == ModelErrorKind::Unreachable) {
            lock(&streaming.pen).draft.never_left();
        }
        let finish = lock(&streaming.pen).draft.finish().cloned();
        let (whole, state) = match (error, finish) {
            (Some(error), _) => (Wholeness::Failed(report(&error)), ModelState::Closed),
            (None, Some(Finish::Length)) => (Wholeness::Failed(too_long()), ModelState::Completed),
            (None, Some(Finish::Filtered)) => (Wholeness::Failed(filtered()), ModelState::Completed),
            (None, Some(Finish::Natural | Finish::Other(_))) => (Wholeness::Whole, ModelState::Completed),
            (None, None) => (Wholeness::Failed(endless()), ModelState::Closed),
        };
        self.end_model(&mut streaming, whole, state).await
    }

    async fn end_model(
        &mut self,
        streaming: &mut Streaming,
        whole: Wholeness,
        state: ModelState,
    ) -> Result<(), Broken> {
        let (message, usage, state, model, retries) = {
            let mut pen = lock(&streaming.pen);
            pen.hand = Hand::Nobody;
            let state = if pen.draft.sent() == Sent::No { ModelState::NeverSent } else { state };
            let model =
                pen.draft.model().map_or_else(|| self.model_of(streaming).to_owned(), |to| to.to_string());
            let message = pen.draft.message(|id| self.machine.is_taken(id));
            (message, pen.draft.usage(), state, model, std::mem::take(&mut pen.retries))
        };
        let report = ModelReport {
            model,
            round: streaming.round,
            state,
            usage,
            started_at: streaming.started_at,
            ended_at: Timestamp::now(),
            retries,
        };
        let (ending, status) = match &whole {
            Wholeness::Whole => ("completed", spans::Status::Ok),
            Wholeness::Cut => ("stopped", spans::Status::Unset),
            Wholeness::Steered => ("steered", spans::Status::Unset),
            Wholeness::Failed(_) => ("failed", spans::Status::Error),
        };
        spans::end(&streaming.span, ending, status);
        streaming.span.record("gen_ai.usage.input_tokens", report.usage.input);
        streaming.span.record("gen_ai.usage.output_tokens", report.usage.output);
        let message = Arc::new(message);
        if let Purpose::Summary(summing) = &mut streaming.purpose {
            return Box::pin(self.summarised(summing, &message, (whole, report))).await;
        }
        let hooked =
            HookedMessage { message: Arc::clone(&message), whole: whole.clone(), report: report.clone() };
        self.record(Fact::ModelEnded { message, whole, report }).await?;
        self.tell(|hooks| hooks.after_model(&hooked));
        Ok(())
    }

    fn model_of<'s>(&'s self, streaming: &'s Streaming) -> &'s str {
        match &streaming.purpose {
            Purpose::Round => self.def.model.name(),
            Purpose::Summary(summing) => summing.model(),
        }
    }
}

/// What a performer writes on, and whom it tells.
struct Page {
    pen: Arc<Mutex<Pen>>,
    shared: Arc<Shared>,
    round: u32,
    most: usize,
    shown: Shown,
}

/// What readers are shown of a message as it arrives. Exhaustive: a summary is not said to anybody.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    All,
    OnlyRetries,
}

/// Streams one message into its draft. Spends the permit; dropping it releases the exchange.
async fn perform(permit: Permit<CallModel>, reply: Reply, page: Page, on_cut: OnCut) {
    let scope = permit.into_scope();
    let word = Word::or(&page.shared, Msg::ModelEnded { round: page.round, error: Some(dead()) });
    let reading = read(reply, &page);
    let read = match on_cut {
        // It hears the stop itself, so that the exchange is released while the conductor still records what was asked.
        OnCut::Release => scope.run(reading).await,
        OnCut::Drain => Ok(reading.await),
    };
    match read {
        Ok(ended) => word.say(Msg::ModelEnded { round: page.round, error: ended.err() }),
        // The conductor hears the same stop, and cuts the message.
        Err(stop) => drop(stop),
    }
}

async fn read(mut reply: Reply, page: &Page) -> Result<(), ModelError> {
    while let Some(delta) = reply.next().await {
        let delta = delta?;
        let is_last = matches!(delta, Delta::Ended(_));
        page.write(delta);
        // The message is complete: a stream that then stays open is not waited for.
        if is_last {
            break;
        }
        // A stream that always has one more must not keep the stop from being heard.
        tokio::task::coop::consume_budget().await;
    }
    reply.end()
}

impl Page {
    fn write(&self, delta: Delta) {
        let mut pen = lock(&self.pen);
        match (pen.hand, &delta) {
            (Hand::Performer, _) => {}
            // What arrives after the cut is fenced; only the bill is written down.
            (Hand::Clerk, Delta::Usage(_) | Delta::Ended(_)) => return pen.draft.take(&delta),
            (Hand::Clerk | Hand::Nobody, _) => return,
        }
        pen.draft.take(&delta);
        pen.retries.extend(retry(&delta));
        let over = pen.draft.bytes() > self.most;
        // Shown under the lock, so that nothing of a message is shown after it was cut.
        match delta {
            Delta::Text(_) | Delta::Reasoning(_) | Delta::CallBegun { .. } | Delta::Usage(_)
                if self.shown == Shown::OnlyRetries => {}
            Delta::Text(text) => self.shared.feed.push(EventKind::Text(text)),
            Delta::Reasoning(text) => self.shared.feed.push(EventKind::Reasoning(text)),
            Delta::CallBegun { name } => self.shared.feed.push(EventKind::CallBegun(name)),
            Delta::Usage(usage) => self.shared.feed.push(EventKind::Usage(usage)),
            Delta::Retrying { failed, after, error } | Delta::Rejoining { failed, after, error } => {
                self.shared.feed.push(EventKind::Retrying { failed, after, error });
            }
            Delta::FailedOver { from, to, error } => {
                self.shared.feed.push(EventKind::FailedOver { from, to, error });
            }
            Delta::Sent | Delta::Opened | Delta::Sealed(_) | Delta::CallReady(_) | Delta::Ended(_) => {}
        }
        drop(pen);
        if over {
            self.shared.post(Msg::TooLong { round: self.round });
        }
    }
}

fn lock(pen: &Mutex<Pen>) -> MutexGuard<'_, Pen> {
    pen.lock().unwrap_or_else(PoisonError::into_inner)
}
