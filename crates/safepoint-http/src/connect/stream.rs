//! A connection with TLS or without it. The state of TLS is large, so it is apart: a connection without it, and one of a
//! conversation that waits for its model, has no room for it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection};

/// A connection with TLS or without it.
pub(crate) struct MaybeTls<T> {
    inner: Layer<T>,
    /// Whether requests on it name the whole address, for a proxy that asks the server itself.
    is_proxied: bool,
}

enum Layer<T> {
    Plain(T),
    Tls(Box<MaybeHttpsStream<T>>),
}

impl<T> MaybeTls<T> {
    pub(super) fn plain(stream: T) -> Self {
        Self { inner: Layer::Plain(stream), is_proxied: false }
    }

    /// The same as the way to a proxy that asks the server itself.
    pub(super) fn proxied(self) -> Self {
        Self { is_proxied: true, ..self }
    }
}

impl<T> From<MaybeHttpsStream<T>> for MaybeTls<T> {
    fn from(stream: MaybeHttpsStream<T>) -> Self {
        match stream {
            MaybeHttpsStream::Http(plain) => Self::plain(plain),
            tls @ MaybeHttpsStream::Https(_) => Self { inner: Layer::Tls(Box::new(tls)), is_proxied: false },
        }
    }
}

impl<T: Read + Write + Connection + Unpin> Connection for MaybeTls<T> {
    fn connected(&self) -> Connected {
        let connected = match &self.inner {
            Layer::Plain(stream) => stream.connected(),
            Layer::Tls(stream) => stream.connected(),
        };
        if self.is_proxied { connected.proxy(true) } else { connected }
    }
}

impl<T: Read + Write + Unpin> Read for MaybeTls<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().inner {
            Layer::Plain(stream) => Pin::new(stream).poll_read(cx, bytes),
            Layer::Tls(stream) => Pin::new(stream).poll_read(cx, bytes),
        }
    }
}

impl<T: Read + Write + Unpin> Write for MaybeTls<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().inner {
            Layer::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Layer::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().inner {
            Layer::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Layer::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().inner {
            Layer::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Layer::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.inner {
            Layer::Plain(stream) => stream.is_write_vectored(),
            Layer::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().inner {
            Layer::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Layer::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }
}
