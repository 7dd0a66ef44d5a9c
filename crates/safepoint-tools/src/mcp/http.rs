//! Streamable HTTP: how a server on the network is reached.

use std::{collections::HashMap, iter};

use http::{
    HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use safepoint_http::{HttpClient, HttpError, Settings};
use url::Url;

use super::{address, server::TokenSource};
use crate::limits;

mod answer;
mod client;
mod events;

use client::{LAST_EVENT, SESSION, StreamableClient};

/// Headers that each request has anyway.
const OWN: [HeaderName; 4] = [ACCEPT, CONTENT_TYPE, SESSION, LAST_EVENT];

/// A transport that has not sent anything yet; what is wrong with the address or a header, otherwise.
///
/// No redirect is followed: it could take the headers elsewhere, and no server of this protocol needs one.
pub(super) fn transport(
    url: &str,
    headers: &[(String, String)],
    token: Option<TokenSource>,
) -> Result<StreamableHttpClientTransport<StreamableClient>, String> {
    let address = Url::parse(url).map_err(|error| format!("has an address that is none: {error}"))?;
    if !matches!(address.scheme(), "http" | "https") {
        return Err(format!("has an address that is not http: or https:, but {}:", address.scheme()));
    }
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let wrong = |what| format!("has a header `{name}` with {what}");
        let header = HeaderName::try_from(name.as_str()).map_err(|_invalid| wrong("a name that is none"))?;
        if OWN.contains(&header) {
            return Err(format!("has a header `{name}`, which the protocol sets"));
        }
        let mut value =
            HeaderValue::try_from(value.as_str()).map_err(|_invalid| wrong("a value that cannot be sent"))?;
        value.set_sensitive(true);
        custom.insert(header, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(limits::MCP_MESSAGE_BYTES);
    let settings = Settings { connect_timeout: limits::HTTP_CONNECT, ..Settings::default() };
    let client = HttpClient::new(&settings);
    let client = client.map_err(|error| format!("cannot be reached: HTTP could not be set up: {error}"))?;
    Ok(StreamableHttpClientTransport::with_client(StreamableClient { client, token }, config))
}

type Failed = StreamableHttpError<NoMessage>;

/// Why an exchange gave no message.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoMessage {
    /// Nothing was sent.
    #[error("{at}: {why}")]
    Unsent { at: String, why: String },
    /// The exchange broke off.
    #[error("{at}: {why}")]
    Broken { at: String, why: String },
    /// It was refused, with this body.
    #[error("it answered with HTTP {code}")]
    Status { code: u16, body: String },
    /// What came is no message.
    #[error("it {why}")]
    Unread { why: String, begins: String },
}

impl NoMessage {
    fn broken(uri: &str, error: &HttpError) -> Failed {
        Failed::Client(Self::Broken { at: address::one(uri), why: error.to_string() })
    }
}

/// What a failed request says of whether it was received. Exhaustive: the sender must act on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// There was no connection that it could have gone over.
    No,
    /// It was refused for who asks, before it was looked at.
    Unauthorized,
    /// It was answered, but not by what was asked for.
    Answered {
        /// What our end says of that.
        ours: String,
        /// What the server said, if anything.
        theirs: String,
    },
    /// It may have been received.
    Perhaps,
}

pub(super) fn was_sent(error: &(dyn std::error::Error + 'static)) -> Option<Sent> {
    let answered = |ours: String, theirs: &str| Sent::Answered { ours, theirs: theirs.to_owned() };
    Some(match error.downcast_ref::<Failed>()? {
        Failed::Client(NoMessage::Unsent { .. }) => Sent::No,
        Failed::Client(NoMessage::Status { code, body }) => {
            answered(format!("answered with HTTP {code}"), body)
        }
        Failed::Client(NoMessage::Unread { why, begins }) => answered(why.clone(), begins),
        Failed::AuthRequired(_) | Failed::InsufficientScope(_) => Sent::Unauthorized,
        Failed::ResponseBodyTooLarge { max_size } => {
            answered(format!("answered with more than {max_size} bytes, which were not read"), "")
        }
        Failed::UnexpectedContentType(_) | Failed::Deserialize(_) => {
            answered("answered, but its answer is no valid message".into(), "")
        }
        // In words of rmcp that may quote the server.
        Failed::UnexpectedServerResponse(said) => {
            answered("answered, but its answer is no valid message".into(), said)
        }
        _ => Sent::Perhaps,
    })
}

/// An error with everything behind it, and nothing of an address that may be a secret.
pub(super) fn in_full(error: &(dyn std::error::Error + 'static)) -> String {
    let (text, cause) = match error.downcast_ref::<Failed>() {
        Some(Failed::Client(inner)) => (inner.to_string(), None),
        _ => (error.to_string(), error.source()),
    };
    let causes = iter::successors(cause, |cause| cause.source());
    address::scrubbed(&causes.fold(text, |text, cause| format!("{text}: {cause}")))
}
