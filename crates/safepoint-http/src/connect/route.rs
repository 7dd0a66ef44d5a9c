//! The way to a server: straight, through a tunnel, or to a proxy that asks the server itself.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Uri, uri::Scheme};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::Intercept,
    },
    rt::TokioIo,
};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use super::{Boxed, look_up::LookUp, proxies::Proxies, stream::MaybeTls};
use crate::{error::BoxError, settings::Settings};

/// How often the system asks whether a silent server is still there, and how often in vain.
const ALIVE: Duration = Duration::from_secs(15);
const ALIVE_TRIES: u32 = 3;

/// How long what was sent may be without the server's confirmation.
#[cfg(target_os = "linux")]
const UNCONFIRMED: Duration = Duration::from_secs(30);

/// A connection to a server, before the server's own TLS.
pub(crate) type RouteStream = MaybeTls<TokioIo<TcpStream>>;

/// Finds the way to a server.
#[derive(Clone)]
pub(super) struct Route {
    tcp: HttpConnector<LookUp>,
    /// The same to a proxy, with TLS if its address says so.
    to_proxy: HttpsConnector<HttpConnector<LookUp>>,
    proxies: Option<Arc<Proxies>>,
}

impl Route {
    pub(super) fn new(settings: &Settings, proxies: Option<Arc<Proxies>>, tls: &ClientConfig) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(LookUp::new(settings.addresses.as_deref()));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(settings.connect_timeout));
        tcp.set_keepalive(Some(ALIVE));
        tcp.set_keepalive_interval(Some(ALIVE));
        tcp.set_keepalive_retries(Some(ALIVE_TRIES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNCONFIRMED));
        // A proxy is spoken to with HTTP/1.1: a tunnel needs it.
        let mut tls = tls.clone();
        tls.alpn_protocols.clear();
        Self { to_proxy: HttpsConnector::from((tcp.clone(), tls)), tcp, proxies }
    }
}

impl Service<Uri> for Route {
    type Response = RouteStream;
    type Error = BoxError;
    type Future = Boxed<RouteStream>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        match self.proxies.as_ref().and_then(|proxies| proxies.intercept(&to)) {
            None => {
                let connected = self.tcp.call(to);
                Box::pin(async move { Ok(RouteStream::plain(connected.await?)) })
            }
            Some(proxy) if to.scheme() == Some(&Scheme::HTTPS) => {
                let connected = tunnel(proxy, self.to_proxy.clone()).call(to);
                Box::pin(async move { Ok(RouteStream::from(connected.await?)) })
            }
            Some(proxy) => {
                let connected = self.to_proxy.call(proxy.uri().clone());
                Box::pin(async move { Ok(RouteStream::from(connected.await?).proxied()) })
            }
        }
    }
}

fn tunnel<C>(proxy: Intercept, to_proxy: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
    match proxy.basic_auth() {
        Some(known) => tunnel.with_auth(known.clone()),
        None => tunnel,
    }
}
