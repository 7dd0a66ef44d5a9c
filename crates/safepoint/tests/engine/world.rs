//! A scripted model without a socket, and small helpers.

use std::sync::{Arc, Mutex};

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, AgentBuilder, History, Model, RunHandle, ToolContext, ToolResult,
    approval::ApprovalMode,
    event::{EventKind, Fact},
    ids::CallId,
    message::ToolCall,
    model::{Conversation, Delta, DeltaStream, Finish, ModelError, ModelSpec},
    tool::{self, FnTool},
};
use serde_json::Value;

pub(crate) type Reply = Vec<Result<Delta, ModelError>>;

/// Gives its replies in order, then streams a little and hangs.
#[derive(Clone)]
pub(crate) struct Scripted(pub(crate) Arc<Mutex<Vec<Reply>>>);

impl Scripted {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self(Arc::new(Mutex::new(replies.into_iter().collect())))
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for Scripted {
    fn stream(&mut self, _: &History) -> DeltaStream {
        let mut replies = self.0.lock().unwrap();
        if replies.is_empty() {
            return stream::iter([Ok(Delta::Sent), Ok(Delta::Text("par".into()))])
                .chain(stream::pending())
                .boxed();
        }
        stream::iter(replies.remove(0)).boxed()
    }
}

pub(crate) fn agent(replies: impl IntoIterator<Item = Reply>) -> AgentBuilder {
    Agent::builder(Scripted::new(replies)).approvals(ApprovalMode::Auto)
}

pub(crate) fn say(text: &str) -> Reply {
    vec![Ok(Delta::Sent), Ok(Delta::Opened), Ok(Delta::Text(text.into())), Ok(Delta::Ended(Finish::Natural))]
}

pub(crate) fn ask(names: &[&str]) -> Reply {
    ask_with(&names.iter().map(|name| (*name, serde_json::json!({}))).collect::<Vec<_>>())
}

/// A message that asks for these calls, each with its arguments.
pub(crate) fn ask_with(calls: &[(&str, Value)]) -> Reply {
    let calls = calls.iter().enumerate().map(|(n, (name, args))| {
        Ok(Delta::CallReady(ToolCall {
            id: CallId::from(format!("c{n}")),
            name: (*name).into(),
            args: args.to_string(),
        }))
    });
    let mut reply: Reply = vec![Ok(Delta::Sent), Ok(Delta::Opened)];
    reply.extend(calls);
    reply.push(Ok(Delta::Ended(Finish::Natural)));
    reply
}

/// A tool without arguments.
pub(crate) fn does<F, Fut>(name: &str, body: F) -> FnTool
where
    F: Fn(ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ToolResult<String>> + Send + 'static,
{
    tool::from_fn(name, "for a test", move |cx, (): ()| body(cx))
}

pub(crate) async fn until(handle: &RunHandle, is_it: impl Fn(&EventKind) -> bool) {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if is_it(&event.kind) {
            return;
        }
    }
    panic!("the run ended first");
}

pub(crate) async fn call_started(handle: &RunHandle) {
    until(handle, |kind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::CallStarted { .. })))
        .await;
}
