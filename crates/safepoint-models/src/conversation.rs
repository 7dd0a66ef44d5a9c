//! A conversation over HTTP: each request has the whole history, encoded as its wire wants it.

use std::sync::Arc;

use safepoint::{
    History,
    model::{Conversation, DeltaStream, ModelError},
};

use crate::{
    encoded_history::{EncodedHistory, Entries},
    http::{
        ReplyReader, exchange,
        outgoing::{Outgoing, Prepared},
    },
    parts::{self, Write},
};

/// A conversation on one wire, with a new reader for each reply.
pub(crate) struct HttpConversation<E, R> {
    /// Shared by the conversations of a model.
    pub(crate) prepared: Result<Arc<Prepared>, ModelError>,
    pub(crate) output_bytes: usize,
    /// The wire's name, and how it writes an image or a file.
    pub(crate) wire: (&'static str, Write),
    pub(crate) encoder: EncodedHistory<E>,
    pub(crate) reader: fn() -> R,
}

impl<E: Entries, R> HttpConversation<E, R> {
    /// The next request, with this history.
    pub(crate) fn request(&mut self, history: &History) -> Result<Outgoing, ModelError> {
        let (name, write) = self.wire;
        // What was encoded before was looked at then.
        parts::fit(history.entries().range(self.encoder.known(history)..), name, write)?;
        let body = self.encoder.encode(history);
        let prepared = Arc::clone(self.prepared.as_ref().map_err(ModelError::clone)?);
        Ok(Outgoing { prepared, body, output_bytes: self.output_bytes })
    }

    /// The bodies of the requests with these histories, one after the other.
    pub(crate) fn encoded(mut self, histories: &[&History]) -> Vec<Vec<u8>> {
        histories.iter().map(|history| self.encoder.encode(history).into_bytes()).collect()
    }
}

impl<E: Entries, R: ReplyReader> Conversation for HttpConversation<E, R> {
    fn stream(&mut self, history: &History) -> DeltaStream {
        exchange(self.request(history), (self.reader)())
    }

    fn never_blocks(&self) -> bool {
        true
    }
}
