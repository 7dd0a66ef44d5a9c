//! Callbacks around model calls and tool calls. No hook can veto a stop; a slow one delays the run, never its
//! stop.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use safepoint_scope::StopRequest;

use crate::value::{
    event::Completion,
    history::History,
    ids::CallId,
    message::AssistantMessage,
    receipt::{CallReport, ModelReport, Receipt},
};

/// What a hook answers. Exhaustive: the driver must handle each.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Continue.
    Proceed,
    /// Do not run this call; the model gets this reason. Before a model call it fails the run with this text.
    Refuse(String),
    /// Ask the run to stop (reason `hook`), and continue until the stop takes effect.
    Stop(StopRequest),
}

/// What a hook does before it answers, or `None` if it has nothing to do (which costs nothing).
pub type HookResult<T> = Option<HookWork<T>>;

/// A hook's work: see [`from_future`] and [`blocking`]. Exhaustive: it awaits or it blocks.
pub enum HookWork<T> {
    /// A future.
    Async(BoxFuture<'static, T>),
    /// Code that blocks its thread; it runs on a blocking thread. Past its bound the run continues without
    /// it, and names it as a survivor if it is still running at the end (S2.8).
    Blocking(Box<dyn FnOnce() -> T + Send>),
}

impl<T> std::fmt::Debug for HookWork<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Async",
            Self::Blocking(_) => "Blocking",
        })
    }
}

/// The answer of a hook that awaits.
pub fn from_future<T>(work: impl Future<Output = T> + Send + 'static) -> HookResult<T> {
    Some(HookWork::Async(Box::pin(work)))
}

/// The answer of a hook that blocks.
pub fn blocking<T>(work: impl FnOnce() -> T + Send + 'static) -> HookResult<T> {
    Some(HookWork::Blocking(Box::new(work)))
}

/// Callbacks of an agent. Each method has an empty default.
///
/// The run continues without a hook that panics or outlasts [`Limits::callback`](crate::Limits): a panic
/// fails the run with code `callback`, an overlong hook is named as a survivor. A stop at a safe point waits
/// for the verdict of a hook that was asked before it, within that bound; `Now` drops the hook. `on_stop`
/// runs in parallel to the stop, not before it.
pub trait Hooks: Send + Sync + 'static {
    /// Before a model call.
    fn before_model(&self, _round: u32, _history: &History) -> HookResult<Verdict> {
        None
    }
    /// After a model's message was recorded, complete or not: [`HookedMessage::whole`] says which.
    fn after_model(&self, _message: &HookedMessage) -> HookResult<()> {
        None
    }
    /// Before a call starts, after its approval.
    fn before_call(&self, _call: &HookCall) -> HookResult<Verdict> {
        None
    }
    /// After a call's end was recorded: effects of the hook come after the record, even if the process dies
    /// in it.
    fn after_call(&self, _report: &CallReport) -> HookResult<()> {
        None
    }
    /// When the run has settled as stopped.
    fn on_stop(&self, _receipt: &Arc<Receipt>) -> HookResult<()> {
        None
    }
}

/// A call as a hook sees it.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// Its id.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub args: serde_json::Value,
}

/// A model's message as a hook sees it.
#[derive(Clone, Debug)]
pub struct HookedMessage {
    /// What arrived.
    pub message: Arc<AssistantMessage>,
    /// Whether that is all: a message that a stop or a steer cut, or that failed, is no answer.
    pub whole: Completion,
    /// The report: round, model, usage and times.
    pub report: ModelReport,
}

/// Which hook answered: what it guards, and its index among the hooks of the agent.
pub(crate) type HookKey = (HookOf, usize);

/// What a hook is asked about. Exhaustive: the two steps that it may prevent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HookOf {
    Model(u32),
    Call(CallId),
}
