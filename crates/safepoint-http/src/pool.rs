//! A pool of connections.
//!
//! **Invariants**: nothing here starts a task; hyper has one for each connection, and one for each connection of HTTP/1.1
//! whose answer is still read.

use std::{sync::Arc, time::Duration};

use http::{
    HeaderMap, Uri,
    header::{Entry, PROXY_AUTHORIZATION},
    uri::Scheme,
};
use hyper_util::{
    client::{legacy, proxy::matcher::Matcher},
    rt::{TokioExecutor, TokioTimer},
};

use crate::{
    body::Body,
    connect::{self, Connector},
    error::HttpError,
    settings::Settings,
};

/// How long a connection that is not used is kept.
const IDLE: Duration = Duration::from_secs(90);

/// A pool of connections, which its clones share.
#[derive(Clone)]
pub(crate) struct Pool {
    connections: Arc<legacy::Client<Connector, Body>>,
    proxy: Option<Arc<Matcher>>,
}

impl Pool {
    pub(crate) fn new(settings: &Settings) -> Result<Self, HttpError> {
        let proxy = connect::matcher(&settings.proxy)?.map(Arc::new);
        let connector = Connector::new(settings, proxy.clone())?;
        // A request that could not be written at all, because its connection had ended in the pool, goes over a new
        // connection. Nothing else is sent again; both are hyper's default.
        let connections = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Ok(Self { connections: Arc::new(connections), proxy })
    }

    /// One exchange. Nothing is done before the future is polled.
    pub(crate) fn exchange(&self, mut request: http::Request<Body>) -> legacy::ResponseFuture {
        let (to, headers) = (request.uri().clone(), request.headers_mut());
        self.authorize(&to, headers);
        self.connections.request(request)
    }

    /// A proxy that sees the request itself finds its user and password in the request. A tunnel has them in the request
    /// that opens it.
    fn authorize(&self, to: &Uri, headers: &mut HeaderMap) {
        let Some(proxy) = self.proxy.as_ref().filter(|_| to.scheme() == Some(&Scheme::HTTP)) else { return };
        let known = proxy.intercept(to).and_then(|proxy| proxy.basic_auth().cloned());
        if let (Some(known), Entry::Vacant(place)) = (known, headers.entry(PROXY_AUTHORIZATION)) {
            place.insert(known);
        }
    }
}
