//! What is sent, and the client that sends it.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use safepoint::{
    model::{ModelError, ModelErrorKind},
    raw::trace,
};
use safepoint_http::{Body, HttpClient, HttpError, Request, Response};
use tokio::time::timeout;
use url::Url;

use super::limits::Patience;
use crate::{address, body::Parts, error};

/// What all requests of a model have in common: everything but the body.
pub(crate) struct Prepared {
    client: HttpClient,
    pub(crate) url: Url,
    headers: HeaderMap,
    /// The request itself, to be repeated.
    request: Request,
    pub(crate) patience: Patience,
}

impl Prepared {
    pub(crate) fn new(client: HttpClient, url: Url, headers: HeaderMap, patience: Patience) -> Self {
        let request = client.post(&url).headers(headers.clone());
        Self { client, url, headers, request, patience }
    }

    /// The same address and headers, for what is only read.
    pub(crate) fn without_body(mut self) -> Self {
        self.request = self.client.get(&self.url).headers(self.headers.clone());
        self
    }

    /// The same with one more header.
    pub(crate) fn with(&self, (name, value): (HeaderName, HeaderValue)) -> Self {
        let mut headers = self.headers.clone();
        headers.append(name, value);
        let request = self.client.post(&self.url).headers(headers.clone());
        let (client, url, patience) = (self.client.clone(), self.url.clone(), self.patience.clone());
        Self { client, url, headers, request, patience }
    }

    /// A request for what lies below this address. It has no body.
    pub(super) fn get(&self, address: &str) -> Result<Request, ModelError> {
        Ok(traced(self.client.get(&self.below(address)?).headers(self.headers.clone())))
    }

    fn below(&self, address: &str) -> Result<Url, ModelError> {
        Url::parse(&address::below(self.url.as_str(), address)).map_err(error::malformed)
    }
}

/// One request.
#[derive(Clone)]
pub(crate) struct Outgoing {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) body: Parts,
    /// The most bytes of the reply, in all its fields.
    pub(crate) output_bytes: usize,
}

impl Outgoing {
    pub(super) fn request(&self) -> Request {
        traced(self.prepared.request.again()).body(Body::of_parts(self.body.clone()))
    }
}

/// The request with the context of the span in which it is made, if that is traced.
fn traced(request: Request) -> Request {
    match trace::current() {
        Some(context) => request.texts(context.headers()),
        None => request,
    }
}

/// Sends the provider a notice about a reply, beside its stream. The answer changes nothing.
///
/// # Cancel safety
/// If it is dropped, the notice may not be sent.
pub(crate) async fn tell(prepared: Arc<Prepared>, address: String) {
    let Ok(url) = prepared.below(&address) else { return };
    let sent = prepared.client.post(&url).headers(prepared.headers.clone()).send();
    if let Ok(Ok(answer)) = timeout(prepared.patience.idle, sent).await
        && answer.bytes().await.is_err()
    {
        // The notice arrived. The answer was only read so that the connection can be used again.
    }
}

/// The beginning of an error's body; a server that stalls here does not hold us.
///
/// # Cancel safety
/// What was read is lost.
pub(crate) async fn read_some(mut response: Response, idle: Duration) -> Vec<u8> {
    const MOST: usize = 16 << 10;
    let mut body = Vec::new();
    while body.len() < MOST {
        match timeout(idle, response.chunk()).await {
            Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
            Ok(Ok(None) | Err(_)) | Err(_) => break,
        }
    }
    body.truncate(MOST);
    body
}

/// The process's client. It follows no redirect, which would take the key and the conversation to a server that the
/// program did not name.
///
/// # Errors
/// If the TLS roots of this machine cannot be loaded.
pub(crate) fn client() -> Result<HttpClient, ModelError> {
    safepoint_http::shared().map_err(|error: HttpError| {
        ModelError::new(ModelErrorKind::Unreachable, format!("could not set up HTTP: {error}"))
            .with_source(error)
            .with_hint("are the system's certificates installed (ca-certificates)?")
    })
}
