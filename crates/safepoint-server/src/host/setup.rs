//! What the store keeps with a session for the server: whose it is, and which agent works in it.

use std::sync::Arc;

use safepoint::{
    History,
    history::Message,
    message::{AssistantMessage, UserMessage},
    store::SessionRow,
};
use serde::{Deserialize, Serialize};

/// An agent by its name, and a principal by its. What other programs keep there too is left alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) agent: String,
    pub(crate) principal: String,
    /// The digest of the item that it was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) item: Option<String>,
    /// What was said before it: the conversation begins with that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier: Vec<Message>,
    /// The name that a client of a protocol gave to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) named: Option<String>,
}

/// A message from before the session. Exhaustive: by a person, or by an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EarlierMessage {
    User(String),
    Assistant(String),
}

impl EarlierMessage {
    /// The message of a conversation.
    pub(crate) fn message(&self) -> Message {
        match self {
            Self::User(text) => Message::User(UserMessage::from(text.as_str())),
            Self::Assistant(text) => Message::Assistant(Arc::new(AssistantMessage::of_text(text.as_str()))),
        }
    }
}

/// A conversation of these messages.
pub(crate) fn history(earlier: impl IntoIterator<Item = Message>) -> History {
    let mut history = History::new();
    earlier.into_iter().for_each(|message| history.push(message));
    history
}

impl Setup {
    /// `None`: the session is none of a server.
    pub(crate) fn read(row: &SessionRow) -> Option<Self> {
        serde_json::from_str(&row.setup).ok()
    }

    /// The same; a session of another program is no agent's of the server, and only a token that sees all sees it.
    pub(crate) fn of(row: &SessionRow) -> Self {
        Self::read(row).unwrap_or_default()
    }

    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).expect("texts are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7.6: it is stored, so a later release reads the same text.
    #[test]
    fn its_text_is_as_it_was() {
        let setup = Setup { agent: "helper".into(), principal: "ci".into(), ..Setup::default() };
        assert_eq!(setup.write(), r#"{"agent":"helper","principal":"ci"}"#);
        let with = Setup { item: Some("0a".into()), ..setup };
        assert_eq!(with.write(), r#"{"agent":"helper","principal":"ci","item":"0a"}"#);
        let said = EarlierMessage::User("a".into()).message();
        let with = Setup { earlier: vec![said], ..with };
        let text =
            r#"{"agent":"helper","principal":"ci","item":"0a","earlier":[{"role":"user","text":"a"}]}"#;
        assert_eq!(with.write(), text);
        assert_eq!(serde_json::from_str::<Setup>(&with.write()).unwrap(), with);
        let named = Setup { item: None, earlier: Vec::new(), named: Some("trip".into()), ..with };
        assert_eq!(named.write(), r#"{"agent":"helper","principal":"ci","named":"trip"}"#);
        assert_eq!(serde_json::from_str::<Setup>(&named.write()).unwrap(), named);
    }
}
