//! The encodings, 1.0, 0.3 and 0.2: the adapter writes each differently, and reads all in the same way.

use serde_json::{Map, Value, json};

/// An encoding; a later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wire {
    /// As 0.2.5 has it.
    V02,
    V03,
    V1,
}

/// The requests to a remote agent; each has a name on each wire.
#[derive(Clone, Copy, Debug)]
pub(super) enum Method {
    Send,
    SendAndStream,
    Get,
    Cancel,
    Subscribe,
}

/// A message to a remote agent.
pub(super) struct Message<'a> {
    pub(super) id: String,
    pub(super) text: &'a str,
    pub(super) task: Option<&'a str>,
    pub(super) context: Option<&'a str>,
}

/// An event of a remote agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// A task as it stands: all its artifacts, each with its id.
    Task { of: Of, status: Status, artifacts: Vec<(String, String)> },
    /// The task has a new state.
    Status { of: Of, status: Status },
    /// A part of an artifact.
    Part { of: Of, artifact: String, text: String, joins: Joins },
    /// A message: the remote agent's own, or an echo of ours, which some servers send back.
    Message { is_echo: bool, text: String },
}

/// The task and the conversation that an event names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Of {
    pub(super) task: String,
    pub(super) context: String,
}

/// A task's state, and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) state: State,
    pub(super) word: String,
    /// Since when, in the remote agent's notation; may be empty.
    pub(super) since: String,
}

/// A task's state. An unknown one counts as working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Rejected,
    Canceled,
}

impl State {
    /// Whether by the protocol no other state follows.
    pub(super) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Rejected | Self::Canceled)
    }
}

/// How a part joins its artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joins {
    /// It replaces all text of the artifact.
    Replaces,
    /// It goes behind the text of the artifact.
    Appends,
}

impl Event {
    /// What the event names; a message names nothing.
    pub(super) fn of(&self) -> Option<&Of> {
        match self {
            Self::Task { of, .. } | Self::Status { of, .. } | Self::Part { of, .. } => Some(of),
            Self::Message { .. } => None,
        }
    }
}

impl Wire {
    /// The wire of a version; none if it is not supported.
    pub(super) fn of(version: &str) -> Option<Self> {
        let mut numbers = version.trim().split('.').map(str::parse::<u32>);
        match (numbers.next()?.ok()?, numbers.next().and_then(Result::ok).unwrap_or_default()) {
            (1, _) => Some(Self::V1),
            (0, 0 | 1) => None,
            (0, 2) => Some(Self::V02),
            (0, _) => Some(Self::V03),
            _ => None,
        }
    }

    /// The version that a request names; older wires have no such field.
    pub(super) fn version(self) -> Option<&'static str> {
        match self {
            Self::V1 => Some("1.0"),
            Self::V03 => Some("0.3"),
            Self::V02 => None,
        }
    }

    pub(super) fn method(self, method: Method) -> &'static str {
        let (new, old) = match method {
            Method::Send => ("SendMessage", "message/send"),
            Method::SendAndStream => ("SendStreamingMessage", "message/stream"),
            Method::Get => ("GetTask", "tasks/get"),
            Method::Cancel => ("CancelTask", "tasks/cancel"),
            Method::Subscribe => ("SubscribeToTask", "tasks/resubscribe"),
        };
        if self == Self::V1 { new } else { old }
    }

    /// The parameters of a message. Without a stream, the remote agent answers at once with a task.
    pub(super) fn message(self, message: &Message<'_>) -> Value {
        let mut encoded = match self {
            Self::V1 => json!({"role": "ROLE_USER", "parts": [{"text": message.text}]}),
            Self::V03 | Self::V02 => {
                json!({"kind": "message", "role": "user", "parts": [{"kind": "text", "text": message.text}]})
            }
        };
        encoded["messageId"] = message.id.as_str().into();
        for (name, value) in [("taskId", message.task), ("contextId", message.context)] {
            if let Some(value) = value {
                encoded[name] = value.into();
            }
        }
        let configuration = match self {
            Self::V1 => json!({"returnImmediately": true}),
            // In 0.2 a message must name the accepted kinds of output.
            Self::V03 | Self::V02 => {
                json!({"blocking": false, "acceptedOutputModes": ["text/plain", "text", "application/json"]})
            }
        };
        json!({"message": encoded, "configuration": configuration})
    }
}

/// The event in a result of a stream or of a message; none if it is not of the protocol.
pub(super) fn event(result: &Value) -> Option<Event> {
    let kind = result["kind"].as_str();
    for (member, name) in [
        ("task", "task"),
        ("message", "message"),
        ("statusUpdate", "status-update"),
        ("artifactUpdate", "artifact-update"),
    ] {
        let value = if kind == Some(name) { result } else { &result[member] };
        if !value.is_object() || (kind.is_some() && kind != Some(name)) {
            continue;
        }
        return match name {
            "task" => task(value),
            "message" => Some(message(value)),
            "status-update" => {
                Some(Event::Status { of: of(value, "taskId"), status: status(&value["status"])? })
            }
            _ => part(value),
        };
    }
    None
}

/// A task by itself.
pub(super) fn task(value: &Value) -> Option<Event> {
    let status = status(&value["status"])?;
    let artifacts = value["artifacts"].as_array().into_iter().flatten();
    let artifacts = artifacts.map(|artifact| (id_of(artifact), text_of(artifact))).collect();
    Some(Event::Task { of: of(value, "id"), status, artifacts })
}

fn message(value: &Value) -> Event {
    let is_echo = matches!(value["role"].as_str(), Some("user" | "ROLE_USER"));
    Event::Message { is_echo, text: text_of(value) }
}

fn part(value: &Value) -> Option<Event> {
    let artifact = value.get("artifact").filter(|artifact| artifact.is_object())?;
    let joins = if value["append"].as_bool().unwrap_or(false) { Joins::Appends } else { Joins::Replaces };
    Some(Event::Part { of: of(value, "taskId"), artifact: id_of(artifact), text: text_of(artifact), joins })
}

fn of(value: &Value, task: &str) -> Of {
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Of { task: text(task), context: text("contextId") }
}

fn id_of(artifact: &Value) -> String {
    artifact["artifactId"].as_str().unwrap_or_default().to_owned()
}

fn status(value: &Value) -> Option<Status> {
    let name = value["state"].as_str()?;
    let name = name.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-");
    let state = match name.as_str() {
        "input-required" => State::InputRequired,
        "auth-required" => State::AuthRequired,
        "completed" => State::Completed,
        "failed" => State::Failed,
        "rejected" => State::Rejected,
        "canceled" | "cancelled" => State::Canceled,
        _ => State::Working,
    };
    let since = value["timestamp"].as_str().unwrap_or_default().to_owned();
    Some(Status { state, word: text_of(&value["message"]), since })
}

/// The text of a message or an artifact; other content appears as the name of its kind.
fn text_of(value: &Value) -> String {
    let parts = value["parts"].as_array().into_iter().flatten();
    parts.filter_map(Value::as_object).map(text_of_part).collect()
}

fn text_of_part(part: &Map<String, Value>) -> String {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return text.to_owned();
    }
    if let Some(data) = part.get("data") {
        let kind = part.get("mediaType").or_else(|| part.get("metadata")?.get("mimeType"));
        return format!("[{}: {data}]", kind.and_then(Value::as_str).unwrap_or("data"));
    }
    let inside = part.get("file").and_then(Value::as_object).unwrap_or(part);
    let word = |name: &str| inside.get(name).and_then(Value::as_str);
    let name = word("filename").or(word("name")).unwrap_or("a file");
    match word("url").or(word("uri")).or(word("fileWithUri")) {
        Some(url) => format!("[{name}: {url}]"),
        None => format!("[{name}, not shown]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S10.1: both wires carry the same events.
    #[test]
    fn what_is_read_does_not_depend_on_the_wire() {
        let new = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {
            "state": "TASK_STATE_INPUT_REQUIRED", "message": {"role": "ROLE_AGENT", "parts": [{"text": "which?"}]}}}});
        let old = json!({"kind": "status-update", "taskId": "t", "contextId": "c", "final": true, "status": {
            "state": "input-required",
            "message": {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "which?"}]}}});
        assert_eq!(event(&new), event(&old));
        let Some(Event::Status { of, status }) = event(&new) else { panic!("it is a status") };
        assert_eq!(
            (of.task.as_str(), status.state, status.word.as_str()),
            ("t", State::InputRequired, "which?")
        );
    }

    /// S10.41: content that is not text is named by its kind, and not lost silently.
    #[test]
    fn a_part_that_is_no_text_is_named() {
        let value = json!({"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a", "parts": [
            {"text": "see "}, {"data": {"n": 1}}, {"data": [2], "mediaType": "application/geo+json"}, {"url": "http://a/b.pdf", "filename": "b.pdf"}, {"raw": "AAAA"},
            {"kind": "file", "file": {"name": "c.png", "bytes": "AAAA"}},
        ]}}});
        let Some(Event::Part { text, .. }) = event(&value) else { panic!("it is a part") };
        let named = "[b.pdf: http://a/b.pdf][a file, not shown][c.png, not shown]";
        assert_eq!(text, format!("see [data: {{\"n\":1}}][application/geo+json: [2]]{named}"));
    }

    /// S10.41: the adapter writes the encoding of the agent's version.
    #[test]
    fn a_version_is_spoken_to_as_it_is() {
        let of = |version| Wire::of(version);
        assert_eq!([of("1.0"), of("0.3.0"), of("0.2.5")], [Some(Wire::V1), Some(Wire::V03), Some(Wire::V02)]);
        assert_eq!([of("0.1.0"), of("2.0"), of("soon")], [None; 3]);
        let message = Message { id: "m".into(), text: "hi", task: None, context: None };
        assert!(Wire::V02.message(&message)["configuration"]["acceptedOutputModes"].is_array());
        assert_eq!(Wire::V02.version(), None);
    }

    /// A value outside the protocol is not an event.
    #[test]
    fn what_is_not_of_the_protocol_is_no_event() {
        for value in
            [json!(null), json!("task"), json!({"task": 1}), json!({"kind": "other"}), json!({"task": {}})]
        {
            assert_eq!(event(&value), None, "{value}");
        }
    }
}
