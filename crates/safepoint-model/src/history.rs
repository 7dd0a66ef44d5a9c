//! A conversation as the next model call will see it, and how its open ends are closed (S5).
//!
//! **Invariants**: in `entries` every assistant message with calls is followed by its results, complete and
//! in the order of the calls. Anything else is in `tail`, and only there.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::{
    ids::CallId,
    is_default,
    message::{AssistantMessage, CallResult, ResultStatus, UserMessage},
    tagged::{self, Tagged},
};

mod call_ids;
mod close;
mod earlier;
mod entries;
pub mod note;
pub(crate) mod omit;
mod repair;

pub use earlier::Earlier;
pub use entries::{Entries, Iter};
use omit::View;
pub use omit::{Omission, OmissionKind, Omitted};
pub use repair::Repair;

/// One step of a conversation. Exhaustive: every wire must place each of them.
///
/// ```
/// use safepoint::{History, history::Message};
/// fn print(history: &History) {
///     for message in history.entries() {
///         match &**message {
///             Message::User(said) => println!("> {}", said.text),
///             Message::Assistant(said) => println!("{}", said.text()),
///             Message::Results { results } => results.iter().for_each(|result| println!("  {}", result.text)),
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A person's message.
    User(UserMessage),
    /// A model's message; shared, not copied.
    Assistant(Arc<AssistantMessage>),
    /// The results of all calls of the message before, in their order.
    Results {
        /// One result a call.
        results: Vec<CallResult>,
    },
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        tagged::read(from)
    }
}

impl<'de> Tagged<'de> for Message {
    const TAG: &'static str = "role";

    fn read<D: Deserializer<'de>>(name: &str, fields: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Results {
            results: Vec<CallResult>,
        }
        match name {
            "user" => UserMessage::deserialize(fields).map(Self::User),
            "assistant" => {
                AssistantMessage::deserialize(fields).map(|message| Self::Assistant(Arc::new(message)))
            }
            "results" => Results::deserialize(fields).map(|Results { results }| Self::Results { results }),
            _ => Err(D::Error::unknown_variant(name, &["user", "assistant", "results"])),
        }
    }
}

/// A conversation: cheap to clone, growing at its end, with at most one open end.
///
/// Obtained from `Outcome::history`, stored by you if you like (it is `serde`), and handed
/// to `Agent::run_on`, which closes the open end before it adds the new input.
///
/// ```
/// use safepoint::{Agent, History};
/// /// A chat: each run continues what the run before it left, however that one ended.
/// async fn chat(agent: &Agent, questions: &[&str]) -> History {
///     let mut history = History::new();
///     for question in questions {
///         history = agent.run_on(history, *question).await.history().clone();
///     }
///     history
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    entries: Entries,
    #[serde(default)]
    tail: OpenEnd,
    #[serde(default, skip_serializing_if = "is_default")]
    view: View,
}

/// The open end of a conversation: what a stop, a limit or a failure left. Exhaustive: closing must handle each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "tail", rename_all = "snake_case")]
pub enum OpenEnd {
    /// Nothing is open.
    #[default]
    Whole,
    /// The model's message was cut while it streamed.
    Cut {
        /// What had arrived: its complete calls never started.
        message: Arc<AssistantMessage>,
    },
    /// The message is whole, some of its calls have no result.
    Open {
        /// The message.
        message: Arc<AssistantMessage>,
        /// What became of its calls, in their order.
        calls: Vec<OpenCall>,
    },
}

/// What is known of one call of an open round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// What the model will see if a new turn closes it.
    pub result: CallResult,
}

impl History {
    /// An empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The closed part, oldest first, what is [left out](History::omitted) of what a model is sent included.
    #[must_use]
    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    /// The open end.
    #[must_use]
    pub fn tail(&self) -> &OpenEnd {
        &self.tail
    }

    /// Adds an entry to the closed part.
    ///
    /// Building a history by hand is allowed; [`History::repair`] corrects what does not fit before use.
    pub fn push(&mut self, entry: Message) {
        self.entries.push(Arc::new(entry));
    }

    /// The history that begins with the first `shared` entries of this one, and continues with these.
    #[must_use]
    pub fn continued(&self, shared: usize, entries: Vec<Arc<Message>>, view: View) -> Self {
        let mut all = self.entries.first_of(shared);
        entries.into_iter().for_each(|entry| all.push(entry));
        Self { entries: all, view, ..Self::default() }
    }

    /// Sets the open end.
    pub fn leave_open(&mut self, tail: OpenEnd) {
        self.tail = tail;
    }

    /// Whether a call in the closed part has this id.
    #[must_use]
    pub fn has_call(&self, id: &CallId) -> bool {
        self.entries.has_call(id)
    }

    /// The result of the last call, if nothing came after it and it is not an error.
    #[must_use]
    pub fn last_result(&self) -> Option<Arc<String>> {
        let last = match (&self.tail, self.entries.last().map(|last| &**last)) {
            (OpenEnd::Open { calls, .. }, _) => &calls.last()?.result,
            (OpenEnd::Whole, Some(Message::Results { results })) => results.last()?,
            (OpenEnd::Whole | OpenEnd::Cut { .. }, _) => return None,
        };
        (last.verdict == ResultStatus::Ok).then(|| Arc::clone(&last.text))
    }

    /// The last text that the model said, if any.
    #[must_use]
    pub fn last_text(&self) -> Option<String> {
        self.last_message().map(|message| message.text().into_owned())
    }

    /// The last message of the model in the closed part.
    #[must_use]
    pub fn last_message(&self) -> Option<&Arc<AssistantMessage>> {
        self.messages().next_back()
    }

    /// The model's messages in the closed part, oldest first.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Arc<AssistantMessage>> {
        self.entries.iter().filter_map(|entry| match &**entry {
            Message::Assistant(message) => Some(message),
            Message::User(_) | Message::Results { .. } => None,
        })
    }
}
