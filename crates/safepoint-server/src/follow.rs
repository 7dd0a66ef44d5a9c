//! What happens with one item, event by event until it is at rest: what the surfaces read that speak of one task, one response or
//! one call.
//!
//! **Invariants**: each recorded event of the item's turn is there once, in the order of the journal; the last thing that is read is
//! where the item rests, or that the server ends.

use std::collections::VecDeque;

use serde_json::Value;

use crate::{
    answer::ItemAnswer,
    caller::{Caller, Kept, items::view},
    lines::Frame,
    problem::Answered,
    reader::{Reader, Until},
};

/// What happens with one item.
pub(crate) struct ItemEvents {
    by: Caller,
    kept: Kept,
    number: u64,
    reader: Reader,
    read: VecDeque<Frame>,
    /// The turn that has the item, once that is known.
    turn: Option<u64>,
}

/// The next of it. Exhaustive: an event of its turn, nothing for a while, its rest, or the end of the server before that.
#[derive(Debug)]
pub(crate) enum ItemEvent {
    Shown(ShownEvent),
    KeepAlive,
    Rest(ItemAnswer),
    Bye,
}

/// An event of the item's turn, as the stream of the session has it.
#[derive(Clone, Debug)]
pub(crate) struct ShownEvent {
    /// Its place in the journal; none: it is not recorded.
    pub(crate) position: Option<u64>,
    /// Its name.
    pub(crate) kind: String,
    /// Its JSON.
    pub(crate) data: Value,
}

/// A reader that is there before the item is pushed, so that it misses nothing of it.
pub(crate) struct ReadyReader(Reader);

impl ReadyReader {
    /// # Errors
    /// `too_many_readers`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn of(by: &Caller, kept: &Kept) -> Answered<Self> {
        Ok(Self(Reader::start(by, &kept.row, None).await?.joined().await?))
    }
}

impl ItemEvents {
    /// All that happens with the item, from its turn's first event on, whatever of it is past.
    ///
    /// # Errors
    /// `too_many_readers`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn of(by: &Caller, kept: &Kept, number: u64) -> Answered<Self> {
        let reader = Reader::start(by, &kept.row, None).await?;
        Ok(Self::read(by, kept, number, reader))
    }

    /// All that happens with an item that was pushed after the reader was there.
    pub(crate) fn behind(ready: ReadyReader, by: &Caller, kept: &Kept, number: u64) -> Self {
        Self::read(by, kept, number, ready.0)
    }

    fn read(by: &Caller, kept: &Kept, number: u64, reader: Reader) -> Self {
        let reader = reader.until(Until::Item(number));
        Self { by: by.clone(), kept: kept.clone(), number, reader, read: VecDeque::new(), turn: None }
    }

    /// What comes next.
    ///
    /// # Errors
    /// The store's, at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> Answered<ItemEvent> {
        loop {
            while let Some(frame) = self.read.pop_front() {
                if let Some(event) = self.meant(&frame).await? {
                    return Ok(event);
                }
            }
            match self.reader.next().await {
                Some(frames) => self.read.extend(frames),
                None => return Ok(ItemEvent::Bye),
            }
        }
    }

    async fn meant(&mut self, frame: &Frame) -> Answered<Option<ItemEvent>> {
        let Some((kind, text)) = frame.event() else { return Ok(Some(ItemEvent::KeepAlive)) };
        match kind {
            "end" => {
                let answer = view(&self.by.host, self.kept.id(), self.number).await?;
                return Ok(Some(ItemEvent::Rest(answer)));
            }
            "bye" => return Ok(Some(ItemEvent::Bye)),
            "session" | "item" | "reset" => return Ok(None),
            _ => {}
        }
        let data: Value = serde_json::from_str(text)?;
        let turn = data["turn"].as_u64();
        if kind == "turn_started" && self.has_item(&data) {
            self.turn = turn;
        }
        let is_meant = self.turn.is_some() && turn == self.turn;
        let event = ShownEvent { position: frame.position, kind: kind.to_owned(), data };
        Ok(is_meant.then_some(ItemEvent::Shown(event)))
    }

    fn has_item(&self, started: &Value) -> bool {
        started["items"].as_array().is_some_and(|items| items.iter().any(|item| *item == self.number))
    }
}
