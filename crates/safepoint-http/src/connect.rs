//! How a connection is made: looked up, through a proxy or not, with TLS or not, within a time.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use http::Uri;
use hyper_rustls::HttpsConnector;
use tokio::time::timeout;
use tower_service::Service;

use crate::{
    error::{BoxError, HttpError, NoConnection},
    settings::Settings,
};

mod look_up;
mod proxies;
mod route;
mod stream;
mod tls;

use route::{Route, RouteStream};
use stream::MaybeTls;

pub(crate) use proxies::Proxies;

/// A connection to a server, with its TLS if the address says so.
pub(crate) type Stream = MaybeTls<RouteStream>;

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Makes connections, with or without TLS, within a time.
pub(crate) struct Connector {
    https: HttpsConnector<Route>,
    most: Duration,
}

impl Connector {
    pub(crate) fn new(settings: &Settings, proxies: Option<Arc<Proxies>>) -> Result<Self, HttpError> {
        let tls = tls::config(&settings.certificates)?;
        let route = Route::new(settings, proxies, &tls);
        let https = HttpsConnector::from((route, tls));
        Ok(Self { https, most: settings.connect_timeout })
    }

    /// A connection to this server.
    ///
    /// # Cancel safety
    /// What was made of it is closed.
    pub(crate) async fn connect(&self, to: Uri) -> Result<Stream, HttpError> {
        let connected = timeout(self.most, self.https.clone().call(to)).await;
        let connected = connected.unwrap_or_else(|_elapsed| Err(NoConnection(self.most).into()));
        connected.map(Stream::from).map_err(HttpError::connect)
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}
