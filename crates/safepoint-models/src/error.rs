//! From what HTTP and providers say to errors that tell a person what to do.

use http::HeaderValue;
use safepoint::{
    model::{ModelError, ModelErrorKind},
    raw::json::{self, Unread},
};
use safepoint_http::HttpError;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::address;

/// The error body that the wires share: `{"error": {"message": …, "type": …}}`.
#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorDetail {
    Full { message: String, code: Option<Value>, r#type: Option<String> },
    Text(String),
}

/// The provider's own words in an error body, if it has any.
pub(crate) fn provider_words(body: &[u8]) -> Option<String> {
    let words = match serde_json::from_slice::<ErrorBody>(body).ok()?.error {
        ErrorDetail::Full { message, .. } | ErrorDetail::Text(message) => message,
    };
    Some(shown(&words))
}

/// As much of a provider's words as an error holds.
pub(crate) fn shown(words: &str) -> String {
    const MOST: usize = 1000;
    words.chars().take(MOST).collect()
}

/// What providers and servers say of a conversation that does not fit: as a code, as a type, or only in words.
const TOO_LONG: [&str; 10] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "maximum context length",
    "prompt is too long",
    "exceed context limit",
    "exceeds the context window",
    "exceed context window",
    "available context size",
    "context size has been exceeded",
    "exceeds the maximum number of tokens",
];

/// Whether an error body says that the conversation does not fit the model's window.
fn is_too_long(body: &[u8]) -> bool {
    let Ok(ErrorBody { error }) = serde_json::from_slice(body) else { return false };
    match error {
        ErrorDetail::Text(message) => says_too_long(&message),
        ErrorDetail::Full { message, code, r#type } => {
            let code = code.as_ref().and_then(Value::as_str).unwrap_or_default();
            [&message, code, r#type.as_deref().unwrap_or_default()].into_iter().any(says_too_long)
        }
    }
}

fn says_too_long(words: &str) -> bool {
    let words = words.to_lowercase();
    TOO_LONG.iter().any(|known| words.contains(known))
}

fn too_long(said: String) -> ModelError {
    ModelError::new(ModelErrorKind::ContextWindow, said).with_hint(
        "the conversation does not fit the model: name its window, so that its oldest rounds are dropped or summarised \
         in time, take a model with a larger one, or begin a new conversation",
    )
}

/// The status by which Anthropic, and others after it, say that they have no room for a request now.
const OVERLOADED: u16 = 529;

/// An answer that is not a success.
pub(crate) fn of_status(status: u16, body: &[u8], url: &Url) -> ModelError {
    let words = provider_words(body).unwrap_or_else(|| "no reason was given".to_owned());
    if !matches!(status, 401 | 403 | 404 | 429) && is_too_long(body) {
        return too_long(format!("the provider answered {status}: {words}")).with_status(status);
    }
    let (kind, hint) = match status {
        // Gemini answers 400 to a key that it does not know.
        401 | 403 | 400 if status != 400 || words.contains("API key not valid") => (
            ModelErrorKind::Unauthorized,
            "check the API key: it is read from the variable that the model was given the name of, or else from \
             that of its provider, such as OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY"
                .to_owned(),
        ),
        404 => (
            ModelErrorKind::NotFound,
            format!(
                "check the model's name and the base URL; {} was asked (the base URL includes /v1)",
                address::shown(url.as_str())
            ),
        ),
        408 | 429 => (ModelErrorKind::RateLimited, "wait a little, or ask for a higher limit".to_owned()),
        503 | OVERLOADED => (ModelErrorKind::Overloaded, "try again later".to_owned()),
        400..=499 => (ModelErrorKind::Refused, "the provider refused the request as it stands".to_owned()),
        _ => (ModelErrorKind::Provider, "try again later".to_owned()),
    };
    ModelError::new(kind, format!("the provider answered {status}: {words}"))
        .with_hint(hint)
        .with_status(status)
}

/// An answer that points elsewhere. The client does not follow it: the key and the conversation are for the server that was named.
pub(crate) fn elsewhere(status: u16, asked: &Url, location: Option<&HeaderValue>) -> ModelError {
    const MOST: usize = 300;
    let place = location.and_then(|location| asked.join(location.to_str().ok()?).ok());
    let place = place.map_or_else(
        || "another address, which it does not name".to_owned(),
        |place| address::shown(place.as_str()).chars().take(MOST).collect(),
    );
    let asked = address::shown(asked.as_str());
    let what = format!("{asked} answered {status}: it sends us on to {place}");
    ModelError::new(ModelErrorKind::Refused, what).with_status(status).with_hint(
        "no redirect is followed, so that neither the key nor the conversation goes to another server; if that \
         address is the right one, make it the base URL",
    )
}

/// Whether another try may help, before the first byte.
pub(crate) fn is_worth_a_retry(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

/// A failure of the transport before the answer.
pub(crate) fn unreachable(url: &Url, error: HttpError) -> ModelError {
    let (url, why) = (address::shown(url.as_str()), error.root_cause());
    ModelError::new(ModelErrorKind::Unreachable, format!("could not reach {url}: {why}"))
        .with_hint("check the base URL, and that the server is running and can be reached from here")
        .with_source(error)
}

/// A failure of the transport inside the answer.
pub(crate) fn broken(error: HttpError) -> ModelError {
    ModelError::new(ModelErrorKind::Broken, format!("the connection broke while the model answered: {error}"))
        .with_hint("what had arrived is kept; ask again to continue")
        .with_source(error)
}

pub(crate) fn idle(after: std::time::Duration) -> ModelError {
    ModelError::new(ModelErrorKind::StreamIdle, format!("nothing arrived from the model for {after:?}"))
        .with_hint("the server accepted the request and fell silent; try again, or raise the idle timeout")
}

pub(crate) fn malformed(what: impl std::fmt::Display) -> ModelError {
    ModelError::new(
        ModelErrorKind::Malformed,
        format!("the model's answer is not what its wire promises: {what}"),
    )
    .with_hint("is the base URL that of a compatible server?")
}

/// More came than may: no failure, but the end of the reply by its limit.
pub(crate) fn too_much(what: &str, most: usize) -> ModelError {
    ModelError::new(ModelErrorKind::OutputBytes, format!("{what} has more than {most} bytes"))
}

/// A provider's JSON that is kept as a value.
///
/// # Errors
/// If it is not JSON, or becomes too large as a value.
pub(crate) fn value(json: &str) -> Result<Value, ModelError> {
    json::read(json.as_bytes()).map_err(|unread| match unread {
        Unread::TooManyValues => too_many("one event of the stream", json::MOST_VALUES),
        unread @ Unread::NotJson(_) => malformed(unread),
    })
}

/// The same of a list.
pub(crate) fn too_many(what: &str, most: usize) -> ModelError {
    ModelError::new(ModelErrorKind::OutputBytes, format!("{what} has a list of more than {most} entries"))
}

pub(crate) fn in_stream(message: &str) -> ModelError {
    in_stream_as("", message)
}

/// An error in a stream, with the provider's name for it.
pub(crate) fn in_stream_as(name: &str, message: &str) -> ModelError {
    let message: &str = &shown(message);
    if says_too_long(message) {
        return too_long(format!("the provider failed while it answered: {message}"));
    }
    let kind = match name {
        "overloaded_error" | "UNAVAILABLE" => ModelErrorKind::Overloaded,
        "rate_limit_error" | "RESOURCE_EXHAUSTED" => ModelErrorKind::RateLimited,
        _ => ModelErrorKind::Provider,
    };
    ModelError::new(kind, format!("the provider failed while it answered: {message}"))
        .with_hint("what had arrived is kept; ask again to continue")
}

pub(crate) fn ended_early() -> ModelError {
    ModelError::new(ModelErrorKind::Broken, "the model's stream ended before its end")
        .with_hint("what had arrived is kept; ask again to continue")
}
