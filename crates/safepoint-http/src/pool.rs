//! Exchanges, and the pool of the connections that they go over.
//!
//! **Invariants**: an exchange over HTTP/1.1 has its connection to itself and drives it in its own task, so that what is
//! dropped closes the connection then and there; a connection of HTTP/2 is shared, and driven by its own task; a
//! request is sent again only if nothing of it was written, because its connection had ended in the pool.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use http::{
    HeaderValue, Uri,
    header::{Entry, HOST, PROXY_AUTHORIZATION},
    uri::Scheme,
};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http2},
    rt::Executor as _,
};
use hyper_util::{client::legacy::connect::Connection as _, rt::TokioExecutor};
use tokio::runtime::Handle;

use crate::{
    body::Body,
    connect::{Connector, Proxies},
    error::HttpError,
    settings::Settings,
    target::Target,
};

mod http1;
mod shelf;

pub(crate) use http1::Http1;
use shelf::Shelf;

type Unanswered = TrySendError<http::Request<Body>>;

/// An answer to its head, and the connection of HTTP/1.1 that its body comes over. That of HTTP/2 is driven elsewhere.
type Answer = (http::Response<Incoming>, Option<Lent>);

/// A pool of connections, which its clones share.
#[derive(Clone)]
pub(crate) struct Pool {
    shared: Arc<PoolShared>,
}

struct PoolShared {
    connector: Connector,
    proxies: Option<Arc<Proxies>>,
    shelf: Arc<Shelf>,
}

/// A connection that takes a request.
enum Way {
    Http1(Box<Http1>),
    Http2(http2::SendRequest<Body>),
}

/// Where a connection of HTTP/1.1 goes when its answer was read to its end.
pub(crate) struct Lent {
    pub(crate) connection: Box<Http1>,
    /// The pool's, unless that is gone.
    shelf: Weak<Shelf>,
    target: Arc<Target>,
}

impl Pool {
    pub(crate) fn new(settings: &Settings) -> Result<Self, HttpError> {
        let proxies = Proxies::of(&settings.proxy)?.map(Arc::new);
        let connector = Connector::new(settings, proxies.clone())?;
        Ok(Self { shared: Arc::new(PoolShared { connector, proxies, shelf: Arc::default() }) })
    }

    /// What a proxy that sees the request itself must find in it: its user and password. A tunnel has them in the request
    /// that opens it.
    pub(crate) fn known_to_proxy(&self, to: &Uri) -> Option<HeaderValue> {
        let proxies = self.shared.proxies.as_ref().filter(|_| to.scheme() == Some(&Scheme::HTTP))?;
        proxies.intercept(to)?.basic_auth().cloned()
    }

    /// One exchange, to the head of its answer.
    ///
    /// # Cancel safety
    /// The exchange ends: an HTTP/1.1 connection is closed, an HTTP/2 stream is reset.
    pub(crate) async fn exchange(
        &self,
        target: &Arc<Target>,
        mut request: http::Request<Body>,
    ) -> Result<Answer, HttpError> {
        if let Some(known) = &target.known_to_proxy
            && let Entry::Vacant(place) = request.headers_mut().entry(PROXY_AUTHORIZATION)
        {
            place.insert(known.clone());
        }
        while let Some(link) = self.shared.shelf.take(&target.server) {
            match self.ask(link, target, request).await {
                Ok(answer) => return Ok(answer),
                Err(mut unanswered) => match unanswered.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(HttpError::exchange(unanswered.into_error())),
                },
            }
        }
        // Boxed, since it is large and most exchanges need none.
        let link = Box::pin(self.connect(target)).await?;
        let answered = self.ask(link, target, request).await;
        answered.map_err(|unanswered| HttpError::exchange(unanswered.into_error()))
    }

    async fn ask(
        &self,
        link: Way,
        target: &Arc<Target>,
        mut request: http::Request<Body>,
    ) -> Result<Answer, Unanswered> {
        match link {
            Way::Http1(mut connection) => {
                request.headers_mut().entry(HOST).or_insert_with(|| target.host.clone());
                *request.uri_mut() = target.of_http_1(connection.is_proxied);
                let answer = connection.ask(request).await?;
                let (shelf, target) = (Arc::downgrade(&self.shared.shelf), Arc::clone(target));
                Ok((answer, Some(Lent { connection, shelf, target })))
            }
            Way::Http2(mut ask) => {
                *request.uri_mut() = target.whole.clone();
                Ok((ask.try_send_request(request).await?, None))
            }
        }
    }

    async fn connect(&self, target: &Target) -> Result<Way, HttpError> {
        let stream = self.shared.connector.connect(target.server.address()).await?;
        let connected = stream.connected();
        if !connected.is_negotiated_h2() {
            return Ok(Way::Http1(Box::new(Http1::new(stream).await?)));
        }
        let handshake = http2::handshake(TokioExecutor::new(), stream).await;
        let (ask, driver) = handshake.map_err(HttpError::connect)?;
        TokioExecutor::new().execute(async {
            if driver.await.is_err() {
                // Those whose streams it carried get the error.
            }
        });
        Ok(Way::Http2(self.shared.shelf.share((&Handle::current(), &target.server), ask)))
    }
}

impl Lent {
    /// Gives the connection back, or closes it if it takes no other request.
    pub(crate) fn give_back(self) {
        if let Some(shelf) = self.shelf.upgrade() {
            shelf.put(&self.target.server, self.connection);
        }
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").finish_non_exhaustive()
    }
}
