//! Runs one call: its body in its own task, watched by a supervisor that knows its contract (S4).
//!
//! **Invariants**: each supervised call posts exactly one end; a result that existed when the stop arrived is
//! kept; a supervisor never waits for a body beyond its contract.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use jiff::Timestamp;
use safepoint_scope::{
    Actor, Code, Demand, Effect, Label, Permit, Reason, Scope, Stop, StopHandle, StopRequest, Task, TaskEnd,
};
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{
    contract::{
        log::Recorded,
        tool::{OnStop, Tool, ToolContext, ToolResult, ToolSpec},
    },
    definition::secret::Secrets,
    run::spans,
    sync::callback::{self, Guarded},
    value::{
        ids::CallId,
        limits::{Limits, after},
        receipt::{CleanupEnd, CleanupReport},
    },
};

mod approval_clock;
mod board;
mod call_reply;
mod ending;
mod output;
mod status;

pub(crate) use board::{CallBoard, Cleanup};
pub(crate) use call_reply::CallReply;
pub(crate) use ending::{
    CallEnd, answered, done_before, end_unknown, ended_as_run, late, not_begun, stopped_unknown,
};

use approval_clock::ApprovalClock;
use status::{effect_of, failed, status_of};

/// How long "at once" may wait for a dropped body to be gone, before it is reported as still running (S4.3).
const AT_ONCE: Duration = Duration::from_millis(50);

/// The effect of running a tool.
#[derive(Debug)]
pub(crate) enum RunCall {}

impl Effect for RunCall {
    type Announcement = Recorded;
}

/// Everything a supervisor needs.
pub(crate) struct Job {
    pub(crate) permit: Permit<RunCall>,
    /// The call's own stop handle, for its time limit.
    pub(crate) stop: StopHandle,
    pub(crate) tool: Arc<dyn Tool>,
    /// What its body is called among what is alive.
    pub(crate) label: Label,
    pub(crate) cx: ToolContext,
    pub(crate) args: Value,
    pub(crate) board: Arc<CallBoard>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) secrets: Secrets,
    pub(crate) run: Scope,
    pub(crate) started_at: Timestamp,
}

/// Runs a call to its end. `post` gets the end as soon as it is known, and is dropped if the supervisor panics (S2.16);
/// clean-ups of a dropped body follow to `cleaned`.
pub(crate) async fn supervise(
    job: Job,
    post: impl FnOnce(CallEnd) + Send,
    cleaned: impl FnOnce(CallId, Vec<CleanupReport>) + Send,
    late: impl FnOnce(CallId, String) + Send + 'static,
) {
    let tool = Arc::clone(&job.tool);
    let spec = tool.spec();
    let call_id = job.cx.call_id().clone();
    let scope = job.permit.scope().clone();
    let limit = spec.timeout.or(job.limits.call_timeout);
    let body_scope = job.permit.into_scope();
    let mut body = body_scope.spawn(job.label, call_body(&job.tool, &job.cx, job.args));
    let ran = first_way(&mut body, &scope, (limit, &job.board.waits)).await;
    let watch =
        Watch { scope: &scope, limits: &job.limits, spec, body, call_id: &call_id, late: Box::new(late) };
    let mut ending = match ran {
        Some(Ok(result)) => CallEnd::returned(result, scope.reason().filter(|_| scope.is_stopping())),
        Some(Err(_absorbed_here)) => watch.stopped().await,
        None => {
            let reason =
                Reason::new(Code::TIMEOUT).with_actor(Actor::Engine).with_text("its time limit passed");
            job.stop.stop(StopRequest::now().with_reason(reason));
            watch.timed_out(limit.unwrap_or_default()).await
        }
    };
    ending.name_stop(&scope, (&job.run, job.board.ends_with_the_run()));
    ending.name_remote(job.board.see_remote());
    ending.ruled = job.board.take_ruled();
    ending.judge_effect(spec.effect);
    ending.started_at = Some(job.started_at);
    ending.finish(job.board.take_emitted());
    // First: what is cut may be in the middle of a secret, and the whole goes to a file.
    ending = ending.without(&job.secrets);
    ending
        .fit(spec.output_bytes.unwrap_or(job.limits.call_output_bytes), job.limits.cleanup_timeout, &job.run)
        .await;
    spans::end(&tracing::Span::current(), ending.status.as_str(), status_of(ending.status));
    let resolved_at_once =
        ending.stopped_by.is_some() && matches!(spec.on_stop, OnStop::Drop | OnStop::Detach);
    if resolved_at_once {
        ending.name_rows(job.board.take_rows());
        post(ending);
        let reports = clean_up(&scope, &job.board, job.limits.cleanup_timeout).await;
        cleaned(call_id, reports);
    } else {
        ending.cleanups = clean_up(&scope, &job.board, job.limits.cleanup_timeout).await;
        ending.name_rows(job.board.take_rows());
        post(ending);
    }
}

/// The tool's own code runs inside the task from its first line, so that a panic anywhere in it is caught there.
fn call_body(
    tool: &Arc<dyn Tool>,
    cx: &ToolContext,
    args: Value,
) -> impl Future<Output = ToolResult> + Send + 'static {
    let (tool, cx) = (Arc::clone(tool), cx.clone());
    async move { tool.call(cx, args).await }
}

/// Waits for the body, the stop or the time limit, which gives `None`; a body that is ready wins.
async fn first_way(
    body: &mut Task<ToolResult>,
    scope: &Scope,
    (limit, waits): (Option<Duration>, &ApprovalClock),
) -> Option<Result<Result<ToolResult, TaskEnd>, Stop>> {
    let run = scope.run(&mut *body);
    match limit {
        None => Some(run.await),
        Some(limit) => waits.within(limit, run).await,
    }
}

/// A body that must end, and how long it may take.
struct Watch<'a> {
    scope: &'a Scope,
    limits: &'a Limits,
    spec: &'a ToolSpec,
    call_id: &'a CallId,
    body: Task<ToolResult>,
    late: Box<dyn FnOnce(CallId, String) + Send>,
}

/// How a body ended whose time was over. Exhaustive: it returned, it was dropped, or it is still running.
enum BodyOutcome {
    Returned(Result<ToolResult, TaskEnd>),
    Dropped,
    LeftRunning,
}

impl Watch<'_> {
    async fn stopped(self) -> CallEnd {
        let reason = self.scope.reason();
        match self.end().await {
            BodyOutcome::Returned(result) => CallEnd::returned(result, reason),
            BodyOutcome::Dropped => CallEnd::stopped(reason),
            BodyOutcome::LeftRunning => CallEnd::left_running(reason),
        }
    }

    async fn timed_out(self, limit: Duration) -> CallEnd {
        match self.end().await {
            BodyOutcome::Returned(_) | BodyOutcome::Dropped => CallEnd::timed_out(limit),
            BodyOutcome::LeftRunning => CallEnd::timed_out(limit).with_live_body(),
        }
    }

    /// Gives the body the time of its contract, and then drops it, if possible.
    async fn end(mut self) -> BodyOutcome {
        let time = match self.spec.on_stop {
            OnStop::Drop => None,
            OnStop::Detach => {
                self.leave();
                return BodyOutcome::LeftRunning;
            }
            OnStop::Cooperate(time) => Some(time.unwrap_or(self.limits.cleanup_timeout)),
            OnStop::Finish(time) => Some(time.unwrap_or(self.limits.finish_grace)),
        };
        if let Some(time) = time
            && let Some(result) = self.within(time).await
        {
            return BodyOutcome::Returned(result);
        }
        self.drop_body().await
    }

    /// A body that yields is gone at its next poll. One that blocks its thread cannot be dropped: it
    /// continues, and its result is reported as late (S4.8). The wait is short, and only a blocking body uses
    /// all of it.
    async fn drop_body(mut self) -> BodyOutcome {
        if !self.spec.is_blocking {
            self.body.drop_now();
        }
        match timeout(AT_ONCE, &mut self.body).await {
            Ok(Ok(result)) => BodyOutcome::Returned(Ok(result)),
            Ok(Err(_gone)) => BodyOutcome::Dropped,
            Err(_elapsed) => {
                self.leave();
                BodyOutcome::LeftRunning
            }
        }
    }

    async fn within(&mut self, time: Duration) -> Option<Result<ToolResult, TaskEnd>> {
        let began = Instant::now();
        let mut seen: Option<Demand> = self.scope.demand();
        loop {
            let time = time.min(seen.map_or(time, |demand| demand.cleanup_cap));
            let over = pin!(sleep_until(after(began, time)));
            let changed = pin!(self.scope.changed(seen));
            let wait = select(over, changed);
            // The body is polled first: a result that is ready wins over the end of its time and over a stronger demand.
            // `changed` gets the demand seen last, so no change between two rounds is missed.
            match select(&mut self.body, wait).await {
                Either::Left((result, _)) => return Some(result),
                Either::Right((Either::Left(_over), _)) => return None,
                Either::Right((Either::Right((demand, _)), _)) => seen = Some(demand),
            }
        }
    }

    /// Leaves the body running, and has its late result reported.
    fn leave(self) {
        let Watch { scope, body, late, call_id, .. } = self;
        let call_id = call_id.clone();
        let ended = scope.spawn("a call that was left running", async move {
            let result = body.await;
            late(call_id, status::describe(&result));
        });
        drop(ended);
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
