//! What is asked over HTTP: a request, and what its answer says an event at a time.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use safepoint_http::{HttpError, Request, Response, shared};
use serde_json::Value;
use url::Url;

/// The longest answer that is read before its next line ends.
const LONGEST: usize = 16 << 20;

/// An answer, as it comes.
pub(super) struct Events {
    response: Response,
    read: Vec<u8>,
    is_over: bool,
    is_cut: bool,
}

/// Headers that a request has beside its own.
pub(super) type Headers = [(String, String)];

/// Posts this; the answer's status was a success.
pub(super) async fn post(address: &Url, headers: &Headers, body: &Value) -> Result<Events, String> {
    answered(request((&Method::POST, address), headers, body.to_string())?.send().await).await
}

/// A request with this body, if there is one, of JSON if the headers do not say otherwise.
///
/// # Errors
/// Which header cannot be sent.
pub(super) fn request(
    (method, address): (&Method, &Url),
    headers: &Headers,
    body: String,
) -> Result<Request, String> {
    let client = shared().map_err(|error| error.to_string())?;
    let request = client.request(method.clone(), address);
    let request = request.texts([("accept", "application/json, text/event-stream")]);
    if body.is_empty() {
        return Ok(request.headers(read(headers)?));
    }
    Ok(request.texts([("content-type", "application/json")]).headers(read(headers)?).body(body))
}

/// Gets this; the answer's status was a success.
pub(super) async fn get(address: &Url, headers: &Headers) -> Result<Value, String> {
    let client = shared().map_err(|error| error.to_string())?;
    let mut events = answered(client.get(address).headers(read(headers)?).send().await).await?;
    events.next().await.ok_or_else(|| "it answered with no JSON".to_owned())
}

fn read(headers: &Headers) -> Result<HeaderMap, String> {
    let of = |(name, value): &(String, String)| {
        let name: HeaderName = name.parse().map_err(|_invalid| format!("`{name}` is no name of a header"))?;
        let value: HeaderValue = value.parse().map_err(|_invalid| format!("`{name}` has no such value"))?;
        Ok((name, value))
    };
    headers.iter().map(of).collect()
}

/// The answer, if its status was a success.
///
/// # Errors
/// What it says otherwise, or why there is none.
pub(super) async fn answered(sent: Result<Response, HttpError>) -> Result<Events, String> {
    let response = sent.map_err(|error| error.root_cause())?;
    let status = response.status();
    let mut events = Events { response, read: Vec::new(), is_over: false, is_cut: false };
    if status.is_success() {
        return Ok(events);
    }
    let words = events.next().await.map_or_else(String::new, |words| format!(": {words}"));
    Err(format!("it answered {status}{words}"))
}

impl Events {
    /// The head of the answer.
    pub(super) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Whether its connection ended before it was whole, or it has a line without an end.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut || !self.is_over
    }

    /// The next event's data, or the whole answer if it is no stream; none once it is over, or is none of JSON.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.taken() {
                return Some(event);
            }
            if self.is_over || self.read.len() > LONGEST {
                return None;
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.read.extend_from_slice(&bytes),
                Ok(None) => self.is_over = true,
                Err(_) => (self.is_over, self.is_cut) = (true, true),
            }
        }
    }

    /// The next event of what was read.
    fn taken(&mut self) -> Option<Value> {
        while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.read.drain(..=end).collect();
            let line = line.strip_prefix(b"data:").unwrap_or(&line);
            if let Ok(event @ Value::Object(_)) = serde_json::from_slice(line) {
                return Some(event);
            }
        }
        if !self.is_over {
            return None;
        }
        let rest = std::mem::take(&mut self.read);
        serde_json::from_slice(rest.strip_prefix(b"data:").unwrap_or(&rest)).ok()
    }
}
