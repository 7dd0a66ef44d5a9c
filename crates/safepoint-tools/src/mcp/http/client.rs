//! rmcp's requests over our client.
//!
//! **Invariants**: a request is sent once; no redirect is followed; dropping what waits ends its exchange on the wire.

use std::{collections::HashMap, sync::Arc};

use futures_util::stream::BoxStream;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use safepoint_http::{HttpClient, Request, Response};
use sse_stream::Sse;
use url::Url;

use super::{
    super::{address, server::TokenSource},
    Failed, NoMessage,
    answer::{self, AnswerKind, AskedPost},
    events,
};
use crate::limits;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const ACCEPTED: HeaderValue = HeaderValue::from_static("text/event-stream, application/json");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Events = BoxStream<'static, Result<Sse, SseError>>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Streamable HTTP over a pool of our own.
#[derive(Clone)]
pub(in super::super) struct StreamableClient {
    pub(super) client: HttpClient,
    /// Asked before each request.
    pub(super) token: Option<TokenSource>,
}

/// What a request is sent with.
struct SentWith {
    session: Option<Arc<str>>,
    last: Option<String>,
    token: Option<String>,
    headers: Headers,
}

impl SentWith {
    fn into_headers(self, uri: &str) -> Result<HeaderMap, Failed> {
        let mut all: HeaderMap = self.headers.into_iter().collect();
        let own = [
            (SESSION, self.session.as_deref()),
            (LAST_EVENT, self.last.as_deref()),
            (AUTHORIZATION, self.token.map(|token| format!("Bearer {token}")).as_deref()),
        ]
        .map(|(name, value)| (name, value.map(HeaderValue::from_str)));
        for (name, value) in own {
            let Some(value) = value else { continue };
            let mut value = value.map_err(|_invalid| unsent(uri, format!("`{name}` cannot be sent")))?;
            value.set_sensitive(true);
            all.insert(name, value);
        }
        Ok(all)
    }
}

fn unsent(uri: &str, why: String) -> Failed {
    Failed::Client(NoMessage::Unsent { at: address::one(uri), why })
}

impl StreamableClient {
    async fn request(&self, method: Method, uri: &str, mut with: SentWith) -> Result<Request, Failed> {
        let address = Url::parse(uri).map_err(|error| unsent(uri, error.to_string()))?;
        if let Some(token) = &self.token {
            with.token = Some(token().await.map_err(|why| unsent(uri, why))?);
        }
        Ok(self.client.request(method, &address).headers(with.into_headers(uri)?))
    }
}

async fn sent(request: Request, uri: &str) -> Result<Response, Failed> {
    request.send().await.map_err(|error| {
        if error.is_connect() || error.is_unusable() {
            return unsent(uri, error.to_string());
        }
        NoMessage::broken(uri, &error)
    })
}

impl StreamableHttpClient for StreamableClient {
    type Error = NoMessage;

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
        let body = serde_json::to_vec(&message).map_err(|error| unsent(&uri, error.to_string()))?;
        let has_session = session.is_some();
        let with = SentWith { session, last: None, token, headers };
        let own = [(ACCEPT, ACCEPTED), (CONTENT_TYPE, JSON)];
        let request =
            self.request(Method::POST, &uri, with).await?.headers(own.into_iter().collect()).body(body);
        let response = sent(request, &uri).await?;
        answer::read(response, &AskedPost { message: &message, has_session, uri: &uri }, most).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        let with = SentWith { session: Some(session), last: None, token, headers };
        let status = sent(self.request(Method::DELETE, &uri, with).await?, &uri).await?.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            tracing::debug!("the MCP server ends its sessions by itself");
            return Ok(());
        }
        answer::good(status)
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
        let with = SentWith { session, last, token, headers };
        let accepted = [(ACCEPT, ACCEPTED)].into_iter().collect();
        let response = sent(self.request(Method::GET, &uri, with).await?.headers(accepted), &uri).await?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        answer::challenged(&response)?;
        answer::good(response.status())?;
        match AnswerKind::of(&response) {
            AnswerKind::Events => Ok(events::read(response, most)),
            AnswerKind::Json => {
                Err(StreamableHttpError::UnexpectedContentType(Some("application/json".into())))
            }
            AnswerKind::Other(named) => Err(StreamableHttpError::UnexpectedContentType(named)),
        }
    }
}
