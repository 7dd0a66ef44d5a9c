//! Request bodies that grow: a conversation is encoded once, and each request sends what there is (no re-encoding).
//!
//! **Invariants**: bytes that were appended are never touched again; a request shares them and adds only its tail.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use serde::de::IgnoredAny;

/// An encoded prefix that only grows.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    chunks: Vec<Bytes>,
}

impl Growing {
    /// Begins with bytes that are shared.
    pub(crate) fn behind(prefix: Bytes) -> Self {
        Self { chunks: vec![prefix] }
    }

    /// Appends bytes. Neighbours are merged while the newer is as large as the older, so that a body of n appends has
    /// about log n chunks and each byte is copied about log n times in its life. What is large stays as it is: it is never in
    /// memory twice.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        const LARGE: usize = 1 << 20;
        if bytes.is_empty() {
            return;
        }
        if bytes.len() >= LARGE {
            return self.chunks.push(bytes.into());
        }
        let mut length = bytes.len();
        let is_merged = |older: &&Bytes| {
            let is_merged = length < LARGE && older.len() < LARGE && older.len() <= length;
            length += if is_merged { older.len() } else { 0 };
            is_merged
        };
        let merged = self.chunks.iter().rev().take_while(is_merged).count();
        let mut all = Vec::with_capacity(length);
        self.chunks.drain(self.chunks.len() - merged..).for_each(|older| all.extend_from_slice(&older));
        all.extend_from_slice(&bytes);
        self.chunks.push(all.into());
    }

    /// The body of one request.
    pub(crate) fn with_tail(&self, tail: &'static [u8]) -> Parts {
        let left = self.chunks.iter().map(Bytes::len).sum::<usize>() + tail.len();
        let tail = Bytes::from_static(tail);
        Parts { parts: self.chunks.iter().cloned().chain([tail]).collect(), next: 0, left: left as u64 }
    }
}

/// A body of known length in parts that are shared, not copied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    parts: Arc<[Bytes]>,
    /// Which of them is sent next.
    next: usize,
    left: u64,
}

impl Parts {
    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    /// All of it in one piece.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.parts.concat()
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(part) = self.parts.get(self.next).cloned() else { return Poll::Ready(None) };
        self.next += 1;
        self.left -= part.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.next == self.parts.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Writes a string as JSON.
pub(crate) fn json_str(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("writing a string to memory cannot fail");
}

/// Writes a call's arguments for a wire that takes only objects; what else the model wrote is kept inside one.
pub(crate) fn json_object(out: &mut Vec<u8>, args: &str) {
    // Looked at without making values of it.
    let is_json = serde_json::from_str::<IgnoredAny>(args).is_ok();
    match args.trim() {
        "" => out.extend_from_slice(b"{}"),
        object if is_json && object.starts_with('{') => out.extend_from_slice(args.as_bytes()),
        _ => {
            out.extend_from_slice(b"{\"_raw\":");
            json_str(out, args);
            out.push(b'}');
        }
    }
}
