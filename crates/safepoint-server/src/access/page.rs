//! What a browser wants to hear before it lets a page of another origin read an answer (CORS).

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};

/// What pages may ask with.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, last-event-id, a2a-version, mcp-protocol-version, mcp-session-id, traceparent, \
     tracestate",
);
/// What they may read beside the answer.
const SHOWN: HeaderValue =
    HeaderValue::from_static("idempotency-replayed, retry-after, mcp-session-id, www-authenticate");
/// How long a browser may keep that, in seconds.
const KEPT: HeaderValue = HeaderValue::from_static("600");

/// A page elsewhere that may call, by its origin.
#[derive(Clone, Debug)]
pub(crate) struct Page(pub(super) HeaderValue);

impl Page {
    /// The page may read this answer.
    pub(crate) fn reads(&self, response: &mut Response) {
        let headers = response.headers_mut();
        self.named(headers);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN);
    }

    /// The page may send the request that its browser asks about.
    pub(crate) fn sends(&self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        self.named(headers);
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, KEPT);
        response
    }

    fn named(&self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}

/// Whether a browser asks whether a page may send something.
pub(crate) fn is_asked(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}
