//! Runs one call in one task: its body, what the stop's contract does to it, and its end (S4).
//!
//! A body that blocks its thread keeps that task from doing anything, so a second one, the [watch], is begun where a body must
//! end: by the driver when a stop is known and the call's task has not ended it in [`AT_ONCE`], and from the start where the
//! call has a time limit. Whichever of the two holds the call's one [`Claim`] ends it.
//!
//! **Invariants**: each call posts exactly one end; a result that existed when the stop arrived is kept; nothing waits for a
//! body beyond its contract.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    thread,
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::future::{Either, FutureExt as _, select};
use jiff::Timestamp;
use safepoint_scope::{Effect, Permit, Scope, StopHandle, TaskEnd};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tracing::Span;

use crate::{
    contract::{
        log::Recorded,
        tool::{OnStop, Tool, ToolContext, ToolResult},
    },
    definition::secret::Secrets,
    run::spans,
    sync::callback::{self, Guarded},
    value::{
        limits::Limits,
        receipt::{CleanupEnd, CleanupReport},
    },
};

mod approval_clock;
mod board;
mod body;
mod call_reply;
mod ending;
mod output;
mod result_hooks;
mod status;
mod watch;

pub(crate) use board::{CallBoard, Cleanup};
pub(crate) use call_reply::CallReply;
pub(crate) use ending::{
    CallEnd, answered, done_before, end_unknown, ended_as_run, late, not_begun, stopped_unknown,
};
pub(crate) use result_hooks::ResultHooks;
pub(crate) use watch::watch;

use approval_clock::ApprovalClock;
use body::Body;
use status::{effect_of, failed, status_of};

/// How long "at once" may wait for a body to be gone, before it is reported as still running (S4.3).
pub(crate) const AT_ONCE: Duration = Duration::from_millis(50);

/// The effect of running a tool.
#[derive(Debug)]
pub(crate) enum RunCall {}

impl Effect for RunCall {
    type Announcement = Recorded;
}

/// Where the end of a call goes, and what follows it.
pub(crate) trait Mail: Send + Sync + 'static {
    /// The call is over.
    fn ended(&self, ending: Box<CallEnd>);
    /// The clean-ups of a call that was over at once are done.
    fn cleaned(&self, cleanups: Vec<CleanupReport>);
    /// A body that was left running has ended.
    fn late(&self, what: String);
}

/// A call that runs, for its task and for its watch.
pub(crate) struct RunningCall<M> {
    pub(crate) scope: Scope,
    /// The call's own stop handle, for its time limit.
    pub(crate) stop: StopHandle,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) board: Arc<CallBoard>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) secrets: Secrets,
    /// The hooks that see its result first.
    pub(crate) hooks: Option<ResultHooks>,
    pub(crate) run: Scope,
    pub(crate) started_at: Timestamp,
    pub(crate) span: Span,
    pub(crate) mail: M,
}

/// The right to end a call. There is one, so a call has one end.
#[must_use = "the call has no end if this is dropped"]
pub(crate) struct Claim<M: Mail> {
    call: Arc<RunningCall<M>>,
    is_spent: bool,
}

/// How a body ended. Exhaustive: it returned, it was dropped, or it is still running.
enum BodyOutcome {
    Returned(Result<ToolResult, TaskEnd>),
    Dropped,
    LeftRunning,
}

/// Runs a call to its end, and posts that, unless its watch has ended it.
///
/// # Cancel safety
/// Dropped, as its runtime goes, it posts nothing.
pub(crate) async fn perform<M: Mail>(
    permit: Permit<RunCall>,
    call: Arc<RunningCall<M>>,
    (cx, args): (ToolContext, Value),
) {
    let _unwatched = Unwatched(&call);
    let scope = permit.into_scope();
    let mut body = Body::begin(&call.tool, cx, args);
    let (outcome, limit) = match until_stopped(&mut body, &scope).await {
        // A result that came together with the time limit is a result.
        Some(result @ Ok(Ok(_))) => (BodyOutcome::Returned(result), None),
        Some(result) => (BodyOutcome::Returned(result), call.board.time_passed()),
        None => (call.end_body(&mut body).await, call.board.time_passed()),
    };
    let is_left = matches!(outcome, BodyOutcome::LeftRunning);
    match call.claim() {
        None => call.report_late(outcome, &mut body).await,
        Some(claim) => {
            let end = claim.end(Box::new(call.ending(outcome, limit)));
            if is_left {
                // In another task, since the body may block this one from its next poll on.
                drop(call.run.spawn("the end of a call that was left running", end));
                call.report_late(BodyOutcome::LeftRunning, &mut body).await;
            } else {
                end.await;
            }
        }
    }
}

/// Waits for the body, or for the stop, which gives `None`. A stop that is there is seen first: the body is then polled by its
/// contract alone.
async fn until_stopped(body: &mut Body, scope: &Scope) -> Option<Result<ToolResult, TaskEnd>> {
    let mut stopped = pin!(scope.stopped());
    poll_fn(|cx| {
        if scope.stopping().is_some() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut *body).poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            // Registers for the stop, and looks once more: one that came during the body's poll is not missed.
            Poll::Pending => stopped.as_mut().poll(cx).map(|_absorbed_by_the_contract| None),
        }
    })
    .await
}

impl<M: Mail> RunningCall<M> {
    /// The time limit of the call, if it has one.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.tool.spec().timeout.or(self.limits.call_timeout)
    }

    /// How long the body may continue after a stop; `None`: nothing waits for it.
    pub(crate) fn time_to_end(&self) -> Option<Duration> {
        match self.tool.spec().on_stop {
            OnStop::Detach => None,
            OnStop::Drop => Some(Duration::ZERO),
            OnStop::Cooperate(time) => Some(time.unwrap_or(self.limits.cleanup_timeout)),
            OnStop::Finish(time) => Some(time.unwrap_or(self.limits.finish_grace)),
        }
    }

    /// Takes the right to end the call. Only the first gets it.
    fn claim(self: &Arc<Self>) -> Option<Claim<M>> {
        self.board.claim().then(|| Claim { call: Arc::clone(self), is_spent: false })
    }

    /// Gives the body the time of its contract, and then drops it, if possible. A body on a separate thread cannot be dropped:
    /// it continues, and its result is reported as late (S4.8).
    async fn end_body(&self, body: &mut Body) -> BodyOutcome {
        let Some(time) = self.time_to_end() else {
            // A result that is there already is kept (S4.5).
            return body.now_or_never().map_or(BodyOutcome::LeftRunning, BodyOutcome::Returned);
        };
        if self.tool.spec().on_stop != OnStop::Drop {
            let over = pin!(watch::over(&self.scope, Instant::now(), time));
            // The body is polled first: a result that is ready wins over the end of its time.
            if let Either::Left((result, _)) = select(&mut *body, over).await {
                return BodyOutcome::Returned(result);
            }
        }
        if !self.tool.spec().is_blocking {
            body.drop_now();
            return BodyOutcome::Dropped;
        }
        match timeout(AT_ONCE, body).await {
            Ok(Ok(result)) => BodyOutcome::Returned(Ok(result)),
            Ok(Err(_gone)) => BodyOutcome::Dropped,
            Err(_elapsed) => BodyOutcome::LeftRunning,
        }
    }

    /// What the body's end makes of the call, whose time limit may have passed.
    fn ending(&self, outcome: BodyOutcome, limit: Option<Duration>) -> CallEnd {
        let reason = if self.scope.is_stopping() { self.scope.reason() } else { None };
        match (limit, outcome) {
            (None, BodyOutcome::Returned(result)) => CallEnd::returned(result, reason),
            (None, BodyOutcome::Dropped) => CallEnd::stopped(reason),
            (None, BodyOutcome::LeftRunning) => CallEnd::left_running(reason),
            (Some(limit), BodyOutcome::Returned(_) | BodyOutcome::Dropped) => CallEnd::timed_out(limit),
            (Some(limit), BodyOutcome::LeftRunning) => CallEnd::timed_out(limit).with_live_body(),
        }
    }

    /// Reports the end of a body whose call was over before, when it comes.
    async fn report_late(&self, outcome: BodyOutcome, body: &mut Body) {
        let result = match outcome {
            BodyOutcome::Returned(result) => result,
            BodyOutcome::Dropped => Err(TaskEnd::Dropped),
            BodyOutcome::LeftRunning => body.await,
        };
        // No hook has seen its words, so the audit does not have them.
        self.mail.late(status::describe(&result, self.hooks.is_none()));
    }
}

impl<M: Mail> Claim<M> {
    /// Completes the end and posts it. What a stop has ended at once is posted before its clean-ups, which follow.
    async fn end(mut self, mut ending: Box<CallEnd>) {
        let call = Arc::clone(&self.call);
        let spec = call.tool.spec();
        ending.name_stop(&call.scope, (&call.run, call.board.ends_with_the_run()));
        ending.name_remote(call.board.see_remote());
        ending.ruled = call.board.take_ruled();
        ending.judge_effect(spec.effect);
        ending.started_at = Some(call.started_at);
        ending.finish(call.board.take_emitted());
        // First: what is cut may be in the middle of a secret, and the whole goes to a file.
        ending.clean(&call.secrets);
        if let Some(hooks) = &call.hooks {
            Box::pin(hooks.check(&mut ending)).await;
        }
        ending
            .fit(
                spec.output_bytes.unwrap_or(call.limits.call_output_bytes),
                call.limits.cleanup_timeout,
                &call.run,
            )
            .await;
        let status = status_of(ending.status);
        spans::end_tool_call(&call.span, ending.status.as_str(), status, ending.effect);
        let resolved_at_once =
            ending.stopped_by.is_some() && matches!(spec.on_stop, OnStop::Drop | OnStop::Detach);
        if resolved_at_once {
            self.post(ending);
            let reports = clean_up(&call.scope, &call.board, call.limits.cleanup_timeout).await;
            call.mail.cleaned(reports);
        } else {
            ending.cleanups = clean_up(&call.scope, &call.board, call.limits.cleanup_timeout).await;
            self.post(ending);
        }
    }

    fn post(&mut self, mut ending: Box<CallEnd>) {
        ending.name_rows(self.call.board.take_rows());
        self.is_spent = true;
        self.call.mail.ended(ending);
    }
}

impl<M: Mail> Drop for Claim<M> {
    /// A panic on the way to the end is an end too (S2.16).
    fn drop(&mut self) {
        if !self.is_spent && thread::panicking() {
            self.call.mail.ended(Box::new(CallEnd::unwatched()));
        }
    }
}

/// Ends the call as one whose end was not seen, if the task that holds this panics before anything ends it (S2.16).
struct Unwatched<'a, M: Mail>(&'a Arc<RunningCall<M>>);

impl<M: Mail> Drop for Unwatched<'_, M> {
    fn drop(&mut self) {
        if thread::panicking() {
            drop(self.0.claim());
        }
    }
}

/// Last in, first out; a clean-up that fails or hangs does not skip the others (S4.12).
async fn clean_up(scope: &Scope, board: &CallBoard, each: Duration) -> Vec<CleanupReport> {
    let mut reports = Vec::new();
    let began = Instant::now();
    for cleanup in board.take_cleanups().into_iter().rev() {
        reports.push(clean(scope, cleanup, each, began).await);
    }
    reports
}

/// Runs a clean-up; together with others that began at `began` it has no more time than the stop allows.
pub(crate) async fn clean(
    scope: &Scope,
    (label, work): Cleanup,
    each: Duration,
    began: Instant,
) -> CleanupReport {
    let cap = scope.demand().filter(|_| scope.is_stopping()).map(|demand| demand.cleanup_cap);
    let left = cap.map_or(each, |cap| each.min(cap.saturating_sub(began.elapsed())));
    let work = callback::run(work);
    let end = if left.is_zero() { CleanupEnd::TimedOut } else { bounded(scope, &label, work, left).await };
    CleanupReport { label, end }
}

async fn bounded(
    scope: &Scope,
    label: &str,
    work: Guarded<BoxFuture<'static, ()>>,
    left: Duration,
) -> CleanupEnd {
    let mut task = scope.spawn(format!("clean-up {label}"), work);
    match timeout(left, &mut task).await {
        Ok(Ok(Ok(()))) => CleanupEnd::Ran,
        Ok(Ok(Err(_)) | Err(_)) => CleanupEnd::Failed,
        Err(_elapsed) => {
            task.dropper().drop_now();
            CleanupEnd::TimedOut
        }
    }
}
