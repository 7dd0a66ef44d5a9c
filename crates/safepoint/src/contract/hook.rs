//! Callbacks around model calls and tool calls. No hook can veto a stop; a slow one delays the run, never its
//! stop.

use std::{any::type_name, sync::Arc};

use futures_core::future::BoxFuture;
use safepoint_scope::{Actor, Code, Reason, StopRequest};
use serde_json::Value;

use crate::{
    contract::tool::Output,
    sync::callback::{Foreign, Panicked},
    value::{
        event::Completion,
        history::History,
        ids::{CallId, Path, RunId},
        message::{AssistantMessage, Part},
        receipt::{CallReport, CallStatus, ModelReport, Receipt},
    },
};

mod closures;
mod text;

pub use closures::{before_call, before_model, on_result, on_text};
pub use text::{TextFilter, TextKind};

/// What a hook answers before a model call. Exhaustive: the driver must handle each.
///
/// An example is at [`before_model`].
#[derive(Clone, Debug)]
pub enum ModelVerdict {
    /// Continue.
    Proceed,
    /// Send this conversation in this one call. What is stored stays as it is, and the hook is asked again before the
    /// next call. A conversation that no provider would take is repaired as a stored one is (S5.1).
    Send(History),
    /// Do not call the model: this is its answer, and the run ends with it.
    Answer(String),
    /// Fail the run with this text.
    Refuse(String),
    /// Ask the run to stop (reason `hook`), and continue until the stop takes effect.
    Stop(StopRequest),
}

/// What a hook answers before a call starts. Exhaustive: the driver must handle each.
///
/// An example is at [`before_call`].
#[derive(Clone, Debug)]
pub enum CallVerdict {
    /// Continue.
    Proceed,
    /// Run the call with these arguments: they are checked against the schema and judged by the rules again, and a
    /// person who approved the call is asked again.
    Change(Value),
    /// Do not run this call; this is its result.
    Answer(String),
    /// Do not run this call; the model gets this reason.
    Refuse(String),
    /// Ask the run to stop (reason `hook`), and continue until the stop takes effect.
    Stop(StopRequest),
}

/// What a hook answers to the result of a call. Exhaustive: the engine must handle each.
///
/// An example is at [`on_result`].
#[derive(Clone, Debug)]
pub enum ResultVerdict {
    /// Continue.
    Proceed,
    /// Use this instead: what the tool gave is recorded, shown and sent nowhere.
    Change(Output),
    /// Ask the run to stop (reason `hook`); the result stays as it is.
    Stop(StopRequest),
}

/// What a hook does before it answers, or `None` if it has nothing to do (which costs nothing).
pub type HookResult<T> = Option<HookWork<T>>;

/// A hook's work: see [`ready`], [`from_future`] and [`blocking`]. Exhaustive: it is done, it awaits or it blocks.
pub enum HookWork<T> {
    /// The answer itself.
    Ready(T),
    /// A future.
    Async(BoxFuture<'static, T>),
    /// Code that blocks its thread; it runs on a blocking thread. Past its bound the run continues without
    /// it, and names it as a survivor if it is still running at the end (S2.8).
    Blocking(Box<dyn FnOnce() -> T + Send>),
}

impl<T> std::fmt::Debug for HookWork<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ready(_) => "Ready",
            Self::Async(_) => "Async",
            Self::Blocking(_) => "Blocking",
        })
    }
}

/// An answer that needs no work: for a hook that has decided by the time it returns.
pub fn ready<T>(answer: T) -> HookResult<T> {
    Some(HookWork::Ready(answer))
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
/// Several hooks are asked one after the other, in the order in which they were added, and each sees what those before
/// it have changed (S2.19). For one callback, a closure is enough: see [`before_model`], [`before_call`], [`on_result`]
/// and [`on_text`].
///
/// The run continues without a hook that panics or outlasts [`Limits::callback_timeout`](crate::Limits): a panic
/// fails the run with code `callback`, an overlong hook is named as a survivor. A stop at a safe point waits
/// for the verdict of a hook that was asked before it, within that bound; `Now` drops the hook. `on_stop`
/// runs in parallel to the stop, not before it.
///
/// The methods themselves run in the run's own task, so they return at once: what takes time, or blocks, is the work
/// that they return.
pub trait Hooks: Send + Sync + 'static {
    /// The name that records, traces and reasons of stops have for this hook. Default: the name of its type.
    fn name(&self) -> &str {
        short_name(type_name::<Self>())
    }
    /// Before a model call.
    fn before_model(&self, _round: u32, _history: &History) -> HookResult<ModelVerdict> {
        None
    }
    /// Before a model call that summarises the oldest rounds, before this round. The conversation is one message: the
    /// text that is to be summarised. Default: [`before_model`](Self::before_model) is asked, so that what a hook keeps
    /// from a provider is kept from this call too.
    fn before_summary(&self, round: u32, history: &History) -> HookResult<ModelVerdict> {
        self.before_model(round, history)
    }
    /// Changes what a model says, as it arrives: what the filter gives is shown, recorded and answered, and what it was
    /// given is not (S2.20). One filter is made for each message. Not asked in the run of a remote agent.
    fn text_filter(&self, _kind: TextKind) -> Option<Box<dyn TextFilter>> {
        None
    }
    /// After a model's message was recorded, complete or not: [`HookedMessage::whole`] says which.
    fn after_model(&self, _message: &HookedMessage) -> HookResult<()> {
        None
    }
    /// Before a call starts, after its approval. Asked again when a person changes the arguments, and when the run is
    /// resumed before the call began.
    fn before_call(&self, _call: &HookCall) -> HookResult<CallVerdict> {
        None
    }
    /// The progress of a call, and a remote agent's words: what is given replaces the text before it is shown or kept;
    /// `None` leaves it. Called in the task of the tool, for each piece.
    fn on_progress(&self, _tool: &str, _text: &str) -> Option<String> {
        None
    }
    /// After a call has ended, and before its result is recorded, shown, sent, or written to a file by the engine. A hook
    /// that does not answer in time withholds the result (S2.20).
    fn on_result(&self, _result: &HookedResult) -> HookResult<ResultVerdict> {
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
#[non_exhaustive]
pub struct HookCall {
    /// Its id.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments, as a person or a hook before this one has changed them.
    pub args: Value,
    /// The run.
    pub run: RunId,
    /// Where the run is in its tree.
    pub path: Path,
    /// For which round, from 1.
    pub round: u32,
    /// The message that asks for it.
    pub message: Arc<AssistantMessage>,
    /// The conversation before that message.
    pub history: Arc<History>,
}

/// A call's result as a hook sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookedResult {
    /// The call, as it began.
    pub call: Arc<HookCall>,
    /// How it ended.
    pub status: CallStatus,
    /// The text for the model. Of a call that was stopped or timed out it is the output so far, without the note that
    /// the engine adds behind it.
    pub text: String,
    /// The result as a value, if the tool gave one.
    pub structured: Option<Value>,
    /// Images and files.
    pub parts: Vec<Part>,
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

/// Hooks of an agent, asked for their name once.
#[derive(Clone)]
pub(crate) struct NamedHooks {
    pub(crate) name: Arc<str>,
    it: Foreign<dyn Hooks>,
}

impl NamedHooks {
    pub(crate) fn new(hooks: Arc<dyn Hooks>) -> Self {
        let it = Foreign::new(hooks);
        let name = it.call(|hooks| Arc::from(hooks.name()));
        Self { name: name.unwrap_or_else(|Panicked(_)| "a hook that could not name itself".into()), it }
    }

    /// Calls a method.
    pub(crate) fn call<R>(&self, ask: impl FnOnce(&(dyn Hooks + 'static)) -> R) -> Result<R, Panicked> {
        self.it.call(ask)
    }
}

/// Which hook answered: what it guards, and its index among the hooks of the agent.
pub(crate) type HookKey = (HookOf, usize);

/// What a hook is asked about. Exhaustive: the steps that it may prevent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HookOf {
    Model(u32),
    Summary(u32),
    Call(CallId),
}

/// What a hook has answered. Exhaustive: about a model call or a tool call.
#[derive(Debug)]
pub(crate) enum HookAnswer {
    /// About a model call or a summary.
    Model(ModelVerdict),
    Call(CallVerdict),
}

impl HookAnswer {
    /// The answer of a hook that is overdue: the run continues without it.
    pub(crate) fn overdue(of: &HookOf) -> Self {
        match of {
            HookOf::Model(_) | HookOf::Summary(_) => Self::Model(ModelVerdict::Proceed),
            HookOf::Call(_) => Self::Call(CallVerdict::Proceed),
        }
    }
}

/// A stop that a hook requests: with the hook as its reason, unless the hook gives one (S1.10).
pub(crate) fn by_hook(hook: &str, request: StopRequest) -> StopRequest {
    if request.reason().is_some() {
        return request;
    }
    request.with_reason(Reason::new(Code::HOOK).with_actor(Actor::Hook(hook.into())))
}

/// The name of a type without its modules and parameters.
fn short_name(full: &str) -> &str {
    let plain = full.split('<').next().unwrap_or(full);
    plain.rsplit("::").next().unwrap_or(plain)
}
