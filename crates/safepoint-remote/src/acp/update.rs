//! `session/update`: which part is the agent's answer, and which part is reported of its work.

use std::collections::HashMap;

use safepoint::raw::remote::RemoteEvent;
use serde_json::Value;

use super::limits;

/// The agent's tool calls, by name: later updates do not repeat it.
#[derive(Debug, Default)]
pub(super) struct Titles {
    titles: HashMap<String, String>,
}

impl Titles {
    /// The event in an update. Plans, modes and kinds of later releases give none, and are not kept.
    pub(super) fn event(&mut self, update: &Value) -> Option<RemoteEvent> {
        match update["sessionUpdate"].as_str()? {
            "agent_message_chunk" => Some(RemoteEvent::Text(text_of(&update["content"]))),
            "agent_thought_chunk" => Some(RemoteEvent::Thought(text_of(&update["content"]))),
            "tool_call" => {
                self.note(update);
                Some(RemoteEvent::Progress(format!("[{}]\n", self.title(update))))
            }
            "tool_call_update" => {
                self.note(update);
                let status =
                    update["status"].as_str().filter(|status| matches!(*status, "completed" | "failed"))?;
                Some(RemoteEvent::Progress(format!("[{}: {status}]\n", self.title(update))))
            }
            _ => None,
        }
    }

    /// Takes the title, where one is said.
    pub(super) fn note(&mut self, call: &Value) {
        let (Some(id), Some(title)) = (call["toolCallId"].as_str(), call["title"].as_str()) else { return };
        if self.titles.len() < limits::TITLES || self.titles.contains_key(id) {
            self.titles.insert(id.to_owned(), shown(title));
        }
    }

    pub(super) fn title(&self, call: &Value) -> String {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        match self.titles.get(id) {
            Some(title) => title.clone(),
            None => shown(call["title"].as_str().unwrap_or(id)),
        }
    }
}

/// The text of a block; of any other block its kind.
fn text_of(block: &Value) -> String {
    match (block["type"].as_str(), block["text"].as_str()) {
        (Some("text"), Some(text)) => text.to_owned(),
        (Some("resource_link"), _) => format!("[{}]", shown(block["uri"].as_str().unwrap_or("a link"))),
        (Some(kind), _) => format!("[{}]", shown(kind)),
        (None, _) => String::new(),
    }
}

/// A short form of a text, on one line.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = shown.char_indices().nth(limits::SHOWN_CHARS) {
        shown.truncate(at);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_has_its_name_also_when_only_its_number_comes_again() {
        let mut titles = Titles::default();
        let said = |said: Option<RemoteEvent>| match said {
            Some(RemoteEvent::Progress(text) | RemoteEvent::Text(text)) => Some(text),
            _ => None,
        };
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Pay\n the rent"});
        assert_eq!(said(titles.event(&call)).as_deref(), Some("[Pay the rent]\n"));
        let more = json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "in_progress"});
        assert_eq!(said(titles.event(&more)), None);
        let done = json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "failed"});
        assert_eq!(said(titles.event(&done)).as_deref(), Some("[Pay the rent: failed]\n"));
        let image =
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "…"}});
        assert_eq!(said(titles.event(&image)).as_deref(), Some("[image]"));
        assert_eq!(said(titles.event(&json!({"sessionUpdate": "moon_phase"}))), None);
    }

    #[test]
    fn what_is_shown_is_short_and_whole() {
        assert_eq!(shown(&"ä".repeat(500)).chars().count(), limits::SHOWN_CHARS + 1);
    }
}
