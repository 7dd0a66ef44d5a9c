//! The actor of a run. It asks the machine for the next step, records the fact that announces it, mints the
//! permit, and passes the effect to a performer. It awaits only the log and its mailbox, never an effect.
//!
//! **Invariants**: no effect without a permit, no permit without a recorded announcement; after `settle`
//! nothing of the attempt is recorded.

use std::sync::Arc;

use jiff::Timestamp;
use safepoint_scope::{Actor, Code, Reason, Scope, StopRequest, Task};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::{
    contract::{
        log::{Log, LogError, Recorded},
        trace::RunTrace,
    },
    definition::Definition,
    run::{
        attempt::{AttemptGuard, AttemptLock},
        machine::{Machine, NextStep, StepContext},
        outcome::Persisted,
        shared::{Activity, RunMessage, SharedRun},
        spans::{self, RunLabels},
    },
    sync::{callback, clock::now, mailbox::Received},
    value::{
        approval::Ruled,
        event::{Completion, ErrorReport, Fact},
        history::{History, Message},
        ids::ApprovalId,
        message::UserMessage,
        receipt::{Ending, Receipt},
    },
};

mod account;
mod admit;
mod ahead;
mod approvals;
mod begin;
mod calls;
mod children;
mod clock;
mod copies;
mod driver_drop;
mod expiry;
mod failure;
mod filters;
mod grace;
mod hook_verdicts;
mod hooks;
mod host;
mod late;
mod mid_call;
mod model;
mod model_errors;
mod never_begun;
mod parent;
mod promised_message;
mod queue;
mod reading;
mod recorder;
mod replay;
mod running;
mod settle;
mod start_calls;
mod steers;
mod stops;
mod stream;
mod summary;
mod tree;
mod unshown;
mod waiting_calls;

use approvals::OpenApprovals;
use calls::Calls;
use hooks::HookRunner;
use model::ModelCalls;
use queue::Queue;
use reading::Driven;
use recorder::Recorder;
use steers::Steers;
use stops::StopTracker;
use tree::TreeLinks;

/// What an attempt starts from.
pub(crate) enum Start {
    /// A new run on this conversation. Boxed, so that no task has room for it while it runs.
    Fresh(Box<History>),
    /// A fresh run whose input is blank: it is refused (S5.1).
    Blank(Box<History>),
    /// The log of a run that ended early, and decisions for its open questions.
    Resume(Vec<(ApprovalId, Ruled)>, AttemptLock),
    /// The work of a call: a new run on this input, or one that its tree has recorded.
    Child(UserMessage),
}

impl Start {
    /// A run that continues `history` with `input`, unless the input is blank.
    pub(crate) fn on(mut history: History, input: UserMessage) -> Self {
        if input.is_blank() {
            return Self::Blank(Box::new(history));
        }
        history.push(Message::User(input));
        Self::Fresh(Box::new(history))
    }
}

pub(crate) struct Driver {
    cx: RunContext,
    machine: Machine,
    recorder: Recorder,
    attempt: Attempt,
    queue: Queue,
    stops: StopTracker,
    model: ModelCalls,
    calls: Calls,
    approvals: OpenApprovals,
    hooks: HookRunner,
    steers: Steers,
    tree: TreeLinks,
}

/// What a run is and reads, for the whole attempt.
struct RunContext {
    shared: Arc<SharedRun>,
    def: Arc<Definition>,
    scope: Scope,
}

/// The attempt's claim on the run: while it holds the guard, no other attempt in this process runs.
struct Attempt {
    lock: AttemptLock,
    guard: Option<AttemptGuard>,
    started_at: Timestamp,
}

impl Attempt {
    fn new() -> Self {
        Self { lock: AttemptLock::default(), guard: None, started_at: now() }
    }

    /// Claims the run through `lock`.
    fn claim(&mut self) -> Result<(), LogFailure> {
        self.guard = Some(self.lock.claim().ok_or(LogFailure::Conflict)?);
        Ok(())
    }

    /// Releases the claim.
    fn release(&mut self) {
        self.guard = None;
    }
}

/// How many messages are handled between two checks of the demand.
const MAIL_BETWEEN_LOOKS: usize = 32;

/// Why a driver cannot continue.
enum LogFailure {
    /// Another attempt of the run is active in this process.
    Conflict,
    /// The log failed, or it is unknown whether it has taken a fact.
    Log(LogError),
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<SharedRun>,
        def: Arc<Definition>,
        log: Arc<dyn Log>,
        mailbox: Received<RunMessage>,
    ) -> Self {
        let scope = shared.scope.clone();
        Self {
            machine: Machine::answering(def.form.clone()),
            recorder: Recorder::new(log),
            attempt: Attempt::new(),
            queue: Queue::new(mailbox),
            stops: StopTracker::new(&scope),
            model: ModelCalls::new(),
            calls: Calls::default(),
            approvals: OpenApprovals::default(),
            hooks: HookRunner::default(),
            steers: Steers::default(),
            tree: TreeLinks::default(),
            cx: RunContext { shared, def, scope },
        }
    }

    /// Starts the attempt. The driver outlives the run's tasks, so it is in no scope. Not an async function: a
    /// driver's future would then contain that of its child run's driver.
    pub(crate) fn spawn(self, start: Start) {
        let shared = &self.cx.shared;
        let above = self.tree.parent.as_deref();
        let span = spans::run(&RunLabels {
            run: &shared.run,
            path: &shared.path,
            session: shared.tree.conversation.as_ref(),
            agent: self.cx.def.name.as_deref().or(above.map(|up| up.child.spec().name.as_str())),
            model: self.cx.def.model.name(),
            call: above.map(|up| &up.call_id),
        });
        let shared = Arc::clone(&self.cx.shared);
        let traced = self.trace().map(|trace| trace.begin(&span));
        let driven = Driven::new(Box::new(self).run(start), shared, traced);
        drop(Task::unscoped("driver", driven.instrument(span)));
    }

    /// Where the run hangs in a trace, if it was given that: a run below another one hangs below that one.
    fn trace(&self) -> Option<RunTrace> {
        if self.tree.parent.is_some() {
            return None;
        }
        self.cx.shared.values().find().cloned()
    }

    /// The whole life of an attempt: until its outcome is fixed, and then until it is quiet. Rare work is
    /// boxed, so that a run that waits for its model has no room for its beginning and end.
    async fn run(mut self: Box<Self>, start: Start) {
        let driven = match callback::run(self.open_and_step(start)).await {
            Ok(driven) => driven,
            Err(panic) => {
                self.callback_panicked("something that the run's own task called", &panic);
                self.calls.end_for_failure();
                // What still runs is waited for, as after any failure.
                callback::run(self.step_after_panic()).await.unwrap_or(Ok(Ending::Failed))
            }
        };
        let (ending, persisted) = match driven {
            Ok(ending) => (ending, Persisted::Yes),
            Err(LogFailure::Log(error)) => {
                let persisted = settle::persisted(&error);
                (self.end_without_log(error), persisted)
            }
            Err(LogFailure::Conflict) => {
                let hint = "wait until the other attempt has settled, and resume what it came to";
                self.fail("conflict", settle::TAKEN, Some(hint));
                (Ending::Failed, Persisted::No(settle::TAKEN.into()))
            }
        };
        if persisted != Persisted::Yes {
            self.end_model_for_failure();
            self.calls.end_for_failure();
            self.watch_since(Some(Instant::now()));
        }
        let receipt: Arc<Receipt> = Box::pin(self.settle(ending, persisted)).await;
        Box::pin(self.quieten(receipt)).await;
    }

    async fn open_and_step(&mut self, start: Start) -> Result<Ending, LogFailure> {
        Box::pin(self.open(start)).await?;
        self.step_until_settled().await
    }

    async fn step_until_settled(&mut self) -> Result<Ending, LogFailure> {
        loop {
            // At most this many, and then a check of the demand: a stop does not queue behind messages
            // (S12.5).
            for _ in 0..MAIL_BETWEEN_LOOKS {
                let Some(msg) = self.queue.now() else { break };
                self.note_phase();
                Box::pin(self.handle(msg)).await?;
            }
            self.keep_time().await?;
            let asked = self.asked();
            let demand = self.cx.scope.demand();
            let def = Arc::clone(&self.cx.def);
            let steered = self.steers.urgency();
            let bounds = StepContext {
                limits: &def.limits,
                price: def.price.as_ref(),
                meter: def.meter.as_ref(),
                steered,
                is_unsent: demand.is_some() && self.model.is_unsent(),
            };
            let due = self.machine.next_step(demand, &bounds);
            if matches!(due, NextStep::CutModel(Completion::Stopped)) {
                // What was asked is recorded together with what it does.
                self.cut_model(Completion::Stopped, asked).await?;
                continue;
            }
            if !asked.is_empty() {
                self.record_all(asked).await?;
                continue;
            }
            match &due {
                NextStep::Wait => self.report_idle(),
                NextStep::Settle(Ending::Suspended) => {}
                _ => self.tree.report_activity(Activity::Works),
            }
            match due {
                NextStep::CallModel { gate } => self.call_model(gate).await?,
                NextStep::Shorten(cut) => self.shorten(&cut).await?,
                NextStep::Summarise { cut, gate } => Box::pin(self.summarise(cut, gate)).await?,
                NextStep::Refuse(text) => self.refuse(text),
                NextStep::CutModel(whole) => self.cut_model(whole, Vec::new()).await?,
                NextStep::TakeSteer => self.take_steers().await?,
                NextStep::Judge(calls) => self.check(calls).await?,
                NextStep::StartCalls { calls, gate } => self.start_calls(calls, gate).await?,
                NextStep::Limit { code, text } => self.stop_for_limit(code, text),
                NextStep::Settle(Ending::Suspended) if !self.may_suspend() => self.wait().await?,
                NextStep::Settle(Ending::Done) if self.hooks.is_notifying(&self.cx) => self.wait().await?,
                NextStep::Settle(Ending::Stopped) if self.hooks.is_asking(&self.cx) => self.wait().await?,
                NextStep::Settle(ending) => return Ok(ending),
                NextStep::Wait => {
                    if self.machine.failure().is_some() {
                        self.calls.end_for_failure();
                    }
                    self.end_waiting_calls();
                    if demand.is_some() || self.machine.failure().is_some() {
                        self.watch_ending_calls();
                    }
                    self.wait().await?;
                }
            }
        }
    }

    /// Records a fact, applies it and shows it. State changes in no other way.
    fn record(
        &mut self,
        fact: impl Into<Arc<Fact>>,
    ) -> impl Future<Output = Result<Recorded, LogFailure>> + Send {
        self.model.leave_reading(&self.cx);
        self.recorder.record(&mut self.machine, &self.cx, fact.into())
    }

    /// Records facts in one append, and then applies and shows them. The last of them is returned.
    fn record_all(
        &mut self,
        facts: Vec<Arc<Fact>>,
    ) -> impl Future<Output = Result<Option<Recorded>, LogFailure>> + Send {
        if !facts.is_empty() {
            self.model.leave_reading(&self.cx);
        }
        self.recorder.record_all(&mut self.machine, &self.cx, facts)
    }

    fn fail(&mut self, code: &str, message: impl Into<String>, hint: Option<&str>) {
        self.machine.fail(ErrorReport::new(code, message, hint));
    }

    fn stop_for_limit(&self, code: Code, text: String) {
        let reason = Reason::new(code).with_actor(Actor::Engine).with_text(text);
        self.cx.shared.stop.stop(StopRequest::now().with_reason(reason));
    }
}
