//! An answer, whose body is read piece by piece.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, response::Parts};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;

use crate::{error::HttpError, pool::Lent};

/// An answer, whose body is read piece by piece.
///
/// Dropping it before its end closes an HTTP/1.1 connection, and resets an HTTP/2 stream.
#[derive(Debug)]
pub struct Response {
    head: Parts,
    body: Incoming,
    /// The connection of HTTP/1.1, until the body is read to its end.
    lent: Option<Lent>,
}

impl Response {
    /// An answer, and the connection of HTTP/1.1 that it comes over. That of HTTP/2 is driven elsewhere.
    pub(crate) fn new(answer: http::Response<Incoming>, lent: Option<Lent>) -> Self {
        let (head, body) = answer.into_parts();
        let mut response = Self { head, body, lent };
        if response.body.is_end_stream() {
            response.lent.take().into_iter().for_each(Lent::give_back);
        }
        response
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

    /// The answer without its headers. These hold on to the memory that the answer is read into, so a body that is long on
    /// its way takes less without them.
    #[must_use]
    pub fn without_headers(mut self) -> Self {
        self.head.headers = HeaderMap::new();
        self
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
            let frame = poll_fn(|cx| self.poll_frame(cx)).await;
            let Some(frame) = frame.transpose().map_err(HttpError::exchange)? else { return Ok(None) };
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

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, lent, .. } = self;
        let Some(Lent { connection, .. }) = lent else { return Pin::new(body).poll_frame(cx) };
        let frame = connection.poll_driven(cx, |cx| Pin::new(&mut *body).poll_frame(cx));
        let is_over = match &frame {
            Poll::Pending => false,
            Poll::Ready(frame) => frame.is_none() || body.is_end_stream(),
        };
        if is_over {
            lent.take().into_iter().for_each(Lent::give_back);
        }
        frame
    }
}
