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
    fn state(self, state: TaskState) -> &'static str {
        match (self, state) {
            (Self::V1, TaskState::Submitted) => "TASK_STATE_SUBMITTED",
            (Self::V1, TaskState::Working) => "TASK_STATE_WORKING",
            (Self::V1, TaskState::InputRequired) => "TASK_STATE_INPUT_REQUIRED",
            (Self::V1, TaskState::AuthRequired) => "TASK_STATE_AUTH_REQUIRED",
            (Self::V1, TaskState::Completed) => "TASK_STATE_COMPLETED",
            (Self::V1, TaskState::Failed) => "TASK_STATE_FAILED",
            (Self::V1, TaskState::Canceled) => "TASK_STATE_CANCELED",
            (Self::V03 | Self::V02, TaskState::Submitted) => "submitted",
            (Self::V03 | Self::V02, TaskState::Working) => "working",
            (Self::V03 | Self::V02, TaskState::InputRequired) => "input-required",
            (Self::V03 | Self::V02, TaskState::AuthRequired) => "auth-required",
            (Self::V03 | Self::V02, TaskState::Completed) => "completed",
            (Self::V03 | Self::V02, TaskState::Failed) => "failed",
            (Self::V03 | Self::V02, TaskState::Canceled) => "canceled",
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::V1 => json!({"text": text}),
            Self::V03 | Self::V02 => json!({"kind": "text", "text": text}),
        }
    }

    /// A message of the agent.
    fn said(self, text: &str) -> Value {
        match self {
            Self::V1 => json!({"messageId": "said", "role": "ROLE_AGENT", "parts": [self.part(text)]}),
            Self::V03 | Self::V02 => {
                json!({"kind": "message", "messageId": "said", "role": "agent", "parts": [self.part(text)]})
            }
        }
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
        if self != Self::V1 {
            body["kind"] = "task".into();
        }
        body
    }

    /// The task as the first event of a stream.
    pub(super) fn first(self, task: &Task) -> Value {
        match self {
            Self::V1 => json!({"task": self.task(task)}),
            Self::V03 | Self::V02 => self.task(task),
        }
    }

    /// A message as the only event of a stream.
    pub(super) fn only(self, text: &str) -> Value {
        match self {
            Self::V1 => json!({"message": self.said(text)}),
            Self::V03 | Self::V02 => self.said(text),
        }
    }

    /// What the client said, as an event.
    pub(super) fn echo(self, task: &Task, message: &Value) -> Value {
        let mut echoed = message.clone();
        echoed["taskId"] = task.id.clone().into();
        echoed["contextId"] = task.context.clone().into();
        match self {
            Self::V1 => json!({"message": echoed}),
            Self::V03 | Self::V02 => echoed,
        }
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
        match self {
            Self::V1 => json!({name: body}),
            Self::V03 | Self::V02 => {
                body["kind"] = kind.into();
                body
            }
        }
    }
}
