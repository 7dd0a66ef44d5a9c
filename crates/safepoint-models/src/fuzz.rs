//! What the fuzz targets drive: readers of bytes that others wrote, without a socket. Not part of the API.

use std::collections::VecDeque;

use safepoint::model::{Delta, ModelError};

use crate::{
    anthropic, gemini,
    http::ReplyReader,
    openai, responses,
    sse::{SseDecoder, SseEvent},
};

/// The bound of an event: small, so that it is met.
const EVENT_BYTES: usize = 4096;

/// The events (type and data) of a stream that comes in these pieces; none if it is refused.
#[must_use]
pub fn events(pieces: &[&[u8]]) -> Option<Vec<(String, String)>> {
    let events = decoded(pieces)?.into_iter();
    Some(events.map(|event| (event.name, event.data)).collect())
}

fn decoded(pieces: &[&[u8]]) -> Option<Vec<SseEvent>> {
    let (mut decoder, mut events) = (SseDecoder::new(EVENT_BYTES), Vec::new());
    for piece in pieces {
        decoder.feed(piece, |event| events.push(event)).ok()?;
    }
    Some(events)
}

/// The deltas of an OpenAI stream.
#[must_use]
pub fn openai(pieces: &[&[u8]]) -> Vec<Result<Delta, ModelError>> {
    read(pieces, openai::read::ChatReader::default())
}

/// The deltas of an Anthropic stream.
#[must_use]
pub fn anthropic(pieces: &[&[u8]]) -> Vec<Result<Delta, ModelError>> {
    read(pieces, anthropic::read::MessagesReader::default())
}

/// The deltas of a Gemini stream.
#[must_use]
pub fn gemini(pieces: &[&[u8]]) -> Vec<Result<Delta, ModelError>> {
    read(pieces, gemini::read::GeminiReader::default())
}

/// The deltas of a Responses stream.
#[must_use]
pub fn responses(pieces: &[&[u8]]) -> Vec<Result<Delta, ModelError>> {
    read(pieces, responses::read::ResponsesReader::default())
}

/// As an exchange reads it: event by event until the message is complete or broken, then its end.
fn read(pieces: &[&[u8]], mut reader: impl ReplyReader) -> Vec<Result<Delta, ModelError>> {
    let mut queue = VecDeque::new();
    let mut ended = Ok(());
    for event in decoded(pieces).unwrap_or_default() {
        ended = reader.event(&event, &mut queue);
        if ended.is_err() || reader.is_complete() {
            break;
        }
    }
    if ended.is_ok() {
        ended = reader.end(&mut queue);
    }
    queue.into_iter().map(Ok).chain(ended.err().map(Err)).collect()
}
