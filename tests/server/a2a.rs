//! A2A on a real socket: a task is one item, over both bindings, and says what the session says.

use std::sync::Arc;

use safepoint::{Agent, AgentBuilder, store::MemoryStore};
use safepoint_server::Surface;
use safepoint_testkit::script::{Reply as ModelReply, ReplyFault};
use serde_json::{Value, json};

use super::{
    client::{Client, Reply, Stream},
    world::World,
};

#[path = "a2a/answers.rs"]
mod answers;
#[path = "a2a/bindings.rs"]
mod bindings;
#[path = "a2a/cancels.rs"]
mod cancels;
#[path = "a2a/cards.rs"]
mod cards;
#[path = "a2a/lists.rs"]
mod lists;
#[path = "a2a/ours.rs"]
mod ours;
#[path = "a2a/streams.rs"]
mod streams;
#[path = "a2a/tasks.rs"]
mod tasks;

/// What every client of 1.0 sends.
pub(super) const VERSION: [(&str, &str); 1] = [("a2a-version", "1.0")];

/// A server that offers the agent over A2A.
pub(super) async fn world(agent: AgentBuilder) -> World {
    over(agent.build()).await
}

pub(super) async fn over(agent: Agent) -> World {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    World::offered(agent, Arc::new(MemoryStore::default()), folder, &[Surface::A2a]).await
}

/// A message with this id.
pub(super) fn message(id: &str, text: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// A message to this task.
pub(super) fn to_task(task: &str, id: &str, text: &str) -> Value {
    let mut message = message(id, text);
    message["taskId"] = task.into();
    message
}

impl Client {
    /// Calls a method over JSON-RPC.
    pub(super) async fn rpc(&self, method: &str, params: Value) -> Reply {
        let body = json!({"jsonrpc": "2.0", "id": "r-1", "method": method, "params": params});
        let reply = self.send("POST", "/a2a/helper", &VERSION, Some(&body)).await;
        assert_eq!(reply.body["jsonrpc"], "2.0", "{reply:?}");
        reply
    }

    /// What a method answers.
    pub(super) async fn result(&self, method: &str, params: Value) -> Value {
        let mut reply = self.rpc(method, params).await;
        assert_eq!(reply.body["id"], "r-1", "{reply:?}");
        assert!(reply.body.get("error").is_none(), "{reply:?}");
        reply.body["result"].take()
    }

    /// The code with which a method is refused, and its name in the data.
    pub(super) async fn refusal(&self, method: &str, params: Value) -> (i64, String) {
        let reply = self.rpc(method, params).await;
        let error = &reply.body["error"];
        let reason = error["data"][0]["reason"].as_str().unwrap_or_default();
        (error["code"].as_i64().unwrap_or_default(), reason.to_owned())
    }

    /// Sends a message, and waits for nothing.
    pub(super) async fn begun(&self, id: &str, text: &str) -> Value {
        let params = json!({"message": message(id, text), "configuration": {"returnImmediately": true}});
        self.result("SendMessage", params).await["task"].take()
    }

    /// Sends a message, and waits for its task.
    pub(super) async fn completed(&self, message: Value) -> Value {
        self.result("SendMessage", json!({"message": message})).await["task"].take()
    }

    pub(super) async fn task(&self, id: &str) -> Value {
        self.result("GetTask", json!({"id": id})).await
    }

    /// Reads a method that streams.
    pub(super) async fn streamed(&self, method: &str, params: Value) -> Stream {
        let body = json!({"jsonrpc": "2.0", "id": "r-1", "method": method, "params": params});
        let stream = self.stream("POST", "/a2a/helper", &VERSION, Some(&body)).await;
        assert!(stream.head.contains("text/event-stream"), "{}", stream.head);
        stream
    }
}

impl Stream {
    /// The next result of a stream; none at its end.
    pub(super) async fn piece(&mut self) -> Option<Value> {
        let mut data = self.data().await?;
        assert_eq!((&data["jsonrpc"], &data["id"]), (&json!("2.0"), &json!("r-1")), "{data}");
        Some(data["result"].take())
    }

    pub(super) async fn pieces(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await {
            all.push(piece);
        }
        all
    }

    /// The next change to this state.
    pub(super) async fn until_state(&mut self, wanted: &str) -> Value {
        loop {
            let piece = self.piece().await.unwrap_or_else(|| panic!("the stream ended before {wanted}"));
            if piece["statusUpdate"]["status"]["state"] == wanted {
                return piece["statusUpdate"].clone();
            }
        }
    }
}

/// A reply that is a refusal of the provider.
pub(super) fn refused() -> ModelReply {
    let body = json!({"error": {"message": "no such model"}}).to_string();
    ModelReply::default().fault(ReplyFault::Status { status: 400, body, headers: Vec::new() })
}

/// The state of a task, or of a change of it.
pub(super) fn state(of: &Value) -> &str {
    of["status"]["state"].as_str().unwrap_or_default()
}

/// The data of the first question in this status.
pub(super) fn question(status: &Value) -> &Value {
    let parts = status["message"]["parts"].as_array().expect("a question has parts");
    parts.iter().find_map(|part| part.get("data")).expect("a question has data")
}

/// The words of a yes to this question.
pub(super) fn yes(asked: &Value) -> String {
    let approval = asked["approval"].as_str().expect("a question has an id");
    format!("approve {}", &approval[approval.len() - 6..])
}

/// The id of a task.
pub(super) fn id(task: &Value) -> String {
    task["id"].as_str().unwrap().to_owned()
}

/// What the session's own API has of it.
pub(super) fn ours(task: &Value) -> &Value {
    &task["metadata"]["safepoint"]
}
