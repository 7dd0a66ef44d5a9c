//! Why a request is refused, as `application/problem+json` with a stable code (RFC 9457).

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use safepoint::store;
use serde_json::{Map, Value, json};

/// How long a client waits before it tries again, if the store did not answer.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The code of what a parked session refuses.
pub(crate) const PARKED: &str = "parked";

/// A refusal: a status, a stable code, and what the code needs.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    fields: Map<String, Value>,
    retry_after: Option<Duration>,
}

/// How requests end that are not refused.
pub(crate) type Answered<T> = Result<T, Problem>;

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        let mut fields = Map::new();
        fields.insert("type".into(), json!(format!("urn:safepoint:problem:{code}")));
        fields.insert("status".into(), json!(status.as_u16()));
        fields.insert("code".into(), json!(code));
        fields.insert("detail".into(), json!(detail.into()));
        Self { status, fields, retry_after: None }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", detail)
    }

    pub(crate) fn conflict(code: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// What does not exist, or not for this token: the two are not told apart.
    pub(crate) fn no_such(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, &format!("no_such_{what}"), format!("{what} not found"))
    }

    pub(crate) fn draining() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", "the server is draining and begins nothing")
            .retry_after(RETRY_AFTER)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &str {
        self.fields.get("code").and_then(Value::as_str).unwrap_or_default()
    }

    /// What a person reads.
    pub(crate) fn detail(&self) -> &str {
        self.fields.get("detail").and_then(Value::as_str).unwrap_or_default()
    }

    /// What the code needs, by its name; null: nothing of this name.
    pub(crate) fn field(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    /// A response of another form that says the same: the status, and when to come again.
    pub(crate) fn answered_by(&self, body: &Value) -> Response {
        let mut response = Response::new(Body::from(body.to_string()));
        self.head(&mut response, "application/json");
        response
    }

    fn head(&self, response: &mut Response, kind: &'static str) {
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(after) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
    }

    /// Adds what the code needs.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        match &error {
            store::Error::NoSession(_) => Self::no_such("session"),
            store::Error::Held(..) => Self::conflict("session_open", error.to_string()),
            store::Error::Parked(..) => Self::conflict(
                PARKED,
                format!(
                    "{error}; it can be read and stopped, and POST /v1/sessions/ID/resume takes it again"
                ),
            ),
            store::Error::Damaged(..) => Self::conflict("damaged", error.to_string()),
            store::Error::Draining(_) => Self::draining(),
            store::Error::Buried(_) | store::Error::NodeLapsed(_) => {
                let said = "the lease of this server in its store is over; it joins the store again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", said).retry_after(RETRY_AFTER)
            }
            _ => Self::new(StatusCode::SERVICE_UNAVAILABLE, "store", error.to_string())
                .retry_after(RETRY_AFTER),
        }
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Self {
        let detail = error.to_string();
        let code = if detail.contains("unknown field") { "unknown_field" } else { "bad_request" };
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        self.head(&mut response, "application/problem+json");
        *response.body_mut() = Body::from(Value::Object(self.fields).to_string());
        response
    }
}
