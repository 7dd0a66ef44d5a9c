//! What all peers over HTTP share: one client, and exchanges that tell what may have arrived from what has not.

use std::{fmt, sync::OnceLock, time::Duration};

use reqwest::{Client, RequestBuilder, Response, redirect};

/// Why an exchange gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broke {
    /// Nobody is there: nothing was sent.
    Unreachable(String),
    /// It was sent, or may have been, and the line broke.
    Lost(String),
    /// It was answered, and not in the protocol.
    Foreign(String),
    /// It was answered with an error.
    Error { code: i64, message: String },
}

impl fmt::Display for Broke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Lost(why) | Self::Foreign(why) => f.write_str(why),
            Self::Error { code, message } => write!(f, "{message} ({code})"),
        }
    }
}

/// Sends it, and waits for the head of the answer.
pub(crate) async fn send(request: RequestBuilder) -> Result<Response, Broke> {
    request.send().await.map_err(|error| {
        let why = in_full(&error);
        if error.is_connect() || error.is_builder() { Broke::Unreachable(why) } else { Broke::Lost(why) }
    })
}

/// The whole body, if it is within the bound.
pub(crate) async fn whole(mut response: Response, bound: usize) -> Result<Vec<u8>, Broke> {
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let chunk =
            chunk.map_err(|error| Broke::Lost(format!("the answer broke off: {}", in_full(&error))))?;
        let Some(chunk) = chunk else { return Ok(body) };
        if body.len() + chunk.len() > bound {
            return Err(Broke::Foreign(format!("it is larger than {bound} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
}

/// The process's client for peers: no total time limit, no retries of its own, and no redirects, which would take what
/// was said to somebody else.
pub(crate) fn client() -> Result<Client, String> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        const CONNECT: Duration = Duration::from_secs(10);
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            // The host program chose a provider before us; its choice stands.
        }
        Client::builder()
            .connect_timeout(CONNECT)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| error.to_string())
    });
    client.clone()
}

/// An error with everything behind it: reqwest's own words leave out what matters.
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
