//! How a connection is made: looked up, through a proxy or not, with TLS or not, within a time.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::proxy::matcher::Matcher;
use tokio::time::timeout;
use tower_service::Service;

use crate::{
    error::{BoxError, HttpError, NoConnection},
    settings::{Proxy, Settings},
};

mod look_up;
mod route;
mod tls;

use route::{Route, RouteStream};

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    way: Arc<Way>,
}

/// With or without TLS, within a time.
struct Way {
    https: HttpsConnector<Route>,
    most: Duration,
}

impl Connector {
    pub(crate) fn new(settings: &Settings, proxy: Option<Arc<Matcher>>) -> Result<Self, HttpError> {
        let tls = tls::config(&settings.certificates)?;
        let route = Route::new(settings, proxy, &tls);
        let https = HttpsConnector::from((route, tls));
        Ok(Self { way: Arc::new(Way { https, most: settings.connect_timeout }) })
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<RouteStream>;
    type Error = BoxError;
    type Future = Boxed<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let most = self.way.most;
        let connected = self.way.https.clone().call(to);
        Box::pin(async move {
            let connected = timeout(most, connected).await;
            connected.unwrap_or_else(|_elapsed| Err(NoConnection(most).into()))
        })
    }
}

/// Which addresses are reached through a proxy.
pub(crate) fn matcher(proxy: &Proxy) -> Result<Option<Matcher>, HttpError> {
    Ok(match proxy {
        Proxy::Direct => None,
        Proxy::Environment => Some(Matcher::from_env()),
        Proxy::Server { address, except } => {
            if !matches!(address.scheme(), "http" | "https") {
                return Err(HttpError::setup("the proxy's address is neither http: nor https:"));
            }
            Some(Matcher::builder().all(address.as_str()).no(except.as_str()).build())
        }
    })
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}
