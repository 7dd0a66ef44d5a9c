//! What a tool is: its schema, its declared effect, its contract for a stop, and what its body may request.

use std::{future::Future, sync::Arc};

use futures_core::future::BoxFuture;
use safepoint_scope::{Actor, Code, Failure, Halt, QuietGuard, Reason, Scope, Stop, StopAck, StopRequest};
use serde_json::Value;
use tokio::sync::oneshot;

use super::extensions::RunValues;
use crate::value::{
    approval::Decision,
    history::Earlier,
    ids::CallId,
    receipt::{ProcessReport, RemoteReport},
};

mod args;
mod asks;
mod from_fn;
mod from_spec;
mod into_output;
mod into_tool;
mod output;
mod spec;
#[cfg(feature = "schema")]
mod typed;

pub use crate::value::effect::EffectClass;
#[cfg(feature = "schema")]
pub use args::ToolArgs;
pub use asks::Asks;
pub use from_fn::FnTool;
#[cfg(feature = "schema")]
pub use from_fn::{from_blocking_fn, from_fn, from_fn_with_state};
pub use from_spec::from_spec;
pub use into_output::{IntoOutput, Json};
pub use into_tool::{IntoTool, Tools};
pub use output::{FullOutput, Output};
pub use spec::{Concurrency, OnStop, OnToolFailure, ToolSpec};
#[cfg(feature = "schema")]
pub use typed::TypedTool;

/// What a tool's body returns: its output, or a [`Halt`] that keeps a stop and a failure apart.
///
/// ```
/// use safepoint::{Halt, ToolResult};
/// fn line(text: &str, number: usize) -> ToolResult<String> {
///     let line = text.lines().nth(number).ok_or_else(|| format!("there is no line {number}"))?;
///     Ok(line.to_owned())
/// }
/// # let failed: Halt = line("one", 2).unwrap_err();
/// ```
pub type ToolResult<T = Output> = Result<T, Halt>;

/// Something that a model can call, whose schema may be known only at run time. Most tools are simpler to write with
/// [`#[safepoint::tool]`](macro@crate::tool), [`from_fn`] or [`TypedTool`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `Tool`",
    label = "not a `Tool`",
    note = "`AgentBuilder::tool` takes it as it is where it is a `TypedTool` or an `async fn` under `#[safepoint::tool]`",
    note = "where an `Arc<dyn Tool>` is needed, `Tools::new().tool(..)` makes one of each"
)]
pub trait Tool: Send + Sync + 'static {
    /// What it is; the same for its whole life.
    fn spec(&self) -> &ToolSpec;

    /// Runs the call. `args` match the schema of the spec.
    ///
    /// # Cancel safety
    /// As the spec's [`OnStop`] says: under `Drop` the future is dropped at an await; under the others it
    /// sees the stop through `cx` and has time first.
    fn call(&self, cx: ToolContext, args: Value) -> BoxFuture<'static, ToolResult>;
}

/// A call's context, through which it sees its stop, reports and asks. Cheap to clone, useless after its call
/// has ended.
///
/// ```
/// use std::time::Duration;
/// use safepoint::{ToolContext, ToolResult};
/// async fn build(cx: ToolContext) -> ToolResult<&'static str> {
///     for step in 1..=3 {
///         cx.progress(format!("step {step} of 3"));
///         cx.run(tokio::time::sleep(Duration::from_secs(1))).await?; // a stop leaves here
///     }
///     Ok("built")
/// }
/// ```
#[derive(Clone)]
pub struct ToolContext {
    scope: Scope,
    call: Arc<CallSite>,
    host: Arc<dyn Host>,
}

/// Which call this is.
#[derive(Debug)]
pub(crate) struct CallSite {
    pub(crate) id: CallId,
    pub(crate) name: String,
    pub(crate) key: String,
    /// The remote agent's name for the work in an earlier attempt.
    pub(crate) named: Option<String>,
    /// The earlier conversation, if the call's work is the whole run's.
    pub(crate) earlier: Vec<Earlier>,
    /// The run's context.
    pub(crate) values: RunValues,
}

/// The engine behind the [`ToolContext`] of one call.
pub(crate) trait Host: Send + Sync {
    fn progress(&self, text: String);
    /// Shows a person what they should know while the call runs, and keeps it as progress.
    fn notice(&self, text: String);
    /// Appends to the answer that the call will return: shown as text of the run if the call's work is the whole
    /// run's, otherwise as progress. The answer is kept there and nowhere else. False if the call has ended, so that
    /// the text is neither kept nor shown.
    #[must_use = "what is not kept does not count as part of the answer"]
    fn add_text(&self, text: &str) -> bool;
    /// All of a remote agent's answer was sent as text, in whatever order: it is not shown again.
    fn answer_is_shown(&self);
    /// The answer, as the remote agent sent it as a whole; `None` if it is the text sent so far.
    fn answer(&self, whole: Option<String>) -> String;
    fn keep(&self, output: Output);
    fn on_cleanup(&self, label: String, work: BoxFuture<'static, ()>);
    fn report_process(&self, process: ProcessReport);
    fn report_remote(&self, remote: RemoteReport);
    /// Records the remote agent's name for the work, so that a later attempt asks for it instead of beginning it
    /// again. Resolves once it is recorded, or cannot be.
    fn name_work(&self, task: String) -> oneshot::Receiver<()>;
    fn late(&self, what: String);
    fn ask(&self, asks: Asks) -> oneshot::Receiver<Decision>;
    fn withdraw(&self);
    /// The most bytes that a remote agent may send about the call's work.
    fn output_bytes(&self) -> usize;
    fn stop_run(&self, request: StopRequest) -> StopAck;
    /// Ends the call by the run's stop, even if that waits for a safe point: the call has none, and its end is one.
    fn end_with_the_run(&self);
    /// The names of what policy has denied the call so far.
    fn denied(&self) -> Vec<String>;
}

impl ToolContext {
    pub(crate) fn new(scope: Scope, call: CallSite, host: Arc<dyn Host>) -> Self {
        Self { scope, call: Arc::new(call), host }
    }

    /// The call's id.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call.id
    }

    /// The tool's name as the model called it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.call.name
    }

    /// The same for every try of this call, also after a restart: hand it to services that take one.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.call.key
    }

    /// The value of this type in the run's context: given to the run with [`Run::with`](crate::Run::with), to a run above
    /// it, or to the agent with [`AgentBuilder::with`](crate::AgentBuilder::with).
    ///
    /// ```
    /// # use safepoint::{ToolContext, ToolResult};
    /// struct Db { rows: Vec<String> }
    ///
    /// async fn count(cx: &ToolContext) -> ToolResult<usize> {
    ///     Ok(cx.get::<Db>()?.rows.len())
    /// }
    /// ```
    ///
    /// # Errors
    /// A failure that names the type and says how to give one, if there is none. Nothing was done.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<&T, Failure> {
        self.call.values.get()
    }

    /// The call's scope, for code that nests scopes.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Runs `work`, or ends with the stop if this call must end now. A `work` that is ready wins.
    ///
    /// # Errors
    /// The [`Stop`], to be passed on with `?`.
    ///
    /// # Cancel safety
    /// `work` is dropped when the call is stopped or this future is dropped.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Stop> {
        self.scope.run(work).await
    }

    /// Whether this call must end now: an atomic load or two, for loops that block. A stop that leaves the call its time is
    /// [`is_stop_requested`](Self::is_stop_requested) before that.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.scope.is_stopping()
    }

    /// Whether a stop was requested that reaches this call, also one that waits for a safe point: a call that may end early
    /// with a part of its result does so here.
    ///
    /// Under [`StopRequest::graceful`] a running call may continue until the grace ends; only then it
    /// [must end](Self::is_stopping). A call that returns before is a safe point, so the run stops there.
    ///
    /// ```
    /// # use safepoint::{ToolContext, ToolResult};
    /// async fn audit(cx: &ToolContext, invoices: u32) -> ToolResult<String> {
    ///     for done in 0..invoices {
    ///         if cx.is_stop_requested() {
    ///             return Ok(format!("stopped early: {done} of {invoices} invoices are fine"));
    ///         }
    ///         cx.run(tokio::time::sleep(std::time::Duration::from_secs(1))).await?;
    ///     }
    ///     Ok(format!("all {invoices} invoices are fine"))
    /// }
    /// ```
    #[must_use]
    pub fn is_stop_requested(&self) -> bool {
        self.scope.demand().is_some()
    }

    /// Waits until a stop is requested that reaches this call, also one that waits for a safe point; see
    /// [`is_stop_requested`](Self::is_stop_requested).
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn stop_requested(&self) {
        self.scope.changed(None).await;
    }

    /// Waits until this call must end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn stopped(&self) -> Stop {
        self.scope.stopped().await
    }

    /// Reports what has been done so far. Kept, within the output budget, if the call is stopped or times
    /// out.
    pub fn progress(&self, text: impl Into<String>) {
        self.host.progress(text.into());
    }

    /// What only the engine's own tools may do with the run.
    pub(crate) fn host(&self) -> &dyn Host {
        &*self.host
    }

    /// The earlier conversation, if the call's work is the whole run's.
    pub(crate) fn earlier(&self) -> Vec<Earlier> {
        self.call.earlier.clone()
    }

    /// Sets what is kept of the call if it ends without a result (stopped, timed out, left running), in place
    /// of the progress: for work whose last words matter as much as its first. The last call counts.
    pub fn set_partial_output(&self, output: impl Into<Output>) {
        self.host.keep(output.into());
    }

    /// Registers work to run when this call ends, however it ends: last in, first out, each bounded (S4.12).
    /// Work registered while the others are running starts at once, and is in the receipt as they are.
    pub fn on_cleanup(&self, label: impl Into<String>, work: impl Future<Output = ()> + Send + 'static) {
        self.host.on_cleanup(label.into(), Box::pin(work));
    }

    /// Puts a process that this call started into the receipt.
    pub fn report_process(&self, process: ProcessReport) {
        self.host.report_process(process);
    }

    /// Adds the remote agent of this call's work, and what is known of it, to the receipt. The last call
    /// counts.
    pub fn report_remote(&self, remote: RemoteReport) {
        self.host.report_remote(remote);
    }

    /// The remote agent's name for the work in an earlier attempt.
    pub(crate) fn remote_task(&self) -> Option<&str> {
        self.call.named.as_deref()
    }

    /// Stops the run because a remote agent sent more than it may, and returns the message.
    pub(crate) fn said_too_much(&self, peer: &str) -> String {
        let why = format!("{peer} said more than {} bytes", self.host.output_bytes());
        let reason = Reason::new(Code::OUTPUT_BYTES).with_actor(Actor::Engine).with_text(why.clone());
        // Whatever was requested before, the run stops.
        self.stop_run(StopRequest::now().with_reason(reason));
        why
    }

    /// Reports to the audit what came of this call after its end, such as the answer of a server that was no
    /// longer waited for (S3.5). It changes nothing else, and does nothing once the run is quiet.
    pub fn report_late(&self, what: impl Into<String>) {
        self.host.late(what.into());
    }

    /// Asks a person, while the call runs, whether something may be done: `tool` and `args` say what. The
    /// agent's rules apply first, and its [`ApprovalMode`](crate::approval::ApprovalMode) decides who is
    /// asked. The question is recorded, expires, and takes exactly one answer, like any other (S8.2). Without
    /// an approver it is denied, or stays open until a decision arrives from outside, while the call waits.
    /// That wait is not call time.
    ///
    /// # Errors
    /// The [`Stop`]: the question is then withdrawn.
    ///
    /// # Cancel safety
    /// Dropping this withdraws the question.
    pub async fn ask(&self, tool: impl Into<String>, args: Value) -> Result<Decision, Stop> {
        self.put(Asks::about(tool, args)).await
    }

    /// Like [`ask`](Self::ask), for a question with more details.
    ///
    /// # Errors
    /// As [`ToolContext::ask`].
    ///
    /// # Cancel safety
    /// As [`ToolContext::ask`].
    pub async fn put(&self, asks: Asks) -> Result<Decision, Stop> {
        let mut question = PendingAsk { host: Arc::clone(&self.host), answer: self.host.ask(asks) };
        let answer = self.scope.run(&mut question.answer).await?;
        Ok(answer.unwrap_or_else(|_withdrawn| Decision::Deny { message: WITHDRAWN.into() }))
    }

    /// Requests a stop of the whole run. This call continues until its own contract ends it. Without a reason
    /// the stop has the tool's: [`Code::TOOL`], by the tool of this name.
    pub fn stop_run(&self, request: StopRequest) -> StopAck {
        let by_tool = || Reason::new(Code::TOOL).with_actor(Actor::Tool(self.name().to_owned()));
        let has_reason = request.reason().is_some();
        self.host.stop_run(if has_reason { request } else { request.with_reason(by_tool()) })
    }

    /// Keeps the run from being quiet until the guard is dropped: for things that outlive the call's future.
    #[must_use = "the run may be called quiet as soon as this is dropped"]
    pub fn delay_quiet(&self, label: impl Into<String>) -> QuietGuard {
        self.scope.hold(label.into())
    }
}

/// The error for a question that can no longer be answered.
const WITHDRAWN: &str = "the approval was withdrawn";

/// An open question, withdrawn when this is dropped.
struct PendingAsk {
    host: Arc<dyn Host>,
    answer: oneshot::Receiver<Decision>,
}

impl Drop for PendingAsk {
    fn drop(&mut self) {
        self.answer.close();
        self.host.withdraw();
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext").field("call", &self.call).finish_non_exhaustive()
    }
}

/// A tool behind a shared pointer is a tool.
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> &ToolSpec {
        (**self).spec()
    }
    fn call(&self, cx: ToolContext, args: Value) -> BoxFuture<'static, ToolResult> {
        (**self).call(cx, args)
    }
}
