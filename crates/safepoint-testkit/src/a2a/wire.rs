//! What servers say, as each wire writes it.

use serde_json::{Value, json};

use super::{
    A2aWire,
    task::{Task, TaskEvent, TaskState},
};

/// The same method by its name of 1.0; what is unknown stays as it is.
pub(super) fn method(name: &str) -> &str {
    match name {
        "message/send" => "SendMessage",
        "message/stream" => "SendStreamingMessage",
        "tasks/get" => "GetTask",
        "tasks/cancel" => "CancelTask",
        "tasks/resubscribe" => "SubscribeToTask",
        other => other,
    }
}

/// Whether a method is answered with a stream.
pub(super) fn streams(method: &str) -> bool {
    matches!(method, "SendStreamingMessage" | "SubscribeToTask")
}

/// Whether a method belongs to the wire.
pub(super) fn knows(wire: A2aWire, name: &str) -> bool {
    name.contains('/') == (wire != A2aWire::V1)
}

/// All the text of a message.
pub(super) fn text_of(message: &Value) -> String {
    let parts = message["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

impl A2aWire {
    fn state(self, state: TaskState) -> String {
        let name = match state {
            TaskState::Submitted => "submitted",
            TaskState::Working => "working",
            TaskState::InputRequired => "input-required",
            TaskState::AuthRequired => "auth-required",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
            TaskState::Canceled => "canceled",
        };
        match self {
            Self::V1 => format!("TASK_STATE_{}", name.to_uppercase().replace('-', "_")),
            Self::V03 | Self::V02 => name.to_owned(),
        }
    }

    /// What the older wires say of a thing: its kind.
    fn of_kind(self, kind: &str, mut thing: Value) -> Value {
        if self != Self::V1 {
            thing["kind"] = kind.into();
        }
        thing
    }

    /// What 1.0 puts around a result: an object that names it.
    fn wrapped(self, name: &str, result: Value) -> Value {
        if self == Self::V1 { json!({ name: result }) } else { result }
    }

    fn part(self, text: &str) -> Value {
        self.of_kind("text", json!({ "text": text }))
    }

    /// A message of the agent.
    fn said(self, text: &str) -> Value {
        let role = if self == Self::V1 { "ROLE_AGENT" } else { "agent" };
        self.of_kind("message", json!({"messageId": "said", "role": role, "parts": [self.part(text)]}))
    }

    fn status(self, state: TaskState, word: Option<&str>) -> Value {
        let mut status = json!({"state": self.state(state), "timestamp": "2026-11-21T12:00:00.000Z"});
        if let Some(word) = word {
            status["message"] = self.said(word);
        }
        status
    }

    /// The task as it stands.
    pub(super) fn task(self, task: &Task) -> Value {
        self.task_as(task, task.state())
    }

    /// The task, in this state.
    pub(super) fn task_as(self, task: &Task, state: TaskState) -> Value {
        let status = self.status(state, task.word().as_deref());
        let mut body = json!({"id": task.id, "contextId": task.context, "status": status});
        let artifacts = task.artifacts().into_iter().map(|(id, parts)| {
            let parts: Vec<Value> = parts.iter().map(|text| self.part(text)).collect();
            json!({"artifactId": id, "parts": parts})
        });
        let artifacts: Vec<Value> = artifacts.collect();
        if !artifacts.is_empty() {
            body["artifacts"] = artifacts.into();
        }
        self.of_kind("task", body)
    }

    /// The task as the first event of a stream.
    pub(super) fn first(self, task: &Task) -> Value {
        self.wrapped("task", self.task(task))
    }

    /// A message as the only event of a stream.
    pub(super) fn only(self, text: &str) -> Value {
        self.wrapped("message", self.said(text))
    }

    /// What the client said, as an event.
    pub(super) fn echo(self, task: &Task, message: &Value) -> Value {
        let mut echoed = message.clone();
        echoed["taskId"] = task.id.clone().into();
        echoed["contextId"] = task.context.clone().into();
        self.wrapped("message", echoed)
    }

    /// An event of a stream; `before` says whether the artifact has parts already.
    pub(super) fn event(self, task: &Task, event: &TaskEvent, before: bool) -> Value {
        let mut body = json!({"taskId": task.id, "contextId": task.context});
        let (name, kind) = match event {
            TaskEvent::Status(state, word) => {
                body["status"] = self.status(*state, word.as_deref());
                if self != Self::V1 {
                    body["final"] = state.ends_streams().into();
                }
                ("statusUpdate", "status-update")
            }
            TaskEvent::Part { text, .. } | TaskEvent::Anew(text) => {
                body["artifact"] = json!({"artifactId": event.artifact(), "parts": [self.part(text)]});
                body["append"] = (before && matches!(event, TaskEvent::Part { .. })).into();
                ("artifactUpdate", "artifact-update")
            }
        };
        self.wrapped(name, self.of_kind(kind, body))
    }
}
