//! The loop that anybody would write: the whole history encoded each round, the stream parsed line by line.

use reqwest::Client;
use serde_json::{Value, json};

/// Runs a conversation to its end; the number of rounds.
pub(crate) async fn run(client: &Client, url: &str) -> anyhow::Result<usize> {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    let tools = json!([{"type": "function", "function": {"name": "noop", "description": "does nothing",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}}]);
    for round in 1.. {
        let body = serde_json::to_vec(&json!({"model": "m", "stream": true,
            "stream_options": {"include_usage": true}, "tools": tools, "messages": messages}))?;
        let request =
            client.post(format!("{url}/chat/completions")).header("content-type", "application/json");
        let mut response = request.body(body).send().await?;
        let mut reply = BareReply::default();
        let mut rest = Vec::new();
        while let Some(bytes) = response.chunk().await? {
            rest.extend_from_slice(&bytes);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                reply.line(&line)?;
            }
        }
        if reply.id.is_empty() {
            return Ok(round);
        }
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": reply.id,
            "type": "function", "function": {"name": reply.name, "arguments": reply.args}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": reply.id, "content": "ok"}));
    }
    Ok(0)
}

#[derive(Default)]
struct BareReply {
    text: String,
    id: String,
    name: String,
    args: String,
}

impl BareReply {
    fn line(&mut self, line: &[u8]) -> anyhow::Result<()> {
        let Some(data) = line.strip_prefix(b"data: ") else { return Ok(()) };
        if data.starts_with(b"[DONE]") {
            return Ok(());
        }
        let chunk: Value = serde_json::from_slice(data)?;
        let delta = &chunk["choices"][0]["delta"];
        self.text.push_str(delta["content"].as_str().unwrap_or_default());
        let call = &delta["tool_calls"][0];
        self.id.push_str(call["id"].as_str().unwrap_or_default());
        self.name.push_str(call["function"]["name"].as_str().unwrap_or_default());
        self.args.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
        Ok(())
    }
}
