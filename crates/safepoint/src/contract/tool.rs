//! What a tool is: its schema, its honest effect, its contract for a stop, and what its body may ask for.

use std::{future::Future, sync::Arc};

use futures_core::future::BoxFuture;
use safepoint_scope::{Actor, Code, Halt, QuietGuard, Reason, Scope, Stop, StopAck, StopRequest};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    contract::approver::ToolApproval,
    value::{
        approval::Decision,
        history::Earlier,
        ids::CallId,
        receipt::{ProcessReport, RemoteReport},
    },
};

mod asks;
mod from_fn;
mod output;
mod spec;

pub use crate::value::effect::EffectClass;
pub use asks::Asks;
pub(crate) use asks::Unruled;
pub use from_fn::{FnTool, from_blocking_fn, from_fn};
pub use output::{FullOutput, Output};
pub use spec::{Concurrency, OnStop, OnToolFailure, ToolSpec};

/// What a tool's body returns: its output, or a [`Halt`] that keeps a stop and a failure apart.
pub type ToolResult<T = Output> = Result<T, Halt>;

/// Something that a model can ask for.
pub trait Tool: Send + Sync + 'static {
    /// What it is; the same for its whole life.
    fn spec(&self) -> &ToolSpec;

    /// Does it. `args` fit the schema of the spec.
    ///
    /// # Cancel safety
    /// As the spec's [`OnStop`] says: under `Drop` the future is dropped at an await; under the others it is told
    /// through `cx` and given time first.
    fn call(&self, cx: ToolContext, args: Value) -> BoxFuture<'static, ToolResult>;
}

/// A call's context: it may see its stop, report, and ask; cheap to clone, useless after its call has ended.
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
    /// What the peer that does the work called it in an earlier attempt.
    pub(crate) named: Option<String>,
    /// What was said before in the conversation, where the call's work is the whole run's.
    pub(crate) earlier: Vec<Earlier>,
}

/// The engine behind a [`ToolContext`].
pub(crate) trait Host: Send + Sync {
    fn progress(&self, call: &CallId, text: String);
    fn notice(&self, call: &CallId, text: String);
    /// Whether it is kept: false once the call has ended.
    fn said(&self, call: &CallId, text: &str) -> bool;
    /// All of the answer was said, in whatever order.
    fn said_all(&self);
    /// The answer, as the peer gives it whole; none where it is what was said of it.
    fn answer(&self, whole: Option<String>) -> String;
    fn keep(&self, output: Output);
    fn on_cleanup(&self, call: &CallId, label: String, work: BoxFuture<'static, ()>);
    fn report_process(&self, call: &CallId, process: ProcessReport);
    fn report_remote(&self, call: &CallId, remote: RemoteReport);
    fn named(&self, call: &CallId, task: String) -> oneshot::Receiver<()>;
    fn late(&self, call: &CallId, what: String);
    fn ask(&self, call: &CallId, asks: Asks) -> oneshot::Receiver<Decision>;
    fn withdraw(&self);
    /// The most bytes that a peer may say about the call's work.
    fn output_bytes(&self) -> usize;
    fn stop_run(&self, request: StopRequest) -> StopAck;
    fn end_with_the_run(&self, call: &CallId);
    /// What policy has denied the call so far, by name.
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

    /// The call's scope, for code that nests scopes of its own.
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

    /// Whether this call must end now: an atomic load or two, for loops that block.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.scope.is_stopping()
    }

    /// Waits until this call must end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn stopped(&self) -> Stop {
        self.scope.stopped().await
    }

    /// Tells what has been done so far. Kept, within the output budget, if the call is stopped or times out.
    pub fn progress(&self, text: impl Into<String>) {
        self.host.progress(&self.call.id, text.into());
    }

    /// Tells a person what they should know while the call runs, and keeps it as progress.
    pub(crate) fn notice(&self, text: String) {
        self.host.notice(&self.call.id, text);
    }

    /// What policy has denied the call so far, by name.
    pub(crate) fn denied_by_policy(&self) -> Vec<String> {
        self.host.denied()
    }

    /// What was said before in the conversation, where the call's work is the whole run's.
    pub(crate) fn earlier(&self) -> Vec<Earlier> {
        self.call.earlier.clone()
    }

    /// Tells more of the answer that the call will come to, as it comes: the text of the run where the call's work is the
    /// whole run's, progress where it is not. It is kept there, and nowhere else; false where the call has ended, so that it is
    /// neither kept nor shown.
    #[must_use = "what is not kept does not count as that"]
    pub(crate) fn say(&self, text: &str) -> bool {
        self.host.said(&self.call.id, text)
    }

    /// All of the answer of a peer was said as it came, in whatever order: nobody is shown it again.
    pub(crate) fn said_all(&self) {
        self.host.said_all();
    }

    /// The answer of a peer, as it gave it whole; none where it is what was said of it as it came.
    pub(crate) fn answer(&self, whole: Option<String>) -> String {
        self.host.answer(whole)
    }

    /// Says what is kept of the call if it ends without a result (stopped, timed out, left running), in place of the
    /// progress told so far: for work whose last words matter as much as its first. The last one counts.
    pub fn set_partial_output(&self, output: impl Into<Output>) {
        self.host.keep(output.into());
    }

    /// Registers work to be done when this call ends, however it ends: last in, first out, each bounded (S4.12). What is
    /// registered when those run already is done at once, and stands in the receipt as they do.
    pub fn on_cleanup(&self, label: impl Into<String>, work: impl Future<Output = ()> + Send + 'static) {
        self.host.on_cleanup(&self.call.id, label.into(), Box::pin(work));
    }

    /// Puts a process that this call started into the receipt.
    pub fn report_process(&self, process: ProcessReport) {
        self.host.report_process(&self.call.id, process);
    }

    /// Puts who does this call's work elsewhere, and what is known of it, into the receipt. The last one counts.
    pub fn report_remote(&self, remote: RemoteReport) {
        self.host.report_remote(&self.call.id, remote);
    }

    /// What the peer that does the work called it in an earlier attempt.
    pub(crate) fn remote_task(&self) -> Option<&str> {
        self.call.named.as_deref()
    }

    /// Stops the run because a peer says more about the work than it may; what is said of that.
    pub(crate) fn said_too_much(&self, peer: &str) -> String {
        let why = format!("{peer} said more than {} bytes", self.host.output_bytes());
        let reason = Reason::new(Code::OUTPUT_BYTES).with_actor(Actor::Engine).with_text(why.clone());
        // Whatever was asked before, the run stops.
        self.stop_run(StopRequest::now().with_reason(reason));
        why
    }

    /// The most bytes that a peer may say about the work.
    pub(crate) fn output_bytes(&self) -> usize {
        self.host.output_bytes()
    }

    /// Has what the peer calls the work recorded, so that a later attempt asks for it instead of beginning it again. Resolves
    /// once it is, or cannot be.
    pub(crate) fn name_work(&self, task: String) -> oneshot::Receiver<()> {
        self.host.named(&self.call.id, task)
    }

    /// Tells the audit what came of this call after its end, such as the answer of a server that was not waited for any
    /// more (S3.5). It changes nothing else, and is nothing once the run is quiet.
    pub fn report_late(&self, what: impl Into<String>) {
        self.host.late(&self.call.id, what.into());
    }

    /// Asks a person, while the call runs, whether something may be done: `tool` and `args` say what. The agent's rules
    /// speak first, and its [`ApprovalMode`](crate::approval::ApprovalMode) mode decides who is asked; the question is
    /// recorded, expires, and takes exactly one answer, as any (S8.2). Where nobody can be asked it is denied, or
    /// stands open until somebody decides from outside, while the call waits. That wait is no call time.
    ///
    /// # Errors
    /// The [`Stop`]: the question is then taken back.
    ///
    /// # Cancel safety
    /// Dropping this takes the question back.
    pub async fn ask(&self, tool: impl Into<String>, args: Value) -> Result<Decision, Stop> {
        self.put(Asks::about(tool, args)).await
    }

    /// The same for a question of which more is to be said than what it is about.
    ///
    /// # Errors
    /// As [`ToolContext::ask`].
    ///
    /// # Cancel safety
    /// As [`ToolContext::ask`].
    pub async fn put(&self, asks: Asks) -> Result<Decision, Stop> {
        let mut question =
            Asking { host: Arc::clone(&self.host), answer: self.host.ask(&self.call.id, asks) };
        let answer = self.scope.run(&mut question.answer).await?;
        Ok(answer.unwrap_or_else(|_withdrawn| Decision::Deny { message: TAKEN_BACK.into() }))
    }

    /// Asks that the whole run stop. It is an ask: this call goes on until its own contract ends it. Without a reason it is
    /// the tool's own: [`Code::TOOL`], by the tool of this name.
    pub fn stop_run(&self, request: StopRequest) -> StopAck {
        let request = match request.reason() {
            Some(_) => request,
            None => {
                request.with_reason(Reason::new(Code::TOOL).with_actor(Actor::Tool(self.name().to_owned())))
            }
        };
        self.host.stop_run(request)
    }

    /// Ends the call by the run's stop, also where that waits for a safe point: the call knows none, and its end is one.
    pub(crate) fn end_with_the_run(&self) {
        self.host.end_with_the_run(&self.call.id);
    }

    /// Keeps the run from being quiet until the guard is dropped: for things that outlive the call's future.
    #[must_use = "the run may be called quiet as soon as this is dropped"]
    pub fn delay_quiet(&self, label: impl Into<String>) -> QuietGuard {
        self.scope.hold(label.into())
    }
}

/// What is told of a question that nobody can answer any more.
const TAKEN_BACK: &str = "the question was taken back";

/// An open question, taken back when this is dropped.
struct Asking {
    host: Arc<dyn Host>,
    answer: oneshot::Receiver<Decision>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.answer.close();
        self.host.withdraw();
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx").field("call", &self.call).finish_non_exhaustive()
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

/// Where no rule of the agent speaks, this is the tool's own word.
impl ToolSpec {
    /// Whether its calls are put to a person.
    #[must_use]
    pub fn approval_of(&self) -> ToolApproval {
        self.approval
    }
}
