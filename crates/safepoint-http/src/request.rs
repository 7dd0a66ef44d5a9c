//! A request, before it is sent.

use std::{fmt, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION},
};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::{body::Body, error::HttpError, pool::Pool, response::Response, target::Target};

/// A request, before it is sent.
#[must_use = "a request is sent by `send`"]
pub struct Request {
    pool: Pool,
    /// What is wrong with the address, if it is none that can be requested.
    to: Result<Arc<Target>, Arc<str>>,
    method: Method,
    headers: HeaderMap,
    body: Body,
}

impl Request {
    pub(crate) fn new(pool: Pool, method: Method, address: &Url) -> Self {
        let mut headers = HeaderMap::new();
        let to = match apart(address) {
            Some((bare, known)) => {
                headers.insert(AUTHORIZATION, known);
                Target::new(&bare, |to| pool.known_to_proxy(to))
            }
            None => Target::new(address, |to| pool.known_to_proxy(to)),
        };
        let to = to.map(Arc::new).map_err(Arc::from);
        Self { pool, to, method, headers, body: Body::empty() }
    }

    /// The same request without its body, to be sent beside this one. Nothing of the address is read anew.
    pub fn again(&self) -> Self {
        let Self { pool, to, method, headers, body: _ } = self;
        let (pool, to, method, headers) = (pool.clone(), to.clone(), method.clone(), headers.clone());
        Self { pool, to, method, headers, body: Body::empty() }
    }

    /// Adds a header, beside those of its name.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Sets headers of text, in place of those of the same names. What no header can hold is left out.
    pub fn texts<'a>(mut self, headers: impl IntoIterator<Item = (&'static str, &'a str)>) -> Self {
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                self.headers.insert(HeaderName::from_static(name), value);
            }
        }
        self
    }

    /// Sets headers, in place of those of the same names.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        if self.headers.is_empty() {
            self.headers = headers;
        } else {
            self.headers.extend(headers);
        }
        self
    }

    /// Sets what is sent.
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends the request, and waits for the head of the answer.
    ///
    /// # Errors
    /// If the address cannot be requested, there is no connection, or it breaks.
    ///
    /// # Cancel safety
    /// The exchange ends: an HTTP/1.1 connection is closed, an HTTP/2 stream is reset. What was sent may have arrived.
    pub async fn send(self) -> Result<Response, HttpError> {
        let Self { pool, to, method, mut headers, body } = self;
        let to = to.map_err(|wrong| HttpError::address(&*wrong))?;
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let mut request = http::Request::new(body);
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        let (answer, lent) = pool.exchange(&to, request).await?;
        Ok(Response::new(answer, lent))
    }
}

/// Without the headers, of which any may be a secret, and the address.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Splits an address with a user or a password into one without them, and the value of the header `Authorization` that
/// carries them, which is never shown; none for any other address.
#[must_use]
pub fn apart(address: &Url) -> Option<(Url, HeaderValue)> {
    if address.username().is_empty() && address.password().is_none() {
        return None;
    }
    let mut bare = address.clone();
    let is_bare = bare.set_username("").and_then(|()| bare.set_password(None));
    is_bare.expect("an address with a user has a host");
    let mut known: Vec<u8> = percent_decode_str(address.username()).collect();
    known.push(b':');
    known.extend(percent_decode_str(address.password().unwrap_or_default()));
    let value = format!("Basic {}", BASE64_STANDARD.encode(known));
    let mut value = HeaderValue::from_str(&value).expect("a header can hold all of base64");
    value.set_sensitive(true);
    Some((bare, value))
}
