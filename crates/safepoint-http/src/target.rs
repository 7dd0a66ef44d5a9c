//! Where a request goes.

use http::{
    HeaderValue, Uri,
    uri::{Authority, PathAndQuery, Scheme},
};
use url::Url;

/// Where a request goes: made once, and shared by those that go there.
pub(crate) struct Target {
    pub(crate) server: Server,
    pub(crate) whole: Uri,
    path: Uri,
    /// The server as HTTP/1.1 names it.
    pub(crate) host: HeaderValue,
    pub(crate) known_to_proxy: Option<HeaderValue>,
}

/// What connections are made to.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    scheme: Scheme,
    authority: Authority,
}

impl Target {
    /// The address as the pool takes it: of a web server, and without a fragment. What is wrong with it, otherwise.
    /// `known_to_proxy` is what a proxy that sees a request to it must find there.
    pub(crate) fn new(
        address: &Url,
        known_to_proxy: impl FnOnce(&Uri) -> Option<HeaderValue>,
    ) -> Result<Self, String> {
        if !matches!(address.scheme(), "http" | "https") {
            return Err("its scheme is neither http: nor https:".to_owned());
        }
        let whole: Uri =
            address.as_str().parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
        let parts = whole.clone().into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err("it names no server".to_owned());
        };
        // A URL leaves the port out where it is its scheme's own.
        let host = HeaderValue::from_str(authority.as_str()).map_err(|error| error.to_string())?;
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        let known_to_proxy = known_to_proxy(&whole);
        Ok(Self { server: Server { scheme, authority }, path: Uri::from(path), whole, host, known_to_proxy })
    }

    /// The address in a request of HTTP/1.1. A proxy that asks the server itself needs the whole.
    pub(crate) fn of_http_1(&self, is_proxied: bool) -> Uri {
        let is_whole = is_proxied && self.server.scheme == Scheme::HTTP;
        if is_whole { self.whole.clone() } else { self.path.clone() }
    }
}

impl Server {
    /// Its address.
    pub(crate) fn address(&self) -> Uri {
        let Self { scheme, authority } = self.clone();
        let address = Uri::builder().scheme(scheme).authority(authority).path_and_query("/");
        address.build().expect("the parts are an address's")
    }
}
