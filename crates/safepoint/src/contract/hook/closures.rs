//! Hooks of one closure.

use std::sync::Arc;

use super::{
    CallVerdict, HookCall, HookResult, HookedResult, Hooks, ModelVerdict, ResultVerdict, TextFilter,
    TextKind, blocking, text::Lines,
};
use crate::value::history::History;

/// A hook that is asked before each model call, with the round and the conversation. The closure may block.
///
/// ```
/// use safepoint::hook::{self, ModelVerdict};
/// let polite = hook::before_model("off-topic", |_round, history| {
///     let asked = format!("{:?}", history.entries().last());
///     if asked.contains("weather") { ModelVerdict::Answer("I only talk about trains.".into()) } else { ModelVerdict::Proceed }
/// });
/// # fn with(builder: safepoint::AgentBuilder, polite: impl hook::Hooks) {
/// builder.hooks(polite);
/// # }
/// ```
pub fn before_model(
    name: impl Into<String>,
    ask: impl Fn(u32, &History) -> ModelVerdict + Send + Sync + 'static,
) -> impl Hooks {
    BeforeModel { name: name.into(), ask: Arc::new(ask) }
}

/// A hook that is asked before each call starts. The closure may block.
///
/// ```
/// use safepoint::hook::{self, CallVerdict};
/// let dry = hook::before_call("dry-run", |call| match call.name.as_str() {
///     "deploy" => CallVerdict::Change(serde_json::json!({"target": call.args["target"], "dry_run": true})),
///     "drop_table" => CallVerdict::Refuse("tables stay".into()),
///     _ => CallVerdict::Proceed,
/// });
/// # fn with(builder: safepoint::AgentBuilder, dry: impl hook::Hooks) {
/// builder.hooks(dry);
/// # }
/// ```
pub fn before_call(
    name: impl Into<String>,
    ask: impl Fn(&HookCall) -> CallVerdict + Send + Sync + 'static,
) -> impl Hooks {
    BeforeCall { name: name.into(), ask: Arc::new(ask) }
}

/// A hook that sees the result of each call before anything else does. The closure may block.
///
/// ```
/// use safepoint::hook::{self, ResultVerdict};
/// let redacted = hook::on_result("no-card-numbers", |result| {
///     let text = result.text.replace("4111 1111 1111 1111", "[card]");
///     if text == result.text { ResultVerdict::Proceed } else { ResultVerdict::Change(text.into()) }
/// });
/// # fn with(builder: safepoint::AgentBuilder, redacted: impl hook::Hooks) {
/// builder.hooks(redacted);
/// # }
/// ```
pub fn on_result(
    name: impl Into<String>,
    ask: impl Fn(&HookedResult) -> ResultVerdict + Send + Sync + 'static,
) -> impl Hooks {
    OnResult { name: name.into(), ask: Arc::new(ask) }
}

/// A hook that changes what a model says, line by line: a line is shown once it is complete. The progress of calls is
/// changed too; reasoning is left as it is. The closure must not block. For other pieces than lines, or for reasoning,
/// implement [`Hooks::text_filter`].
///
/// ```
/// use safepoint::hook;
/// let filtered = hook::on_text("no-card-numbers", |line| line.replace("4111 1111 1111 1111", "[card]"));
/// # fn with(builder: safepoint::AgentBuilder, filtered: impl hook::Hooks) {
/// builder.hooks(filtered);
/// # }
/// ```
pub fn on_text(
    name: impl Into<String>,
    change: impl Fn(&str) -> String + Send + Sync + 'static,
) -> impl Hooks {
    OnText { name: name.into(), change: Arc::new(change) }
}

struct BeforeModel<F> {
    name: String,
    ask: Arc<F>,
}

impl<F: Fn(u32, &History) -> ModelVerdict + Send + Sync + 'static> Hooks for BeforeModel<F> {
    fn name(&self) -> &str {
        &self.name
    }
    fn before_model(&self, round: u32, history: &History) -> HookResult<ModelVerdict> {
        let (ask, history) = (Arc::clone(&self.ask), history.clone());
        blocking(move || ask(round, &history))
    }
}

struct BeforeCall<F> {
    name: String,
    ask: Arc<F>,
}

impl<F: Fn(&HookCall) -> CallVerdict + Send + Sync + 'static> Hooks for BeforeCall<F> {
    fn name(&self) -> &str {
        &self.name
    }
    fn before_call(&self, call: &HookCall) -> HookResult<CallVerdict> {
        let (ask, call) = (Arc::clone(&self.ask), call.clone());
        blocking(move || ask(&call))
    }
}

struct OnResult<F> {
    name: String,
    ask: Arc<F>,
}

impl<F: Fn(&HookedResult) -> ResultVerdict + Send + Sync + 'static> Hooks for OnResult<F> {
    fn name(&self) -> &str {
        &self.name
    }
    fn on_result(&self, result: &HookedResult) -> HookResult<ResultVerdict> {
        let (ask, result) = (Arc::clone(&self.ask), result.clone());
        blocking(move || ask(&result))
    }
}

struct OnText<F> {
    name: String,
    change: Arc<F>,
}

impl<F: Fn(&str) -> String + Send + Sync + 'static> Hooks for OnText<F> {
    fn name(&self) -> &str {
        &self.name
    }
    fn text_filter(&self, kind: TextKind) -> Option<Box<dyn TextFilter>> {
        let change = Arc::clone(&self.change);
        let is_shown = kind == TextKind::Answer;
        is_shown.then(|| -> Box<dyn TextFilter> {
            Box::new(Lines { line: String::new(), change: move |line: &str| change(line) })
        })
    }
    fn on_progress(&self, _tool: &str, text: &str) -> Option<String> {
        Some(text.split_inclusive('\n').map(|line| self.line(line)).collect())
    }
}

impl<F: Fn(&str) -> String> OnText<F> {
    fn line(&self, line: &str) -> String {
        match line.strip_suffix('\n') {
            Some(line) => format!("{}\n", (self.change)(line)),
            None => (self.change)(line),
        }
    }
}
