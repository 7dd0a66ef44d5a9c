//! An answer, whose body is read piece by piece.

use std::{future::poll_fn, pin::Pin};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, response::Parts};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::error::HttpError;

/// An answer, whose body is read piece by piece.
///
/// Dropping it before its end closes an HTTP/1.1 connection, and resets an HTTP/2 stream.
#[derive(Debug)]
pub struct Response {
    head: Parts,
    body: Incoming,
}

impl Response {
    pub(crate) fn new(answer: http::Response<Incoming>) -> Self {
        let (head, body) = answer.into_parts();
        Self { head, body }
    }

    /// What became of the request.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// How many bytes of the body are left, if the server named its length.
    #[must_use]
    pub fn left(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next piece of the body; none at its end.
    ///
    /// # Errors
    /// If the connection breaks before the end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let Some(frame) = frame.transpose().map_err(HttpError::body)? else { return Ok(None) };
            // Other frames are headers after the body, which are of no use here.
            if let Ok(bytes) = frame.into_data() {
                return Ok(Some(bytes));
            }
        }
    }

    /// The rest of the body.
    ///
    /// # Errors
    /// If the connection breaks before the end.
    ///
    /// # Cancel safety
    /// What was read is lost, and the exchange ends.
    pub async fn bytes(mut self) -> Result<Bytes, HttpError> {
        let mut whole = BytesMut::new();
        while let Some(bytes) = self.chunk().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }
}
