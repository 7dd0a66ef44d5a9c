//! A connection of HTTP/1.1, driven by who uses it.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use hyper::{body::Incoming, client::conn::http1};
use hyper_util::client::legacy::connect::Connection as _;
use tokio::{runtime::Handle, task::coop::unconstrained};

use super::Unanswered;
use crate::{body::Body, connect::Stream, error::HttpError};

/// A connection of HTTP/1.1. Dropping it closes it.
pub(crate) struct Http1 {
    ask: http1::SendRequest<Body>,
    /// None once the connection is over: it is not polled again.
    driver: Option<http1::Connection<Stream, Body>>,
    /// Whether requests on it name the whole address.
    pub(super) is_proxied: bool,
    /// The runtime that it was made in, which has its socket.
    pub(super) home: Handle,
}

impl Http1 {
    pub(super) async fn new(stream: Stream) -> Result<Self, HttpError> {
        let is_proxied = stream.connected().is_proxied();
        let (ask, driver) = http1::handshake(stream).await.map_err(HttpError::connect)?;
        Ok(Self { ask, driver: Some(driver), is_proxied, home: Handle::current() })
    }

    /// Sends a request, and waits for the head of its answer.
    ///
    /// # Cancel safety
    /// The connection cannot be used any more.
    pub(super) async fn ask(
        &mut self,
        request: http::Request<Body>,
    ) -> Result<http::Response<Incoming>, Unanswered> {
        // Unconstrained: an answer that is there must not be held back for a budget, since its waker wakes nothing.
        let mut answer = pin!(unconstrained(self.ask.try_send_request(request)));
        poll_fn(|cx| self.driven(cx, |unwoken| answer.as_mut().poll(unwoken))).await
    }

    /// Drives the connection, and then looks at what waits for it. That is given by the connection alone, which is driven
    /// nowhere else: what waits need not be woken.
    fn driven<T>(&mut self, cx: &mut Context<'_>, look: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.drive(cx);
        look(&mut Context::from_waker(Waker::noop()))
    }

    /// The same, where it may be there already.
    pub(crate) fn poll_driven<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut look: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        match look(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.driven(cx, look),
            ready @ Poll::Ready(_) => ready,
        }
    }

    /// Whether it can take a request now.
    pub(super) fn is_free(&mut self, cx: &mut Context<'_>) -> bool {
        self.drive(cx);
        self.driver.is_some() && self.ask.is_ready()
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        let over = self.driver.as_mut().is_some_and(|driver| Pin::new(driver).poll(cx).is_ready());
        if over {
            // An error was given to who waits for an answer or its body; without one it concerns no user.
            self.driver = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Http1;

    /// A connection that waits for a model has no room for a TLS state that it does not have.
    #[test]
    fn a_connection_without_tls_is_small() {
        let bytes = std::mem::size_of::<Http1>();
        assert!(bytes <= 768, "a connection takes {bytes} bytes");
    }
}
