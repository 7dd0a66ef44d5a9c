//! A bare loop's history: bytes that are appended to.

use bytes::Bytes;
use serde::Serialize;

use super::reply::BareCall;

/// All of a request that does not change, up to the first message.
const HEAD: &str = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"echo","description":"Returns its text","parameters":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}},{"type":"function","function":{"name":"nap","description":"Naps","parameters":{"type":"object","properties":{"ms":{"type":"integer"}},"required":["ms"]}}}],"messages":["#;
const TAIL: &[u8] = b"]}";

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum BareMessage<'a> {
    User { content: &'a str },
    Assistant { tool_calls: Vec<SentCall<'a>> },
    Tool { tool_call_id: &'a str, content: &'a str },
}

#[derive(Serialize)]
struct SentCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: SentFunction<'a>,
}

impl<'a> SentCall<'a> {
    fn of(call: &'a BareCall) -> Self {
        let function = SentFunction { name: &call.name, arguments: &call.arguments };
        Self { id: &call.id, r#type: "function", function }
    }
}

#[derive(Serialize)]
struct SentFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

pub(super) struct EncodedHistory(Vec<u8>);

impl EncodedHistory {
    pub(super) fn of(ask: &str) -> anyhow::Result<Self> {
        let mut history = Self(HEAD.as_bytes().to_vec());
        serde_json::to_writer(&mut history.0, &BareMessage::User { content: ask })?;
        Ok(history)
    }

    /// Adds a message with calls, and their results in its order.
    pub(super) fn push(&mut self, calls: &[BareCall], results: &[String]) -> anyhow::Result<()> {
        self.add(&BareMessage::Assistant { tool_calls: calls.iter().map(SentCall::of).collect() })?;
        for (call, content) in calls.iter().zip(results) {
            self.add(&BareMessage::Tool { tool_call_id: &call.id, content })?;
        }
        Ok(())
    }

    fn add(&mut self, message: &BareMessage<'_>) -> anyhow::Result<()> {
        self.0.push(b',');
        Ok(serde_json::to_writer(&mut self.0, message)?)
    }

    /// A request with all of it.
    pub(super) fn body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.0.len() + TAIL.len());
        body.extend_from_slice(&self.0);
        body.extend_from_slice(TAIL);
        body.into()
    }
}
