//! What all HTTP adapters share: one client, and exchanges that distinguish what may have arrived from what
//! has not.

use std::{
    fmt,
    future::Future,
    time::{Duration, SystemTime},
};

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{AUTHORIZATION, RETRY_AFTER},
};
use safepoint::{
    raw::{remote::RemoteEvent, trace},
    stop::Failure,
};
use safepoint_http::{HttpClient, Request, Response};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::timeout;
use url::Url;

/// Why an exchange failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broke {
    /// No connection could be made: nothing was sent.
    Unreachable(String),
    /// The request was sent, or may have been, and the connection broke.
    Lost(String),
    /// The answer does not follow the protocol.
    Foreign(String),
    /// The answer is an error of the protocol.
    Error { code: i64, message: String },
    /// The answer has a status that is not a success; `again` is the server's retry time, if it names one.
    Status { status: StatusCode, message: String, again: Option<Duration> },
}

/// JSON-RPC's errors for a request that was not understood, and A2A's for one that was not accepted. The
/// missing codes (an internal error, an invalid answer of an agent) do not say that nothing was begun.
const NOT_TAKEN: [i64; 12] =
    [-32700, -32600, -32601, -32602, -32001, -32002, -32003, -32004, -32005, -32007, -32008, -32009];

/// JSON-RPC's errors for a request that fails every time: it was not understood, or there is no such method.
const FOR_GOOD: [i64; 4] = [-32700, -32600, -32601, -32602];

impl Broke {
    /// Whether the answer shows that the work was not begun. An error of the server or of a proxy does not:
    /// it may come when the work is running.
    pub(crate) fn began_nothing(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Lost(_) | Self::Foreign(_) => false,
            Self::Error { code, .. } => NOT_TAKEN.contains(code),
            Self::Status { status, .. } => {
                let is_known = *status != StatusCode::REQUEST_TIMEOUT && *status != StatusCode::CONFLICT;
                status.is_client_error() && is_known
            }
        }
    }

    /// Whether the same request may succeed later: the connection or the server has a temporary fault.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Lost(_) | Self::Foreign(_) => true,
            Self::Error { code, .. } => !FOR_GOOD.contains(code),
            Self::Status { status, .. } => {
                let passes = [
                    StatusCode::REQUEST_TIMEOUT,
                    StatusCode::CONFLICT,
                    StatusCode::TOO_EARLY,
                    StatusCode::TOO_MANY_REQUESTS,
                ];
                !status.is_client_error() || passes.contains(status)
            }
        }
    }

    /// Whether the server answered, whatever it said.
    pub(crate) fn is_an_answer(&self) -> bool {
        matches!(self, Self::Foreign(_) | Self::Error { .. } | Self::Status { .. })
    }

    /// The end of work whose first request failed with this: refused in these words, or this may have arrived.
    pub(crate) fn at_first_request(self, refused: &str, sent: &str) -> RemoteEvent {
        match self {
            Self::Unreachable(why) => RemoteEvent::Failed(Failure::new(why).unreachable()),
            broke if broke.began_nothing() => {
                RemoteEvent::Failed(Failure::new(format!("{refused}: {broke}")).without_effect())
            }
            broke => RemoteEvent::Lost(Failure::new(format!("{sent} may have arrived: {broke}"))),
        }
    }

    /// How long to wait before the next request: as long as the server says, and at least this.
    pub(crate) fn wait(&self, least: Duration) -> Duration {
        match self {
            Self::Status { again: Some(again), .. } => least.max((*again).min(LONGEST_AGAIN)),
            _ => least,
        }
    }
}

/// The longest retry time of a server that the adapter follows.
const LONGEST_AGAIN: Duration = Duration::from_secs(300);

/// When the server asks for the next request: after a number of seconds, or at a date.
pub(crate) fn again(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}

impl fmt::Display for Broke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Lost(why) | Self::Foreign(why) => f.write_str(why),
            Self::Status { message, .. } => f.write_str(message),
            Self::Error { code, message } => write!(f, "{message} ({code})"),
        }
    }
}

/// A server's message with a status that is not a success, in a line of bounded length.
pub(crate) fn refusal(status: StatusCode, body: &[u8]) -> String {
    const SHOWN: usize = 200;
    let words = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    let words: Vec<&str> = words.split_whitespace().collect();
    if words.is_empty() {
        return format!("the server answered {status}");
    }
    let more = if body.len() > SHOWN { "…" } else { "" };
    format!("the server answered {status}: {}{more}", words.join(" "))
}

/// Sends the request, with the context of the current span if that is traced, and waits for the head of the answer.
pub(crate) async fn send(request: Request) -> Result<Response, Broke> {
    traced(request).send().await.map_err(|error| {
        let why = error.to_string();
        if error.is_connect() || error.is_unusable() { Broke::Unreachable(why) } else { Broke::Lost(why) }
    })
}

fn traced(request: Request) -> Request {
    match trace::current() {
        Some(context) => request.texts(context.headers()),
        None => request,
    }
}

/// The answer, if it arrives in this time.
pub(crate) async fn within<T>(
    time: Duration,
    answer: impl Future<Output = Result<T, Broke>>,
) -> Result<T, Broke> {
    let answer = timeout(time, answer).await;
    answer.unwrap_or_else(|_elapsed| Err(Broke::Lost(format!("no answer within {time:?}"))))
}

/// A wait that is doubled for each time that it was too short.
pub(crate) fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times)).min(longest)
}

/// The whole body, if it is within the bound.
pub(crate) async fn whole(mut response: Response, bound: usize) -> Result<Vec<u8>, Broke> {
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|error| Broke::Lost(format!("the answer broke off: {error}")))?;
        let Some(chunk) = chunk else { return Ok(body) };
        if body.len() + chunk.len() > bound {
            return Err(Broke::Foreign(format!("it is larger than {bound} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
}

/// The process's client. It follows no redirect, which would send the message to another server.
pub(crate) fn client() -> Result<HttpClient, String> {
    safepoint_http::shared().map_err(|error| error.to_string())
}

/// An http or https address.
pub(crate) fn web_address(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// A bearer token as a header that is never shown; none if it cannot be sent.
pub(crate) fn bearer(token: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// An address as it may be shown: without its query, which may hold a key, and its fragment.
pub(crate) fn without_query(address: &str) -> &str {
    address.split(['?', '#']).next().unwrap_or(address)
}

/// Splits an address into one without user, password and query, which may be shown, the one of requests, and the
/// header that carries user and password.
pub(crate) fn apart(text: &str, url: Url) -> (String, Url, HeaderMap) {
    match safepoint_http::apart(&url) {
        None => (without_query(text).to_owned(), url, HeaderMap::new()),
        Some((url, known)) => {
            let shown = without_query(url.as_str()).trim_end_matches('/').to_owned();
            (shown, url, HeaderMap::from_iter([(AUTHORIZATION, known)]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A status, as a server answers with it.
    fn status(status: u16, again: Option<u64>) -> Broke {
        let status = StatusCode::from_u16(status).unwrap();
        Broke::Status { status, message: status.to_string(), again: again.map(Duration::from_secs) }
    }

    /// S3.8, S10.3: only a request that was refused, or could not be sent, is known to have begun nothing.
    #[test]
    fn what_shows_that_nothing_was_begun_is_distinguished() {
        let error = |code| Broke::Error { code, message: String::new() };
        for refused in [400, 401, 404, 422, 429].map(|code| status(code, None)) {
            assert!(refused.began_nothing(), "{refused}");
        }
        assert!(Broke::Unreachable(String::new()).began_nothing());
        assert!(error(-32602).began_nothing() && error(-32004).began_nothing());
        for unknown in [500, 502, 503, 504, 408, 409, 301].map(|code| status(code, None)) {
            assert!(!unknown.began_nothing(), "{unknown}");
        }
        for unknown in [error(-32603), error(-32006), error(1), Broke::Lost(String::new())] {
            assert!(!unknown.began_nothing(), "{unknown:?}");
        }
    }

    /// S10.40: the adapter does not repeat a request that fails every time; it reports the server's message.
    #[test]
    fn a_failure_that_may_pass_is_distinguished() {
        let error = |code| Broke::Error { code, message: String::new() };
        for refused in [400, 401, 403, 404, 405, 406].map(|code| status(code, None)) {
            assert!(!refused.may_pass(), "{refused}");
        }
        assert!(!error(-32601).may_pass() && !error(-32602).may_pass());
        assert!(error(-32001).may_pass() && error(-32603).may_pass() && status(500, None).may_pass());
        let message = refusal(StatusCode::NOT_ACCEPTABLE, b"{\"error\":\n  \"Not Acceptable\"}");
        assert_eq!(message, "the server answered 406 Not Acceptable: {\"error\": \"Not Acceptable\"}");
        assert_eq!(refusal(StatusCode::NOT_FOUND, b" "), "the server answered 404 Not Found");
    }

    /// The adapter sends a password in an address, and shows it nowhere.
    #[test]
    fn a_password_in_an_address_is_not_shown() {
        let of = |text: &str| apart(text, Url::parse(text).unwrap());
        let (shown, url, headers) = of("http://otter:s3cret@localhost:9000/");
        assert_eq!((shown.as_str(), url.as_str()), ("http://localhost:9000", "http://localhost:9000/"));
        assert!(headers[AUTHORIZATION].to_str().unwrap().starts_with("Basic "));
        assert!(!format!("{headers:?}").contains("Basic"), "{headers:?}");
        let (shown, _, headers) = of("http://localhost:9000");
        assert_eq!((shown.as_str(), headers.len()), ("http://localhost:9000", 0));
    }

    /// S10.69: a query may hold a key. The adapter sends it, and shows it nowhere.
    #[test]
    fn a_query_of_an_address_is_not_shown() {
        let of = |text: &str| apart(text, Url::parse(text).unwrap());
        for user in ["", "otter:s3cret@"] {
            let (shown, url, _) = of(&format!("http://{user}localhost:9000/agent?key=sk-otter#part"));
            assert_eq!(shown, "http://localhost:9000/agent");
            assert_eq!(url.query(), Some("key=sk-otter"), "{url}");
        }
        assert_eq!(of("http://localhost:9000/?key=sk-otter").0, "http://localhost:9000/");
        assert_eq!(of("http://localhost:9000#part").0, "http://localhost:9000");
    }

    /// S10.3: the adapter repeats a request that may succeed, and no sooner than the server allows.
    #[test]
    fn a_server_is_asked_again_no_sooner_than_it_says() {
        let least = Duration::from_secs(2);
        assert!(
            status(429, None).may_pass() && status(503, None).may_pass() && !status(404, None).may_pass()
        );
        assert_eq!(status(429, Some(30)).wait(least), Duration::from_secs(30));
        assert_eq!(status(429, Some(1)).wait(least), least);
        assert_eq!(status(503, Some(u64::MAX)).wait(least), LONGEST_AGAIN);
        let of = |value: &str| again(&HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]));
        assert_eq!(of("7"), Some(Duration::from_secs(7)));
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(of("soon"), None);
    }
}
