//! The text of one message as a client reads it: a delta is numbered by where it ends in the text, so that a client which comes
//! back gets what it has not read, whatever pieces the text arrived in before.
//!
//! **Invariants**: the deltas of a message that a client reads make its text, without a gap and without a double; a number depends
//! on the text alone, so that the journal gives the same ones as the model did.

use serde_json::{Value, json};

use super::event::{Numbered, numbered, place};

/// The numbers behind a record: first those of its own frames, then those of the message that streams behind it.
const ADDED: u64 = 16;
const PART: u64 = 17;
const TEXT: u64 = 18;
/// What of a text has numbers of its own; the rest comes with the record of the message.
const MOST: usize = (1 << 20) - 64;

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Its place in the output.
    index: usize,
    id: String,
    /// The first number of the record behind which it streams.
    base: u64,
    text: String,
    /// How much of it was sent.
    sent: usize,
    is_begun: bool,
}

impl Draft {
    /// A message that streams behind the record at this position, for a client that has read up to the number `after`.
    pub(super) fn behind(position: u64, (index, session): (usize, &str), after: Option<u64>) -> Self {
        let base = place(position);
        let read = after.and_then(|after| after.checked_sub(base + TEXT)).unwrap_or_default();
        let sent = usize::try_from(read).unwrap_or(usize::MAX).min(MOST);
        let id = format!("msg_{session}_{position}");
        Self { index, id, base, text: String::new(), sent, is_begun: false }
    }

    /// More of the text arrived.
    pub(super) fn more(&mut self, text: &str) -> Vec<Numbered> {
        self.text.push_str(text);
        self.shown()
    }

    /// All of the text up to here.
    pub(super) fn partial(&mut self, text: &str) -> Vec<Numbered> {
        if text.len() > self.text.len() {
            text.clone_into(&mut self.text);
        }
        self.shown()
    }

    /// The message is over: all that it said. `None`: it said nothing, and is no item of the output.
    pub(super) fn ended(
        mut self,
        position: u64,
        text: &str,
        is_whole: bool,
    ) -> Option<(Value, Vec<Numbered>)> {
        if text.is_empty() && !self.is_begun {
            return None;
        }
        // A hook may have made another text of it. Then the last event of the message says which.
        let continues = text.starts_with(&self.text);
        text.clone_into(&mut self.text);
        let mut all = if continues { self.shown() } else { self.begun() };
        let record = place(position);
        let shown = self.boundary();
        if continues && shown < text.len() {
            all.push(numbered(record, self.delta(&text[shown..])));
        }
        let (index, id, part) = (self.index, &self.id, content(text));
        let item = self.item(if is_whole { "completed" } else { "incomplete" }, std::slice::from_ref(&part));
        all.push(numbered(
            record + 1,
            json!({"type": "response.output_text.done", "item_id": id, "output_index": index,
                   "content_index": 0, "text": text, "logprobs": []}),
        ));
        all.push(numbered(
            record + 2,
            json!({"type": "response.content_part.done", "item_id": id, "output_index": index,
                   "content_index": 0, "part": part}),
        ));
        all.push(numbered(
            record + 3,
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        ));
        Some((item, all))
    }

    /// The message as far as it is, if it has begun.
    pub(super) fn now(&self) -> Option<Value> {
        self.is_begun.then(|| self.item("in_progress", &[content(&self.text)]))
    }

    fn shown(&mut self) -> Vec<Numbered> {
        if self.text.is_empty() {
            return Vec::new();
        }
        let mut all = self.begun();
        let end = self.boundary();
        // What a client says that it has read may end within a letter.
        let from = (self.sent.min(end)..=end).find(|at| self.text.is_char_boundary(*at)).unwrap_or(end);
        if from < end {
            all.push(numbered(self.base + TEXT + end as u64, self.delta(&self.text[from..end])));
            self.sent = end;
        }
        all
    }

    fn begun(&mut self) -> Vec<Numbered> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Vec::new();
        }
        let item = self.item("in_progress", &[]);
        let added = json!({"type": "response.output_item.added", "output_index": self.index, "item": item});
        let part = json!({"type": "response.content_part.added", "item_id": self.id, "output_index": self.index,
                          "content_index": 0, "part": content("")});
        vec![numbered(self.base + ADDED, added), numbered(self.base + PART, part)]
    }

    /// Up to where the text has numbers of its own.
    fn boundary(&self) -> usize {
        let most = self.text.len().min(MOST);
        (0..=most).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or_default()
    }

    fn delta(&self, text: &str) -> Value {
        json!({"type": "response.output_text.delta", "item_id": self.id, "output_index": self.index,
               "content_index": 0, "delta": text, "logprobs": []})
    }

    fn item(&self, status: &str, content: &[Value]) -> Value {
        json!({"type": "message", "id": self.id, "status": status, "role": "assistant", "content": content})
    }
}

fn content(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}
