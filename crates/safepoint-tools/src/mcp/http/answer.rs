//! What the answer to a message is: a message, a stream of them, nothing, or a refusal.

use http::{
    StatusCode,
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        AuthRequiredError, InsufficientScopeError, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use safepoint_http::Response;

use super::{super::message, Failed, NoMessage, client::SESSION, events};
use crate::limits;

/// What was sent.
pub(super) struct AskedPost<'a> {
    pub(super) message: &'a ClientJsonRpcMessage,
    pub(super) has_session: bool,
    pub(super) uri: &'a str,
}

/// How an answer is written. Exhaustive: the two ways of the protocol, or another, and its name.
pub(super) enum AnswerKind {
    Events,
    Json,
    Other(Option<String>),
}

impl AnswerKind {
    pub(super) fn of(response: &Response) -> Self {
        let named = response.headers().get(CONTENT_TYPE);
        let named = named.map(|named| String::from_utf8_lossy(named.as_bytes()).to_ascii_lowercase());
        match named {
            Some(named) if named.starts_with("text/event-stream") => Self::Events,
            Some(named) if named.starts_with("application/json") => Self::Json,
            other => Self::Other(other),
        }
    }
}

impl AskedPost<'_> {
    /// Its id, if it wants an answer.
    fn id(&self) -> Option<&RequestId> {
        match self.message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        }
    }

    /// Its id, if it asks what the server speaks.
    fn discovers(&self) -> Option<&RequestId> {
        match self.message {
            ClientJsonRpcMessage::Request(request) => {
                matches!(request.request, ClientRequest::DiscoverRequest(_)).then_some(&request.id)
            }
            _ => None,
        }
    }
}

pub(super) async fn read(
    response: Response,
    asked: &AskedPost<'_>,
    most: usize,
) -> Result<StreamableHttpPostResponse, Failed> {
    challenged(&response)?;
    match response.status() {
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
        StatusCode::NOT_FOUND if asked.has_session => return Err(StreamableHttpError::SessionExpired),
        status if !status.is_success() => return refused(response, asked).await,
        _ => {}
    }
    if asked.id().is_none() && response.left() == Some(0) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    let session = session(&response);
    match AnswerKind::of(&response) {
        AnswerKind::Events => Ok(StreamableHttpPostResponse::Sse(events::read(response, most), session)),
        AnswerKind::Json => {
            let body = body(response, asked, most).await?;
            match message::read(&body) {
                Ok(read) => Ok(StreamableHttpPostResponse::Json(read.message, session)),
                // Some servers answer a notice, which wants no answer.
                Err(_why) if asked.id().is_none() => Ok(StreamableHttpPostResponse::Accepted),
                Err(why) => Err(Failed::Client(NoMessage::Unread { why, begins: beginning(&body) })),
            }
        }
        AnswerKind::Other(named) => Err(StreamableHttpError::UnexpectedContentType(named)),
    }
}

/// Who asks has to say who that is, or may not ask for this.
pub(super) fn challenged(response: &Response) -> Result<(), Failed> {
    let Some(challenge) = response.headers().get(WWW_AUTHENTICATE) else { return Ok(()) };
    let challenge = String::from_utf8_lossy(challenge.as_bytes()).into_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))),
        StatusCode::FORBIDDEN => {
            // Which scope would do is for those who can ask for one.
            let scope = InsufficientScopeError::new(challenge, None);
            Err(StreamableHttpError::InsufficientScope(scope))
        }
        _ => Ok(()),
    }
}

/// Whether that is no refusal.
pub(super) fn good(status: StatusCode) -> Result<(), Failed> {
    if status.is_client_error() || status.is_server_error() {
        return Err(status_only(status));
    }
    Ok(())
}

fn status_only(status: StatusCode) -> Failed {
    Failed::Client(NoMessage::Status { code: status.as_u16(), body: String::new() })
}

/// A refusal may be a message. Of a server that is down or busy no page is read.
async fn refused(response: Response, asked: &AskedPost<'_>) -> Result<StreamableHttpPostResponse, Failed> {
    let (status, is_json) = (response.status(), matches!(AnswerKind::of(&response), AnswerKind::Json));
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS;
    if is_busy || (status.is_server_error() && !is_json) {
        return Err(status_only(status));
    }
    let session = session(&response);
    // What is too large, or breaks off, is left out: the status says enough.
    let body = body(response, asked, limits::MCP_REFUSAL_BYTES).await.unwrap_or_default();
    let said = match message::read(&body) {
        Ok(read) => match read.message {
            ServerJsonRpcMessage::Error(said) => Some(said),
            _ => None,
        },
        Err(_why) => None,
    };
    let is_about_who_asks = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // A server that refuses to say what it speaks is an older one, or says what it does not speak. Whether it named the
    // request or not, this is the answer to it.
    if let Some(id) = asked.discovers()
        && !asked.has_session
        && status.is_client_error()
        && !is_about_who_asks
    {
        let why = said
            .map_or_else(|| ErrorData::invalid_request(format!("HTTP {status}"), None), |said| said.error);
        let answer = ServerJsonRpcMessage::error(why, Some(id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match said {
        Some(said) if is_json && !is_about_who_asks => {
            Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(said), session))
        }
        _ if status.is_server_error() => Err(status_only(status)),
        _ => {
            let body = String::from_utf8_lossy(&body).into_owned();
            Err(Failed::Client(NoMessage::Status { code: status.as_u16(), body }))
        }
    }
}

fn session(response: &Response) -> Option<String> {
    response.headers().get(SESSION)?.to_str().ok().map(str::to_owned)
}

async fn body(mut response: Response, asked: &AskedPost<'_>, most: usize) -> Result<Vec<u8>, Failed> {
    let too_large = || StreamableHttpError::ResponseBodyTooLarge { max_size: most };
    if response.left().is_some_and(|left| left > most as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| NoMessage::broken(asked.uri, &error))? {
        if piece.len() > most - body.len() {
            return Err(too_large());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Enough of what is no message to see what it is.
fn beginning(body: &[u8]) -> String {
    let shown = &body[..body.len().min(limits::MCP_UNREAD_BYTES)];
    String::from_utf8_lossy(shown).into_owned()
}
