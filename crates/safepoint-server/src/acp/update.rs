//! The events of a turn as the updates of this protocol.
//!
//! **Invariants**: a message's text is shown once, whether it came in pieces or as a whole; what is read again is not shown again.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::follow::ShownEvent;

/// The arguments that a title shows, the first that there is.
const SHOWN_ARGUMENTS: [&str; 6] = ["command", "path", "url", "query", "pattern", "text"];
/// How many characters of it.
const SHOWN_CHARS: usize = 80;

/// What was shown of one session by now.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// Whether what the person said is shown too.
    of_both: bool,
    /// The last recorded event.
    seen: Option<u64>,
    /// The message that is shown, by turn and round, and how many bytes of it were.
    message: (u64, u64),
    said: usize,
    /// The calls that the editor knows.
    calls: HashSet<String>,
}

impl Updates {
    /// Of what was said on both sides.
    pub(super) fn of_both() -> Self {
        Self { of_both: true, ..Self::default() }
    }

    /// The update for what the person said.
    pub(super) fn said(text: &str) -> Value {
        chunk("user_message_chunk", text)
    }

    /// The update for an event, if it has one.
    pub(super) fn of(&mut self, event: &ShownEvent) -> Option<Value> {
        if event.position.is_some_and(|position| self.seen.is_some_and(|seen| position <= seen)) {
            return None;
        }
        self.seen = event.position.or(self.seen);
        if !event.is_root() {
            return None;
        }
        let data = &event.data;
        let text = data["text"].as_str().unwrap_or_default();
        match event.kind.as_str() {
            "steer_delivered" if self.of_both => {
                let said = data["steers"]
                    .as_array()?
                    .iter()
                    .filter_map(|steer| steer.as_str().or(steer["text"].as_str()));
                Some(Self::said(&said.collect::<Vec<_>>().join("\n")))
            }
            "text_delta" => {
                self.begin_message(data);
                self.said += text.len();
                Some(chunk("agent_message_chunk", text))
            }
            // The whole of the message up to here.
            "partial" | "model_ended" => {
                self.begin_message(data);
                let rest = text.get(self.said..).filter(|rest| !rest.is_empty())?;
                self.said = text.len();
                Some(chunk("agent_message_chunk", rest))
            }
            "reasoning_delta" => Some(chunk("agent_thought_chunk", text)),
            "approval_asked" => self.call(data, "pending"),
            "call_started" => self.call(data, "in_progress"),
            "call_ended" => self.call_ended(data),
            _ => None,
        }
    }

    fn begin_message(&mut self, data: &Value) {
        let of = |name: &str| data[name].as_u64().unwrap_or_default();
        let message = (of("turn"), of("round"));
        if self.message != message {
            (self.message, self.said) = (message, 0);
        }
    }

    fn call(&mut self, data: &Value, status: &str) -> Option<Value> {
        let id = call_id(data["turn"].as_u64()?, data["call_id"].as_str()?);
        if !self.calls.insert(id.clone()) {
            return Some(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status}));
        }
        Some(json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "status": status,
            "title": title(data["name"].as_str().unwrap_or_default(), &data["args"]),
            "kind": kind(&data["effect"]), "rawInput": data["args"],
        }))
    }

    fn call_ended(&mut self, data: &Value) -> Option<Value> {
        let id = call_id(data["turn"].as_u64()?, data["call_id"].as_str()?);
        let status = if data["status"] == "completed" { "completed" } else { "failed" };
        let output = data["output"].as_str().unwrap_or_default();
        let mut update = json!({
            "toolCallId": id, "status": status,
            "content": [{"type": "content", "content": {"type": "text", "text": output}}],
            "_meta": {"safepoint": {"status": data["status"]}},
        });
        let known = !self.calls.insert(id);
        update["sessionUpdate"] = json!(if known { "tool_call_update" } else { "tool_call" });
        if !known {
            update["title"] = data["name"].clone();
        }
        Some(update)
    }
}

/// What the editor knows a call by: the model's name of it is only its own turn's.
pub(super) fn call_id(turn: u64, call: &str) -> String {
    format!("turn-{turn}/{call}")
}

/// A call in a few words.
pub(super) fn title(name: &str, args: &Value) -> String {
    let Some(shown) = SHOWN_ARGUMENTS.iter().find_map(|field| args[*field].as_str()) else {
        return name.to_owned();
    };
    let mut shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = shown.char_indices().nth(SHOWN_CHARS) {
        shown.truncate(at);
        shown.push('…');
    }
    format!("{name}: {shown}")
}

/// What a call does, as far as its declaration says.
fn kind(effect: &Value) -> &'static str {
    if effect == "read_only" { "read" } else { "other" }
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(position: Option<u64>, kind: &str, mut data: Value) -> ShownEvent {
        data["turn"] = json!(1);
        ShownEvent { position, kind: kind.to_owned(), data }
    }

    fn text_of(update: Option<Value>) -> Option<String> {
        Some(update?["content"]["text"].as_str()?.to_owned())
    }

    /// S13.17: in pieces, as a part, as a whole, and again: each byte of a message is shown once.
    #[test]
    fn a_message_is_shown_once() {
        let mut updates = Updates::default();
        let mut said = |position, kind: &str, text: &str| {
            text_of(updates.of(&shown(position, kind, json!({"round": 1, "text": text}))))
        };
        assert_eq!(said(None, "text_delta", "Grüß"), Some("Grüß".into()));
        assert_eq!(said(None, "partial", "Grüße"), Some("e".into()));
        assert_eq!(said(Some(4), "model_ended", "Grüße."), Some(".".into()));
        assert_eq!(said(Some(4), "model_ended", "Grüße."), None, "it was read again");
        let next = shown(Some(9), "model_ended", json!({"round": 2, "text": "Next"}));
        assert_eq!(text_of(updates.of(&next)), Some("Next".into()));
    }

    #[test]
    fn a_call_is_made_once_and_updated_then() {
        let mut updates = Updates::default();
        let call = json!({"call_id": "c", "name": "shell", "args": {"command": "ls  -l"}});
        let asked = updates.of(&shown(Some(1), "approval_asked", call.clone())).unwrap();
        assert_eq!((&asked["sessionUpdate"], &asked["title"]), (&json!("tool_call"), &json!("shell: ls -l")));
        let began = updates.of(&shown(Some(2), "call_started", call)).unwrap();
        assert_eq!(
            (&began["sessionUpdate"], &began["status"]),
            (&json!("tool_call_update"), &json!("in_progress"))
        );
        let ended = json!({"call_id": "c", "name": "shell", "status": "killed", "output": "cut"});
        let ended = updates.of(&shown(Some(3), "call_ended", ended)).unwrap();
        assert_eq!((&ended["status"], &ended["toolCallId"]), (&json!("failed"), &json!("turn-1/c")));
        let denied = json!({"call_id": "d", "name": "shell", "status": "denied", "output": "no"});
        let denied = updates.of(&shown(Some(4), "call_ended", denied)).unwrap();
        assert_eq!(denied["sessionUpdate"], "tool_call", "a call that never began is shown all the same");
    }

    #[test]
    fn a_run_below_is_not_the_agents_own_word() {
        let child = shown(None, "text_delta", json!({"path": ["call_1"], "round": 1, "text": "psst"}));
        assert_eq!(Updates::default().of(&child), None);
    }
}
