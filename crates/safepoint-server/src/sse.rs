//! What a reader reads as a stream of server-sent events.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::stream;

use crate::{fan::Outlet, lines::Frame, problem::Answered, reader::Reader};

/// What such a stream is called in a head.
const STREAM: &str = "text/event-stream";

/// How soon a client comes back.
const RETRY: &[u8] = b"retry: 1000\n\n";

/// How often a stream on which nothing comes shows that it is there.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What shows that: a comment.
pub(crate) const KEPT_ALIVE: &[u8] = b": keep-alive\n\n";

/// With the answer that streams what a reader reads: where its server writes the body itself, if it does. What comes is written
/// there by the fan of the session then, while the body has nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirectBody(Arc<OnceLock<Outlet>>);

impl DirectBody {
    /// The body is written here, piece by piece, and an empty piece has what is left there written.
    pub(crate) fn is_written_to(&self, outlet: &Outlet) {
        // An answer has one body.
        drop(self.0.set(outlet.clone()));
    }

    pub(crate) fn outlet(&self) -> Option<&Outlet> {
        self.0.get()
    }
}

/// The answer that streams it.
pub(crate) fn response(reader: Reader) -> Response {
    let direct = DirectBody::default();
    let reader = reader.direct(direct.clone());
    let first = Some(Bytes::from_static(RETRY));
    let pieces = stream::unfold((reader, first), |(mut reader, first)| async move {
        let piece = match first {
            Some(first) => first,
            None => piece(reader.next().await?),
        };
        Some((piece, (reader, None)))
    });
    let mut response = streamed(pieces);
    response.extensions_mut().insert(direct);
    response
}

/// Frames as one piece; a frame that is alone is what all its readers share.
fn piece(mut frames: Vec<Frame>) -> Bytes {
    match (frames.len(), frames.pop()) {
        (1, Some(alone)) => alone.bytes,
        (_, last) => {
            let mut all = BytesMut::new();
            frames.iter().chain(&last).for_each(|frame| all.extend_from_slice(&frame.bytes));
            all.freeze()
        }
    }
}

/// An answer of these pieces.
pub(crate) fn streamed(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let pieces = futures_util::StreamExt::map(pieces, Ok::<Bytes, Infallible>);
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Whether this announces a stream of events.
pub(crate) fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(STREAM.as_bytes()))
}

/// For a stream whose end has come before it began: an `EventSource` does not come back.
pub(crate) fn nothing_more() -> Answered<Response> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
