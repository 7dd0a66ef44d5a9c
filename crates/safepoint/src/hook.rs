//! Callbacks around model calls and tool calls. None can veto a stop; a slow one delays the run, never its stop.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use safepoint_scope::StopRequest;

use crate::{
    history::History,
    ids::CallId,
    message::AssistantMessage,
    receipt::{CallReport, Receipt},
    usage::Usage,
};

/// What a hook answers. Exhaustive: the conductor must act on each.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Go on.
    Proceed,
    /// Do not run this call; the model is told why. Before a model call it fails the run with this text.
    Refuse(String),
    /// Ask the run to stop (reason `hook`), and go on until the stop takes effect.
    Stop(StopRequest),
}

/// A future of a hook, or none if the hook has nothing to say (which costs nothing).
pub type Hooked<T> = Option<BoxFuture<'static, T>>;

/// Callbacks of an agent. Each method has an empty default.
///
/// A hook that panics or outlasts [`Limits::callback`](crate::Limits) is gone on without: a panic fails the run with
/// code `callback`, an overlong one is named as a survivor. `on_stop` runs beside the stop, not before it.
pub trait Hooks: Send + Sync + 'static {
    /// Before a model call.
    fn before_model(&self, _round: u32, _history: &History) -> Hooked<Verdict> {
        None
    }
    /// After a model's message was recorded.
    fn after_model(&self, _round: u32, _message: &AssistantMessage, _usage: &Usage) -> Hooked<()> {
        None
    }
    /// Before a call starts, after its approval.
    fn before_call(&self, _call: &HookedCall) -> Hooked<Verdict> {
        None
    }
    /// After a call's end was recorded.
    fn after_call(&self, _report: &CallReport) -> Hooked<()> {
        None
    }
    /// When the run has settled as stopped.
    fn on_stop(&self, _receipt: &Arc<Receipt>) -> Hooked<()> {
        None
    }
}

/// A call as a hook sees it.
#[derive(Clone, Debug)]
pub struct HookedCall {
    /// Its id.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub args: serde_json::Value,
}

/// No hooks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoHooks;

impl Hooks for NoHooks {}
