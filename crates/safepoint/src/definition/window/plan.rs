//! Whether a conversation fits its window, and where it is cut if not. Pure: the same history gives the same cut.

use std::sync::Arc;

use super::{OnFull, WindowMeter};
use crate::value::{
    history::{
        Entries, History, Message, Omission, OmissionKind, Omitted, bytes, bytes_of, said_in, tokens_of,
    },
    message::UserMessage,
};

/// Where a conversation is cut: what is left out, and the tokens of the request as it would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) entries: usize,
    keeps_from: usize,
    tokens: u64,
    /// The room that the rest fits in.
    room: u64,
}

/// Once it is full, it is cut to this part of its room, so that the next rounds fit and the provider's cache holds.
const KEPT_PART: u64 = 2;
/// Of a conversation that is compacted, at most this part stays as it is.
const COMPACTED_KEPT: u64 = 8;
/// Of a conversation that was refused, at most this many parts are kept.
const REFUSED_KEPT: u64 = 3;
/// Of this many.
const REFUSED_PARTS: u64 = 4;

impl WindowMeter {
    /// Where the conversation must be cut; `None` if it fits as it is.
    ///
    /// # Errors
    /// It cannot be made to fit, and why.
    pub(crate) fn fit(&self, history: &History) -> Result<Option<Cut>, String> {
        let tokens = history.tokens(self.fixed);
        let room = self.window.room();
        if tokens <= room {
            return Ok(None);
        }
        let window = self.window.tokens;
        if let OnFull::Refuse = self.window.on_full {
            return Err(format!(
                "the conversation has about {tokens} tokens; the model's window of {window} leaves room for {room}"
            ));
        }
        self.cut(history, tokens, room).map(Some).map_err(|least| {
            format!(
                "the newest messages alone have about {least} tokens; the model's window of {window} leaves room \
                 for {room}"
            )
        })
    }

    /// Where the conversation must be cut if the provider has refused it as too long, although it fits by what is known:
    /// the window is smaller than that, or the estimate too low.
    ///
    /// # Errors
    /// Nothing can be left out, and why.
    pub(crate) fn fit_refused(&self, history: &History) -> Result<Cut, String> {
        let tokens = history.tokens(self.fixed);
        let room = self.window.room().min(tokens / REFUSED_PARTS * REFUSED_KEPT);
        self.cut(history, tokens, room).map_err(|least| {
            format!(
                "the provider refused the conversation as too long, and of its about {tokens} tokens the newest messages \
                 alone have about {least}"
            )
        })
    }

    /// Where the conversation is cut to be compacted; `None` if nothing stands before the run's own input, or all of that is
    /// summarised already.
    pub(crate) fn compaction(&self, history: &History) -> Option<Cut> {
        let tokens = history.tokens(self.fixed);
        let kept = history.sent().bytes() / COMPACTED_KEPT;
        let all = places(history);
        let fits = |(_, rest): &&(usize, u64)| *rest <= kept;
        let (entries, _) = *all.iter().find(fits).or(all.last())?;
        // What fitted the model until now may be read at once.
        let room = self.window.room().min(tokens);
        Some(Cut { entries, keeps_from: entries, tokens, room })
    }

    /// The first place behind which the rest is small enough; otherwise the last one, if the rest fits at
    /// all. User messages of this turn are kept; if nothing fits beside them, only the newest message is
    /// kept.
    fn cut(&self, history: &History, tokens: u64, room: u64) -> Result<Cut, u64> {
        let entries = history.entries();
        let known = (tokens, self.fixed + history.sent().bytes());
        let mut least = tokens;
        for keeps_from in [turn_start(entries), newest_said(entries)] {
            let mut fitting = None;
            for (at, rest) in places(history) {
                let said: u64 = said_in(entries, keeps_from..at).map(|entry| bytes(entry)).sum();
                let after = tokens_like(known, self.fixed + self.stand_in(room) + said + rest);
                least = least.min(after);
                if after <= room {
                    fitting = Some(Cut { entries: at, keeps_from, tokens, room });
                }
                if after <= room / KEPT_PART {
                    break;
                }
            }
            if let Some(cut) = fitting {
                return Ok(cut);
            }
        }
        Err(least)
    }

    /// Bytes that are left for what stands in the place of the rest.
    fn stand_in(&self, room: u64) -> u64 {
        const NOTE: u64 = 200;
        const SUMMARY_PART: u64 = 8;
        const MOST_OF_SUMMARY: u64 = 6000;
        match self.window.on_full {
            OnFull::Refuse | OnFull::DropOldest => NOTE,
            OnFull::Summarise(_) => bytes_of(room / SUMMARY_PART).min(MOST_OF_SUMMARY),
        }
    }

    /// The most bytes that a summariser is given to read.
    pub(crate) fn readable(&self, cut: &Cut) -> u64 {
        bytes_of(cut.room)
    }

    /// The shortening by this cut, with a note in place of the omitted part.
    pub(crate) fn noted(&self, history: &History, cut: &Cut) -> Omission {
        self.shortened(history, cut, OmissionKind::Note, "is left out here: it does not fit.]")
    }

    /// The same, with a summary.
    pub(crate) fn summed_up(&self, history: &History, cut: &Cut, summary: &str) -> Omission {
        let why = if self.is_compacting() { "was compacted." } else { "does not fit." };
        let text = format!("{why} A summary of it:]\n\n{summary}");
        self.shortened(history, cut, OmissionKind::Summary, &text)
    }

    fn shortened(&self, history: &History, cut: &Cut, by: OmissionKind, text: &str) -> Omission {
        let entries = history.entries();
        let rounds = rounds(entries.range(..cut.entries));
        let text = format!("[The beginning of this conversation, {rounds} of your messages, {text}");
        let entry = Arc::new(Message::User(UserMessage::from(text)));
        let known = (cut.tokens, self.fixed + history.sent().bytes());
        let said =
            said_in(entries, cut.keeps_from..cut.entries).chain(entries.range(cut.entries..)).chain([&entry]);
        let tokens_after = tokens_like(known, self.fixed + said.map(|entry| bytes(entry)).sum::<u64>());
        let omitted = Omitted { entries: cut.entries, keeps_from: cut.keeps_from, rounds, by, entry };
        Omission { omitted, tokens_before: cut.tokens, tokens_after }
    }
}

/// How many tokens this provider makes of `bytes`, if it makes `known_tokens` of `known_bytes`.
fn tokens_like((known_tokens, known_bytes): (u64, u64), bytes: u64) -> u64 {
    if known_bytes == 0 {
        return tokens_of(bytes);
    }
    let scaled = (u128::from(bytes) * u128::from(known_tokens)).div_ceil(u128::from(known_bytes));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Where a conversation may be cut, oldest first, each with the bytes behind it: before a message, behind what is left
/// out already, and not behind the newest round or the newest message.
fn places(history: &History) -> Vec<(usize, u64)> {
    let entries = history.entries();
    let from = history.omitted().map_or(0, |omitted| omitted.entries);
    let mut behind = 0;
    let mut places = Vec::new();
    for at in (from + 1..entries.len()).rev() {
        behind += bytes(&entries[at]);
        if !matches!(*entries[at], Message::Results { .. }) {
            places.push((at, behind));
        }
    }
    places.reverse();
    places
}

/// Where the running turn begins: with the last user message that follows a final answer.
fn turn_start(entries: &Entries) -> usize {
    let follows_an_answer = |at: &usize| match &*entries[at - 1] {
        Message::Assistant(message) => message.calls().next().is_none(),
        Message::User(_) | Message::Results { .. } => false,
    };
    let is_said = |at: &usize| matches!(*entries[*at], Message::User(_));
    (1..entries.len()).rev().filter(is_said).find(follows_an_answer).unwrap_or(0)
}

fn newest_said(entries: &Entries) -> usize {
    entries.iter().rposition(|entry| matches!(**entry, Message::User(_))).unwrap_or(0)
}

fn rounds<'a>(entries: impl Iterator<Item = &'a Arc<Message>>) -> u32 {
    let count = entries.filter(|entry| matches!(***entry, Message::Assistant(_))).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}
