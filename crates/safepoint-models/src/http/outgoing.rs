//! What is sent, and the client that sends it.

use std::time::Duration;

use http::HeaderMap;
use safepoint::model::{ModelError, ModelErrorKind};
use safepoint_http::{HttpClient, Response};
use tokio::time::timeout;
use url::Url;

use super::limits::Patience;
use crate::{address, body::Parts, error};

/// One request.
#[derive(Clone)]
pub(crate) struct Outgoing {
    pub(crate) client: HttpClient,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Parts,
    pub(crate) patience: Patience,
    /// The most bytes of the reply, in all its fields.
    pub(crate) output_bytes: usize,
}

impl Outgoing {
    /// An address below the request's own.
    pub(crate) fn below(&self, address: &str) -> Result<Url, ModelError> {
        Url::parse(&address::below(self.url.as_str(), address)).map_err(error::malformed)
    }
}

/// Sends the provider a notice about a reply, beside its stream. The answer changes nothing.
///
/// # Cancel safety
/// If it is dropped, the notice may not be sent.
pub(crate) async fn tell(outgoing: Outgoing, address: String) {
    let Ok(url) = outgoing.below(&address) else { return };
    let sent = outgoing.client.post(&url).headers(outgoing.headers).send();
    if let Ok(Ok(answer)) = timeout(outgoing.patience.idle, sent).await
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
    safepoint_http::shared().map_err(|error| {
        ModelError::new(ModelErrorKind::Unreachable, format!("could not set up HTTP: {error}"))
            .with_hint("are the system's certificates installed (ca-certificates)?")
    })
}
