//! What a request sends.

use std::{
    convert::Infallible,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

/// What a request sends: bytes, or parts of them one after another.
pub struct Body(Kind);

enum Kind {
    /// What is left of it.
    Bytes(Bytes),
    Parts(Pin<Box<dyn HttpBody<Data = Bytes, Error = Infallible> + Send + Sync>>),
}

impl Body {
    /// Sends nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self(Kind::Bytes(Bytes::new()))
    }

    /// Sends the parts of another body. Nothing is copied.
    #[must_use]
    pub fn of_parts(parts: impl HttpBody<Data = Bytes, Error = Infallible> + Send + Sync + 'static) -> Self {
        Self(Kind::Parts(Box::pin(parts)))
    }
}

impl<B: Into<Bytes>> From<B> for Body {
    fn from(bytes: B) -> Self {
        Self(Kind::Bytes(bytes.into()))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Bytes(bytes) => Poll::Ready(Some(Ok(Frame::data(mem::take(bytes))))),
            Kind::Parts(parts) => parts.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Bytes(bytes) => bytes.is_empty(),
            Kind::Parts(parts) => parts.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Parts(parts) => parts.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("bytes", &self.size_hint().exact()).finish_non_exhaustive()
    }
}
