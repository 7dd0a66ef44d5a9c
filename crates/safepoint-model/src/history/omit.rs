//! A conversation whose oldest part is no longer sent: all of it is kept, and what is sent is a view (S12.2).
//!
//! **Invariants**: the omitted part ends before a message, never between a call and its result; omitted
//! entries stay in the history.

use std::{borrow::Cow, ops::Range, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Entries, History, Message};
use crate::message::{AssistantMessage, Block, Part};

/// The part of a conversation that a model no longer gets, and what it gets instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Omitted {
    /// How many [entries](History::entries), from the first on.
    pub entries: usize,
    /// From this entry on, user messages are sent anyway: they belong to the running turn.
    pub keeps_from: usize,
    /// How many of the model's messages are left out.
    pub rounds: u32,
    /// What the model gets in their place.
    pub by: OmissionKind,
    /// The replacement as an entry, so that it has the same bytes each time.
    pub entry: Arc<Message>,
}

/// What replaces omitted messages. Exhaustive: a plain note, or a model's summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OmissionKind {
    /// A note that says how much is missing.
    Note,
    /// A summary that a model wrote.
    Summary,
}

/// A shortening as recorded: what is omitted, and the estimated tokens of a request before and after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Omission {
    /// What is omitted from now on.
    pub omitted: Omitted,
    /// Tokens of the next request as it would have been.
    pub tokens_before: u64,
    /// Tokens of the next request as it is.
    pub tokens_after: u64,
}

/// Which part of a conversation is sent, and its size. By default all of it, and no size is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct View {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    omitted: Option<Arc<Omitted>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
}

/// How many tokens a request had that held this much of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Measured {
    tokens: u64,
    entries: usize,
}

impl Omitted {
    /// The text that the model gets in place of the omitted part.
    #[must_use]
    pub fn text(&self) -> &str {
        match &*self.entry {
            Message::User(message) => &message.text,
            Message::Assistant(_) | Message::Results { .. } => "",
        }
    }
}

impl History {
    /// The omitted part, if there is one.
    #[must_use]
    pub fn omitted(&self) -> Option<&Omitted> {
        self.view.omitted.as_deref()
    }

    /// Makes all of it sent again, for example to a model with a larger window.
    pub fn restore_omitted(&mut self) {
        self.view = View::default();
    }

    /// The conversation as a model gets it: without the omitted part, with its replacement.
    #[must_use]
    pub fn sent(&self) -> Cow<'_, Self> {
        let Some(omitted) = self.omitted() else { return Cow::Borrowed(self) };
        let said = said_in(&self.entries, omitted.keeps_from..omitted.entries);
        let sent = [&omitted.entry].into_iter().chain(said).chain(self.entries.range(omitted.entries..));
        let entries = Entries::only_sent(sent.cloned());
        Cow::Owned(Self { entries, tail: self.tail.clone(), ..Self::default() })
    }

    /// Omits more. The entries are kept.
    pub fn shorten(&mut self, shortened: &Omission) {
        self.view.omitted = Some(Arc::new(shortened.omitted.clone()));
        self.view.measured = Some(Measured { tokens: shortened.tokens_after, entries: self.entries.len() });
    }

    /// Sets the provider's token count of the conversation so far, instructions and tools included.
    pub fn measure(&mut self, tokens: u64) {
        self.view.measured = Some(Measured { tokens, entries: self.entries.len() });
    }

    /// What is known beside the entries: for a journal that writes each entry once.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The estimated tokens of a request with it: the last known count, plus what was added since, by its
    /// bytes. Without a count, all of it by its bytes, including `fixed` bytes beside it.
    #[must_use]
    pub fn tokens(&self, fixed: u64) -> u64 {
        match &self.view.measured {
            Some(Measured { tokens, entries }) if *entries <= self.entries.len() => tokens
                .saturating_add(tokens_of(self.entries.range(*entries..).map(|entry| bytes(entry)).sum())),
            Some(_) | None => tokens_of(fixed.saturating_add(self.sent().bytes())),
        }
    }

    /// Bytes of all entries, roughly as a wire would write them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| bytes(entry)).sum()
    }

    /// Whether the omitted part is valid: it ends before a message, and inside the conversation.
    pub(crate) fn omits_whole_rounds(&self) -> bool {
        self.omitted().is_none_or(|omitted| {
            let is_user = matches!(&*omitted.entry, Message::User(message) if !message.is_blank());
            let end = self.entries.get(omitted.entries);
            is_user && end.is_some_and(|entry| !matches!(**entry, Message::Results { .. }))
        })
    }
}

/// The messages of people in a range.
pub fn said_in(entries: &Entries, range: Range<usize>) -> impl Iterator<Item = &Arc<Message>> {
    entries.range(range).filter(|entry| matches!(***entry, Message::User(_)))
}

/// An estimate, meant to err upwards: English has about four bytes a token, source code and JSON about three, and most
/// other scripts about three bytes a character and a character a token.
#[must_use]
pub fn tokens_of(bytes: u64) -> u64 {
    const BYTES_PER_TOKEN: u64 = 3;
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The inverse of [`tokens_of`].
#[must_use]
pub fn bytes_of(tokens: u64) -> u64 {
    const BYTES_PER_TOKEN: u64 = 3;
    tokens.saturating_mul(BYTES_PER_TOKEN)
}

/// Bytes of one entry, with what each message costs beside its text.
pub fn bytes(entry: &Message) -> u64 {
    const FRAME: u64 = 16;
    let sum = match entry {
        Message::User(message) => {
            message.text.len() as u64 + message.parts.iter().map(Part::weight).sum::<u64>()
        }
        Message::Assistant(message) => of_message(message),
        Message::Results { results } => results
            .iter()
            .map(|result| {
                let parts: u64 = result.parts.iter().map(Part::weight).sum();
                (result.text.len() + result.call_id.as_str().len()) as u64 + parts + FRAME
            })
            .sum(),
    };
    sum + FRAME
}

/// Reasoning goes back to a model only with its seal, so without one it has no weight.
fn of_message(message: &AssistantMessage) -> u64 {
    let of_block = |block: &Block| match block {
        Block::Text { text } => text.len(),
        Block::Reasoning(reasoning) => reasoning.seal.as_ref().map_or(0, |seal| seal.to_string().len()),
        Block::Provider(block) => block.weight(),
        Block::Call(call) => call.name.len() + call.args.len() + call.id.as_str().len(),
    };
    message.blocks.iter().map(|block| of_block(block) as u64).sum()
}
