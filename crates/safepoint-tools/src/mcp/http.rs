//! Streamable HTTP: how a server on the network is reached.

use std::{collections::HashMap, iter};

use reqwest::{
    Url,
    header::{HeaderName, HeaderValue},
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};

use super::{address, shallow::Shallow};
use crate::{http::client_builder, limits};

/// A transport that has not sent anything yet; what is wrong with the address or a header, otherwise.
///
/// No redirect is followed: it could take the headers elsewhere, and no server of this protocol needs one.
pub(super) fn transport(
    url: &str,
    headers: &[(String, String)],
) -> Result<StreamableHttpClientTransport<Shallow>, String> {
    let address = Url::parse(url).map_err(|error| format!("has an address that is none: {error}"))?;
    if !matches!(address.scheme(), "http" | "https") {
        return Err(format!("has an address that is not http: or https:, but {}:", address.scheme()));
    }
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let wrong = |what| format!("has a header `{name}` with {what}");
        let header = HeaderName::try_from(name.as_str()).map_err(|_invalid| wrong("a name that is none"))?;
        let mut value =
            HeaderValue::try_from(value.as_str()).map_err(|_invalid| wrong("a value that cannot be sent"))?;
        value.set_sensitive(true);
        custom.insert(header, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(limits::MCP_MESSAGE_BYTES);
    let client = client_builder().tcp_nodelay(true).build();
    let client = client.map_err(|error| format!("cannot be reached: HTTP could not be set up: {error}"))?;
    Ok(StreamableHttpClientTransport::with_client(Shallow(client), config))
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
    let answered = |ours: String| Sent::Answered { ours, theirs: String::new() };
    Some(match error.downcast_ref::<StreamableHttpError<reqwest::Error>>()? {
        StreamableHttpError::Client(error) if error.is_connect() => Sent::No,
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            Sent::Unauthorized
        }
        StreamableHttpError::HttpStatus(status) => answered(format!("answered with HTTP {}", status.status)),
        StreamableHttpError::ResponseBodyTooLarge { max_size } => {
            answered(format!("answered with more than {max_size} bytes, which were not read"))
        }
        StreamableHttpError::UnexpectedContentType(_) | StreamableHttpError::Deserialize(_) => {
            answered("answered, but its answer is no valid message".into())
        }
        StreamableHttpError::UnexpectedServerResponse(said) => unexpected(said),
        _ => Sent::Perhaps,
    })
}

/// An answer that is reported as `HTTP STATUS: BODY`, or in words of the transport that may quote the server.
fn unexpected(said: &str) -> Sent {
    let status = said.strip_prefix("HTTP ").and_then(|rest| rest.split_once(": "));
    match status {
        Some((status, body)) => {
            let code = status.split(' ').next().unwrap_or_default();
            Sent::Answered { ours: format!("answered with HTTP {code}"), theirs: body.to_owned() }
        }
        None => Sent::Answered {
            ours: "answered, but its answer is no valid message".into(),
            theirs: said.to_owned(),
        },
    }
}

/// An error with everything behind it, and nothing of an address that may be a secret: reqwest's own words leave out
/// what matters, and tell what does not.
pub(super) fn in_full(error: &(dyn std::error::Error + 'static)) -> String {
    let (text, cause) = match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(inner)) => {
            (address::of_error(inner), std::error::Error::source(inner))
        }
        _ => (error.to_string(), error.source()),
    };
    let causes = iter::successors(cause, |cause| cause.source());
    address::scrubbed(&causes.fold(text, |text, cause| format!("{text}: {cause}")))
}
