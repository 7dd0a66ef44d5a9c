//! A conversation as text, for a remote agent that has lost it.

use super::{History, Message};
use crate::message::ResultStatus;

/// An earlier message of a conversation. Exhaustive: by a person, or by the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// By a person.
    Person(String),
    /// By the agent: an answer, or what it had said when its work was cut off.
    Agent(String),
}

impl History {
    /// The messages before the current input, oldest first.
    #[must_use]
    pub fn earlier(&self) -> Vec<Earlier> {
        let mut said = Vec::new();
        for entry in self.entries() {
            match &**entry {
                Message::User(message) => said.push(Earlier::Person(message.text.clone())),
                Message::Assistant(message) => said.push(Earlier::Agent(message.text().into_owned())),
                // A good result is an answer, and follows as that.
                Message::Results { results } => {
                    let bad = results.iter().filter(|result| result.verdict == ResultStatus::Error);
                    said.extend(bad.map(|result| Earlier::Agent(String::clone(&result.text))));
                }
            }
        }
        said.retain(
            |said| !matches!(said, Earlier::Agent(text) | Earlier::Person(text) if text.trim().is_empty()),
        );
        while let Some(Earlier::Person(_)) = said.last() {
            said.pop();
        }
        said
    }
}
