//! The HTTP client of an MCP connection, for servers with messages in which something is nested deeply: such a part is cut
//! out, and the rest is read.
//!
//! **Invariants**: nothing but a request for a list of tools is sent twice: it changes nothing.

use std::{collections::HashMap, sync::Arc};

use futures_util::{StreamExt as _, stream::BoxStream};
use reqwest::{
    Client, RequestBuilder,
    header::{ACCEPT, HeaderName, HeaderValue},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};

use sse_stream::Sse;

use super::depth;
use crate::limits;

type Failed = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;
type Headers = HashMap<HeaderName, HeaderValue>;

const SESSION: &str = "mcp-session-id";
const ACCEPTED: &str = "application/json, text/event-stream";

/// rmcp's client over reqwest, which refuses the whole of a message when a part of it is nested deeply.
#[derive(Clone)]
pub(super) struct Shallow(pub(super) Client);

/// What a request is sent with.
struct SentMessage {
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: Headers,
}

impl SentMessage {
    /// It on a request.
    fn on(self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(session) = self.session {
            request = request.header(SESSION, &*session);
        }
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        self.headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
    }
}

/// The events of a stream, with what is too deep cut out of each.
fn each(events: Events) -> Events {
    let cut =
        |event: Result<Sse, SseError>| event.map(|event| Sse { data: event.data.map(shallow), ..event });
    events.map(cut).boxed()
}

fn shallow(text: String) -> String {
    let cut = depth::cut(text.as_bytes(), limits::MCP_DEPTH).map(String::from_utf8);
    cut.and_then(Result::ok).unwrap_or(text)
}

/// Whether it may be sent again: it asks for a list of tools.
fn asks_for_a_list(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::ListToolsRequest(_)))
}

impl Shallow {
    /// Asks for a list again, and reads of its answer what is not too deep; none if that is no answer either.
    async fn list(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        sent: SentMessage,
    ) -> Option<StreamableHttpPostResponse> {
        let request = sent.on(self.0.post(uri)).header(ACCEPT, ACCEPTED).json(message);
        let mut response = request.send().await.ok().filter(|response| response.status().is_success())?;
        let session = response.headers().get(SESSION).and_then(|session| session.to_str().ok());
        let session = session.map(str::to_owned);
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.ok()? {
            body.extend_from_slice(&piece);
            if body.len() > limits::MCP_MESSAGE_BYTES {
                return None;
            }
        }
        let cut = depth::cut(&body, limits::MCP_DEPTH)?;
        let message = serde_json::from_slice::<ServerJsonRpcMessage>(&cut).ok()?;
        Some(StreamableHttpPostResponse::Json(message, session))
    }
}

impl StreamableHttpClient for Shallow {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let most = limits::MCP_MESSAGE_BYTES;
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, most).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let again = asks_for_a_list(&message).then(|| {
            let sent =
                SentMessage { session: session.clone(), token: token.clone(), headers: headers.clone() };
            (Arc::clone(&uri), message.clone(), sent)
        });
        let answer =
            self.0.post_message_with_max_sse_event_size(uri, message, session, token, headers, most).await;
        match (answer, again) {
            (Ok(StreamableHttpPostResponse::Sse(events, session)), _) => {
                Ok(StreamableHttpPostResponse::Sse(each(events), session))
            }
            // It was no message, as far as rmcp reads.
            (Err(StreamableHttpError::UnexpectedServerResponse(why)), Some((uri, message, sent))) => {
                let read = self.list(&uri, &message, sent).await;
                read.ok_or(StreamableHttpError::UnexpectedServerResponse(why))
            }
            (answer, _) => answer,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failed> {
        let most = limits::MCP_MESSAGE_BYTES;
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, most).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<Events, Failed> {
        let events =
            self.0.get_stream_with_max_sse_event_size(uri, session, last, token, headers, most).await?;
        Ok(each(events))
    }
}
