//! What stands in a model's place where an agent *is* a remote one: each message of a person becomes one call, and what
//! the call comes to is the answer. It decides from the history alone, so a resume decides the same.

use futures_util::stream;
use serde_json::json;

use super::delegate::{CONVERSATION, TASK};
use crate::{
    history::{Entry, History},
    ids::CallId,
    message::{AssistantMessage, CallResult, ToolCall, UserMessage, Verdict},
    model::{Conversation, Delta, DeltaStream, Finish, Model, ModelSpec},
    usage::Usage,
};

/// The model of an agent that is a remote one.
pub(crate) struct Driver {
    peer: String,
    tool: String,
}

impl Driver {
    pub(crate) fn new(peer: String, tool: String) -> Self {
        Self { peer, tool }
    }
}

impl Model for Driver {
    fn name(&self) -> &str {
        &self.peer
    }

    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(Turns { tool: self.tool.clone() })
    }
}

struct Turns {
    tool: String,
}

impl Conversation for Turns {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let (asked, before) = newest(history);
        let text = match (before, asked.is_empty()) {
            (Some(results), true) => all_of(results),
            // A steer, or a new turn over a call that gave something: what it gave is not lost.
            (Some(results), false) => good_of(results),
            (None, _) => String::new(),
        };
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

impl Turns {
    /// The conversation bears the name of its first call.
    fn call(&self, history: &History, asked: &[&UserMessage]) -> ToolCall {
        let id = CallId::from(format!("remote_{}", uuid::Uuid::now_v7().simple()));
        let first = history.entries().iter().find_map(|entry| match &**entry {
            Entry::Assistant(message) => first_call(message, &self.tool),
            Entry::User(_) | Entry::Results { .. } => None,
        });
        let texts: Vec<&str> = asked.iter().map(|message| message.text.as_str()).collect();
        let args = json!({ TASK: texts.join("\n\n"), CONVERSATION: first.unwrap_or(&id) });
        ToolCall { name: self.tool.clone(), args: args.to_string(), id }
    }
}

/// What was said since the last answer, and the results before that, where the last answer is a call's.
fn newest(history: &History) -> (Vec<&UserMessage>, Option<&[CallResult]>) {
    let mut asked = Vec::new();
    let mut results = None;
    for entry in history.entries().iter().rev() {
        match &**entry {
            Entry::User(message) => asked.push(message),
            Entry::Results { results: newest } => {
                results = Some(newest.as_slice());
                break;
            }
            Entry::Assistant(_) => break,
        }
    }
    asked.reverse();
    (asked, results)
}

fn first_call<'m>(message: &'m AssistantMessage, tool: &str) -> Option<&'m CallId> {
    message.calls().find(|call| call.name == tool).map(|call| &call.id)
}

fn all_of(results: &[CallResult]) -> String {
    let texts: Vec<&str> = results.iter().map(|result| result.text.as_str()).collect();
    texts.join("\n\n")
}

fn good_of(results: &[CallResult]) -> String {
    let good = results.iter().filter(|result| result.verdict == Verdict::Good);
    let texts: Vec<&str> = good.map(|result| result.text.as_str()).collect();
    texts.join("\n\n")
}
