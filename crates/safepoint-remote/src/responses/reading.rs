//! A provider's report of a response.

use serde_json::Value;

/// A response as it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) id: String,
    pub(super) state: ResponseState,
    /// The text so far.
    pub(super) text: String,
}

/// How far the response is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResponseState {
    /// It is queued or running.
    Working(String),
    Completed,
    /// It was cut off, for this reason.
    Incomplete(String),
    Failed(String),
    Cancelled,
}

impl Standing {
    /// None for a value that is not a response of this wire.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let text_at = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let status = text_at("/status")?;
        let state = match status.as_str() {
            "queued" | "in_progress" => ResponseState::Working(status),
            "completed" => ResponseState::Completed,
            "incomplete" => ResponseState::Incomplete(
                text_at("/incomplete_details/reason").unwrap_or_else(|| "no reason".into()),
            ),
            "failed" => ResponseState::Failed(
                text_at("/error/message").unwrap_or_else(|| "it does not say why".into()),
            ),
            "cancelled" => ResponseState::Cancelled,
            _ => return None,
        };
        Some(Self { id: text_at("/id")?, state, text: said(&value["output"]) })
    }
}

/// All text of the messages, in order.
fn said(output: &Value) -> String {
    let items = output.as_array().map(Vec::as_slice).unwrap_or_default();
    let messages = items.iter().filter(|item| item["type"] == "message");
    let parts = messages.flat_map(|item| item["content"].as_array().map(Vec::as_slice).unwrap_or_default());
    parts.filter_map(|part| part["text"].as_str().or_else(|| part["refusal"].as_str())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S10.1: the answer is the text of the messages; other values are not read as a response.
    #[test]
    fn a_response_is_read() {
        let part = |text: &str| json!({"type": "output_text", "text": text});
        let value = json!({"id": "resp_1", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
            "output": [{"type": "reasoning", "summary": []}, {"type": "message", "content": [part("a"), part("b")]}]});
        let standing = Standing::read(&value).unwrap();
        assert_eq!(standing.state, ResponseState::Incomplete("max_output_tokens".into()));
        assert_eq!((standing.id.as_str(), standing.text.as_str()), ("resp_1", "ab"));
        for odd in
            [json!({}), json!({"id": "resp_1", "status": "lost"}), json!({"status": "queued"}), json!(1)]
        {
            assert_eq!(Standing::read(&odd), None, "{odd}");
        }
    }
}
