//! The events of a response as a stream, from its first one or behind the number that a client has read.

use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use serde_json::{Value, json};

use super::{
    event::{Numbered, ResponseEvent, ResponseStatus},
    fold::Fold,
    kept::KeptResponse,
};
use crate::{
    caller::items::view,
    follow::{ItemEvent, ItemEvents, ShownEvent, recorded},
    load::ReaderPlace,
    problem::Answered,
    sse,
};

/// A client that reads the events of a response.
struct EventStream {
    response: KeptResponse,
    fold: Fold,
    events: ItemEvents,
    /// The last record that was read.
    read: Option<u64>,
    stage: StreamStage,
}

/// Exhaustive: nothing was sent yet, or something, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamStage {
    First,
    Within,
    Over,
}

/// The events behind the number `after`; without it, all of them. The reader has this place.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn response(
    place: ReaderPlace,
    response: KeptResponse,
    after: Option<u64>,
) -> Answered<Response> {
    let events = ItemEvents::at(place, &response.by, &response.kept, response.number).await?;
    let fold = response.fold(after);
    let reads = EventStream { response, fold, events, read: None, stage: StreamStage::First };
    let pieces = stream::unfold(reads, |mut reads| async move { Some((reads.piece().await?, reads)) });
    Ok(sse::streamed(pieces))
}

/// An event as a frame.
pub(super) fn frame(number: u64, mut event: Value) -> String {
    event["sequence_number"] = json!(number);
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

impl EventStream {
    /// What comes next; `None` at the end.
    async fn piece(&mut self) -> Option<Bytes> {
        if self.stage == StreamStage::First {
            self.stage = StreamStage::Within;
            let first = self.fold.begin();
            if let Some(piece) = self.frames(first).await.filter(|piece| !piece.is_empty()) {
                return Some(piece);
            }
        }
        while self.stage == StreamStage::Within {
            // A stream that the server ends without a last event continues where a client asks again.
            let events = match self.events.next().await {
                Ok(ItemEvent::KeepAlive) => return Some(Bytes::from_static(sse::KEPT_ALIVE)),
                Ok(ItemEvent::Shown(event)) => self.step(&event).await?,
                Ok(ItemEvent::Rest(item)) => {
                    self.stage = StreamStage::Over;
                    let mut all = self.rest().await?;
                    all.extend(self.fold.rest(item.outcome));
                    all
                }
                Ok(ItemEvent::Bye) | Err(_) => return None,
            };
            if self.fold.facts.status.is_over() {
                self.stage = StreamStage::Over;
            }
            let piece = self.frames(events).await?;
            if !piece.is_empty() {
                return Some(piece);
            }
        }
        None
    }

    async fn step(&mut self, event: &ShownEvent) -> Option<Vec<Numbered>> {
        self.read = event.position.or(self.read);
        if event.kind == "turn_ended" && event.data["outcome"] == "failed" && self.runs_again(event).await? {
            // It is not over with that.
            return Some(Vec::new());
        }
        if event.kind == "turn_ended" && event.data["outcome"] == "suspended" {
            let KeptResponse { by, kept, number, .. } = &self.response;
            let item = view(&by.host, kept.id(), *number).await.ok()?;
            let ended = item.outcome.map(ResponseStatus::of_outcome);
            if ended.is_some_and(|ended| ended != ResponseStatus::Completed) {
                self.fold.pass_question();
            }
        }
        Some(self.fold.step(event))
    }

    /// Whether its turn was resumed behind this end of it.
    async fn runs_again(&self, end: &ShownEvent) -> Option<bool> {
        let KeptResponse { by, kept, number, .. } = &self.response;
        let all = recorded(by.store(), kept.id(), *number).await.ok()?;
        let is_again = |event: &ShownEvent| event.kind == "run_started" && event.is_root();
        Some(all.iter().any(|event| event.position > end.position && is_again(event)))
    }

    /// What is recorded and was not read, where the item was at rest before that was shown.
    async fn rest(&mut self) -> Option<Vec<Numbered>> {
        let KeptResponse { by, kept, number, .. } = self.response.clone();
        let mut all = Vec::new();
        for event in recorded(by.store(), kept.id(), number).await.ok()? {
            if event.position > self.read && !self.fold.facts.status.is_over() {
                all.extend(self.step(&event).await?);
            }
        }
        Some(all)
    }

    async fn frames(&self, events: Vec<Numbered>) -> Option<Bytes> {
        let mut piece = BytesMut::new();
        for Numbered { number, event } in events {
            let event = match event {
                ResponseEvent::Output(event) => event,
                ResponseEvent::Whole(kind) => {
                    let shown = self.response.shown(&self.fold).await.ok()?;
                    json!({"type": kind, "response": shown})
                }
            };
            piece.extend_from_slice(frame(number, event).as_bytes());
        }
        Some(piece.freeze())
    }
}
