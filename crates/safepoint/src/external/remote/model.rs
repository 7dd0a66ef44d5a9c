//! Takes the place of a model where an agent *is* a remote one: each message of a person becomes one call,
//! and the result of the call is the answer. It decides from the history alone, so a resume decides the same.
//!
//! **Invariants**: work that did not complete is no answer, and is not begun again automatically.

use futures_util::stream;
use safepoint_model::raw::ids::unique;
use serde_json::json;

use super::tool::CONVERSATION;
use crate::{
    contract::model::{
        Conversation, Delta, DeltaStream, Finish, Model, ModelError, ModelErrorKind, ModelSpec,
    },
    definition::subagent::TASK,
    value::{
        history::{History, Message},
        ids::CallId,
        message::{CallResult, ResultStatus, ToolCall, UserMessage},
        usage::Usage,
    },
};

/// The model of an agent that is a remote one, and each conversation with it.
#[derive(Clone)]
pub(crate) struct RemoteModel {
    peer: String,
    tool: String,
}

impl RemoteModel {
    pub(crate) fn new(peer: String, tool: String) -> Self {
        Self { peer, tool }
    }
}

impl Model for RemoteModel {
    fn name(&self) -> &str {
        &self.peer
    }

    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for RemoteModel {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let (asked, before) = newest(history);
        if let (Some(bad), true) = (before.and_then(bad_of), asked.is_empty()) {
            return Box::pin(stream::iter([Err(self.undone(bad))]));
        }
        // A steer, or a new turn over a call that returned something: what it returned is kept.
        let text = before.map(good_of).unwrap_or_default();
        let mut deltas = vec![Delta::Usage(Usage::default())];
        if !text.is_empty() {
            deltas.push(Delta::Text(text));
        }
        if !asked.is_empty() {
            deltas.push(Delta::CallReady(self.call(history, &asked)));
        }
        deltas.push(Delta::Ended(Finish::Natural));
        Box::pin(stream::iter(deltas.into_iter().map(Ok)))
    }
}

impl RemoteModel {
    fn undone(&self, bad: &CallResult) -> ModelError {
        let message = format!("the work of {} did not come to its end: {}", self.peer, bad.text);
        ModelError::new(ModelErrorKind::Broken, message)
            .with_hint("nothing is begun again by itself: say what it is to do now")
    }

    /// The conversation has the name of its first call.
    fn call(&self, history: &History, asked: &[&UserMessage]) -> ToolCall {
        let id = CallId::from(format!("remote_{}", unique().simple()));
        let mut calls = history.messages().flat_map(|message| message.calls());
        let first = calls.find(|call| call.name == self.tool).map(|call| &call.id);
        let texts: Vec<&str> = asked.iter().map(|message| message.text.as_str()).collect();
        let args = json!({ TASK: texts.join("\n\n"), CONVERSATION: first.unwrap_or(&id) });
        ToolCall { name: self.tool.clone(), args: args.to_string(), id }
    }
}

/// The messages since the last answer, and the results before them, if the last answer is a call's.
fn newest(history: &History) -> (Vec<&UserMessage>, Option<&[CallResult]>) {
    let mut asked = Vec::new();
    let mut results = None;
    for entry in history.entries().iter().rev() {
        match &**entry {
            Message::User(message) => asked.push(message),
            Message::Results { results: newest } => {
                results = Some(newest.as_slice());
                break;
            }
            Message::Assistant(_) => break,
        }
    }
    asked.reverse();
    (asked, results)
}

fn bad_of(results: &[CallResult]) -> Option<&CallResult> {
    results.iter().find(|result| result.verdict == ResultStatus::Error)
}

fn good_of(results: &[CallResult]) -> String {
    let good = results.iter().filter(|result| result.verdict == ResultStatus::Ok);
    let texts: Vec<&str> = good.map(|result| result.text.as_str()).collect();
    texts.join("\n\n")
}
