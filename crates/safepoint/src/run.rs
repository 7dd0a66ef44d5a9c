//! A run: lazy until awaited or started, stopped when dropped. And its handle.

use std::{
    fmt,
    future::Future,
    mem,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::{self, Either};
use safepoint_scope::{Code, Reason, Scope, StopAck, StopRequest};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::{
    contract::{extensions::RunValues, log::Log},
    definition::{Definition, answer::AnswerSchema, settings::RunSettings},
    sync::mailbox::Received,
    value::{
        approval::{ApprovalRequest, Ruled},
        event::Events,
        ids::{ApprovalId, CallId, Path, RunId, SteerId},
        receipt::QuietReport,
    },
};

pub(crate) mod attempt;
pub(crate) mod draft;
pub(crate) mod driver;
pub(crate) mod executor;
pub(crate) mod machine;
pub(crate) mod outcome;
pub(crate) mod partials;
mod settings;
pub(crate) mod shared;
pub(crate) mod spans;
pub(crate) mod state;
pub(crate) mod steer;
pub(crate) mod stream;

use self::{
    driver::{Driver, Start},
    outcome::Outcome,
    partials::Partials,
    shared::{DecideError, OfSession, RunMessage, SharedRun},
    steer::{Steer, SteerTicket, SteerWithdrawal},
    stream::RunStream,
};

/// A run: await it for its outcome. Dropping it requests a stop with `Now` and returns; settling continues
/// while the tokio runtime is alive. To keep it running instead, keep its [handle](Run::handle) and
/// [detach](Run::detach) it.
///
/// ```
/// use safepoint::{Agent, Outcome};
/// /// Both at once; if this function is dropped, both stop.
/// async fn both(agent: &Agent) -> (Outcome, Outcome) {
///     let left = agent.run("Read the left half.").start();
///     let right = agent.run("Read the right half.").start();
///     (left.await, right.await)
/// }
/// ```
#[must_use = "a run does nothing before it is awaited or started, and stops when dropped"]
pub struct Run<T = String> {
    shared: Arc<SharedRun>,
    idle: Option<Box<Idle>>,
    outcome: Option<Pin<Box<dyn Future<Output = Outcome> + Send>>>,
    /// Whether dropping it leaves it running.
    is_detached: bool,
    /// The engine settles text; the value is read where the run is awaited.
    decode: Box<dyn Fn(Outcome) -> Outcome<T> + Send>,
    /// The form of its answer, if it has one.
    form: Option<Arc<AnswerSchema>>,
}

/// What is needed to start.
struct Idle {
    def: Arc<Definition>,
    log: Arc<dyn Log>,
    mailbox: Received<RunMessage>,
    start: Start,
    settings: RunSettings,
}

impl Run {
    pub(crate) fn new(
        def: Arc<Definition>,
        (run, path): (RunId, Path),
        log: Arc<dyn Log>,
        start: Start,
    ) -> Self {
        let (shared, mailbox) = SharedRun::new(run, path, &def.limits);
        let form = def.form.clone();
        let idle = Some(Box::new(Idle { def, log, mailbox, start, settings: RunSettings::default() }));
        Self { shared, idle, outcome: None, is_detached: false, decode: Box::new(|outcome| outcome), form }
    }

    /// The same run with the settings of an earlier attempt.
    pub(crate) fn set_as(mut self, before: Option<&Definition>) -> Self {
        if let (Some(idle), Some(before)) = (&mut self.idle, before.and_then(Definition::settings)) {
            idle.settings = before.clone();
        }
        self
    }

    /// The same run, whose outcome is read so.
    pub(crate) fn decoded<T>(mut self, decode: impl Fn(Outcome) -> Outcome<T> + Send + 'static) -> Run<T> {
        // What is left of it is dropped, and stops nothing.
        let is_detached = mem::replace(&mut self.is_detached, true);
        Run {
            shared: Arc::clone(&self.shared),
            idle: self.idle.take(),
            outcome: self.outcome.take(),
            is_detached,
            decode: Box::new(decode),
            form: self.form.take(),
        }
    }
}

impl<T> Run<T> {
    /// Makes the run part of a family before it starts. A stop of `family` reaches it as it would reach a
    /// child run, and its background runs belong to the family (S9.1). Handles taken earlier are useless.
    ///
    /// # Panics
    /// If the run has started.
    pub(crate) fn within(self, family: &Scope) -> Self {
        let (always, closings) = (Arc::clone(&self.shared.tree.always), Arc::default());
        self.within_session(family, (always, closings, None))
    }

    /// Like [`within`](Self::within), with the session's lasting approvals, closed questions and id.
    pub(crate) fn within_session(mut self, family: &Scope, session: OfSession) -> Self {
        let mut idle = self.idle.take().expect("a run is put into a family before it starts");
        (self.shared, idle.mailbox) = self.shared.within(family, session, &idle.def.limits);
        self.idle = Some(idle);
        self
    }

    /// Starts the run without waiting for it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(mut self) -> Self {
        self.begin();
        self
    }

    /// Starts the run and detaches it: it continues when this value is gone, and the handle controls it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn detach(mut self) -> RunHandle {
        self.begin();
        self.is_detached = true;
        self.handle()
    }

    /// The run as one stream: its events, and its outcome as the last item. The run starts when the stream is first
    /// polled, and stops when the stream is dropped, as it does when the run is. To follow a run that continues without its
    /// reader, [detach](Self::detach) it and read the [events](RunHandle::events) of its handle.
    pub fn into_stream(self) -> RunStream<T>
    where
        T: 'static,
    {
        RunStream::new(self.handle().events(), self)
    }

    /// A handle that can stop, observe and await the run.
    #[must_use]
    pub fn handle(&self) -> RunHandle {
        RunHandle { shared: Arc::clone(&self.shared) }
    }

    /// The answer while it arrives, as far as it is certain: see [`Partials`]. Of a run without a type of answers it is its
    /// text, if that is JSON. Taken before the run is awaited; to read it meanwhile, [start](Self::start) the run.
    pub fn partials<P: DeserializeOwned>(&self) -> Partials<P> {
        Partials::new(self.handle().events(), self.form.clone())
    }

    fn begin(&mut self) {
        let Some(idle) = self.idle.take() else { return };
        let Idle { def, log, mailbox, start, settings } = *idle;
        let values = RunValues { given: settings.given.clone(), of_agents: def.context.clone() };
        let def = def.for_attempt(&self.shared.run, settings, &values);
        self.shared.begin(&def.limits, values);
        Driver::new(Arc::clone(&self.shared), def, log, mailbox).spawn(start);
    }
}

impl<T> Future for Run<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        self.begin();
        let shared = Arc::clone(&self.shared);
        let outcome = self.outcome.get_or_insert_with(|| Box::pin(async move { shared.outcome().await }));
        let settled = outcome.as_mut().poll(cx);
        settled.map(|outcome| (self.decode)(outcome))
    }
}

impl<T> Drop for Run<T> {
    fn drop(&mut self) {
        if !self.is_detached && self.shared.outcome_now().is_none() {
            let reason = Reason::new(Code::DISCONNECT).with_text("the run was dropped");
            self.shared.stop.stop(StopRequest::now().with_reason(reason));
            // Never started: it still settles, so that no holder of a handle waits indefinitely.
            if tokio::runtime::Handle::try_current().is_ok() {
                self.begin();
            } else if let Some(idle) = self.idle.take() {
                let Idle { def, log, mailbox, .. } = *idle;
                drop(Driver::new(Arc::clone(&self.shared), def, log, mailbox));
            }
        }
    }
}

impl<T> fmt::Debug for Run<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("run", &self.shared.run).finish_non_exhaustive()
    }
}

/// Stops, observes and awaits a run. Cheap to clone; dropping it does nothing.
///
/// ```
/// use safepoint::{Agent, Reason, StopRequest, secs};
/// async fn for_a_minute(agent: &Agent) {
///     let handle = agent.run("Look for flights.").detach();
///     tokio::time::sleep(std::time::Duration::from_secs(60)).await;
///     handle.stop(StopRequest::graceful(secs(5)).with_reason(Reason::user("enough")));
///     println!("{}", handle.done().await.receipt()); // its end is fixed
///     handle.quiet().await; // and nothing of it is alive
/// }
/// ```
#[derive(Clone)]
pub struct RunHandle {
    shared: Arc<SharedRun>,
}

impl RunHandle {
    /// The handle of a run that has no driver.
    pub(crate) fn of(shared: &Arc<SharedRun>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.shared.run
    }

    /// Asks the run to stop. Never blocks; callable from anywhere, any number of times (S1.9).
    pub fn stop(&self, request: StopRequest) -> StopAck {
        self.shared.stop.stop(request)
    }

    /// Asks one call to stop; the run continues and the model sees the result (S2.10). The stop comes too
    /// late for a call that is over, or whose run is. `None`: this attempt has no such call yet.
    pub fn stop_call(&self, call: &CallId, request: StopRequest) -> Option<StopAck> {
        self.shared.stop_call(call, request)
    }

    /// The first reason given for a stop of the run, whatever became of the stop.
    #[must_use]
    pub fn stop_requested(&self) -> Option<Reason> {
        self.shared.stop.stop_requested()
    }

    /// What of the run is alive, by name: a stop waits for these.
    #[must_use]
    pub fn alive(&self) -> Vec<String> {
        self.shared.alive()
    }

    /// The run's place in its tree; the root's path is empty.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The child runs that this run has begun, including those that have ended. A handle stops one child
    /// alone: the child's call ends as stopped and this run continues (S9.4).
    #[must_use]
    pub fn children(&self) -> Vec<RunHandle> {
        self.shared.children().into_iter().map(|shared| RunHandle { shared }).collect()
    }

    /// The child run at `path`, at any depth below this one; `None` if there is no such run.
    #[must_use]
    pub fn child(&self, path: &Path) -> Option<RunHandle> {
        let below = path.calls().strip_prefix(self.shared.path.calls())?;
        let found = below.iter().try_fold(Arc::clone(&self.shared), |run, call| run.child_at(call))?;
        Some(RunHandle { shared: found })
    }

    /// Whether the outcome is fixed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.shared.outcome_now().is_some()
    }

    /// The outcome. Every caller gets the same one, any number of times.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn done(&self) -> Outcome {
        self.shared.outcome().await
    }

    /// Resolves when nothing of the run is alive, or when the deadline for that has passed (S3.6).
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn quiet(&self) -> QuietReport {
        self.shared.quiet().await
    }

    /// The run's events from the first one; the last is the settlement.
    #[must_use]
    pub fn events(&self) -> Events {
        self.shared.feed.read(0)
    }

    /// The run's events from a position.
    #[must_use]
    pub fn events_from(&self, seq: u64) -> Events {
        self.shared.feed.read(seq)
    }

    /// What arrived after the settlement.
    #[must_use]
    pub fn audit(&self) -> Events {
        self.shared.audit.read(0)
    }

    /// Sends a running run a new message without stopping it (S6.5). Never blocks. The message is used, or
    /// returned.
    pub fn steer(&self, steer: Steer) -> SteerTicket {
        let message = steer.message.clone();
        let (landed, waits) = oneshot::channel();
        let sent = self.shared.send(RunMessage::Steer { steer, landed });
        SteerTicket::new(message, sent.then_some(waits))
    }

    /// The open questions of its whole tree, oldest first, background runs included: each is answered by
    /// [`decide`](Self::decide) while the run lives.
    #[must_use]
    pub fn approvals(&self) -> Vec<ApprovalRequest> {
        self.shared.tree.open()
    }

    /// The background runs that it has begun, at any depth, that are not quiet yet.
    pub(crate) fn background(&self) -> Vec<RunHandle> {
        self.shared.background().into_iter().map(|shared| RunHandle { shared }).collect()
    }

    /// What background runs of a session show once this run's own stream has ended. The stream has no end.
    pub(crate) fn aside(&self) -> Option<Events> {
        self.shared.tree.kept.as_ref().map(|kept| kept.read(0))
    }

    /// Withdraws a steer that was not delivered yet.
    pub(crate) async fn withdraw_steer(&self, steer: &SteerId) -> SteerWithdrawal {
        let (reply, taken) = oneshot::channel();
        if !self.shared.send(RunMessage::WithdrawSteer { steer: steer.clone(), reply }) {
            return SteerWithdrawal::RunEnded;
        }
        taken.await.unwrap_or(SteerWithdrawal::RunEnded)
    }

    /// Answers an open question. The decision may name [who made it](crate::approval::Decision::by). Exactly
    /// one answer is accepted.
    ///
    /// # Errors
    /// [`DecideError`]: the question was already decided, has expired, was withdrawn or is unknown; changed arguments do not
    /// fit, and the question is still open; or the run has ended. A run that is suspended has ended: its session
    /// [decides](crate::SessionHandle::decide), or [`Agent::resume_with`](crate::Agent::resume_with).
    ///
    /// # Cancel safety
    /// The decision may be applied even if the caller no longer waits for the answer.
    pub async fn decide(&self, id: &ApprovalId, ruled: impl Into<Ruled>) -> Result<(), DecideError> {
        if let Some(closed) = self.shared.tree.closings.of(id) {
            return Err(closed);
        }
        let (reply, taken) = oneshot::channel();
        let is_posted = self.shared.put_decision(id, ruled.into(), reply)?;
        let taken = if is_posted {
            taken.await
        } else {
            // A run that is not resumed before the tree settles accepts nothing more.
            // The answer is polled first: a decision that was taken counts, even if the run is done too.
            // Dropping `done` loses nothing.
            match future::select(taken, pin!(self.done())).await {
                Either::Left((taken, _)) => taken,
                Either::Right(_) => return Err(DecideError::RunEnded),
            }
        };
        taken.unwrap_or(Err(DecideError::RunEnded))
    }

    /// Whether a background run that it has begun is still running.
    pub(crate) fn has_background_runs(&self) -> bool {
        !self.shared.background().is_empty()
    }

    /// Whether a live run below waits for this answer.
    pub(crate) fn waits_below(&self, id: &ApprovalId) -> bool {
        self.shared.tree.waits_below(id)
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("run", &self.shared.run).finish_non_exhaustive()
    }
}
