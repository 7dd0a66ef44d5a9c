//! What is asked over HTTP: a request, and what its answer says an event at a time.

use safepoint_http::{HttpError, Response, shared};
use serde_json::Value;
use url::Url;

/// The longest answer that is read before its next line ends.
const LONGEST: usize = 16 << 20;

/// An answer, as it comes.
pub(super) struct Events {
    response: Response,
    read: Vec<u8>,
    is_over: bool,
}

/// Posts this; the answer's status was a success.
pub(super) async fn post(address: &Url, headers: &[(&'static str, &str)], body: &Value) -> Result<Events, String> {
    let json = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let client = shared().map_err(|error| error.to_string())?;
    let request = client.post(address).texts(json).texts(headers.iter().copied()).body(body.to_string());
    answered(request.send().await).await
}

/// Gets this; the answer's status was a success.
pub(super) async fn get(address: &Url) -> Result<Value, String> {
    let client = shared().map_err(|error| error.to_string())?;
    let mut events = answered(client.get(address).send().await).await?;
    events.next().await.ok_or_else(|| "no JSON".to_owned())
}

async fn answered(sent: Result<Response, HttpError>) -> Result<Events, String> {
    let response = sent.map_err(|error| error.root_cause())?;
    let status = response.status();
    let mut events = Events { response, read: Vec::new(), is_over: false };
    if status.is_success() {
        return Ok(events);
    }
    let words = events.next().await.unwrap_or_default();
    Err(format!("status {status}: {words}"))
}

impl Events {
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
                Ok(None) | Err(_) => self.is_over = true,
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
