//! Requests over HTTP, as clients of both versions send them.

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{NEW, OLD, client};
use crate::client::{Client, Reply, Stream};

/// Where the agent is.
pub(super) const DOOR: &str = "/mcp/helper";
/// What every client accepts.
pub(super) const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// A request.
pub(super) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The session that the head of an answer names.
pub(super) fn session(head: &str) -> String {
    let head = head.to_ascii_lowercase();
    let line = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    line.unwrap_or_else(|| panic!("{head}")).trim().to_owned()
}

/// The messages of a stream that was read to its end.
pub(super) fn messages(reply: &Reply) -> Vec<Value> {
    let text = reply.body.as_str().unwrap_or_else(|| panic!("{reply:?}"));
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
}

/// The parameters of such a request, and the name that its head has too.
fn standing_alone(mut params: Value, capabilities: Value) -> (Value, String) {
    params["_meta"] = client(capabilities);
    let name = params["name"].as_str().or(params["taskId"].as_str()).unwrap_or_default().to_owned();
    (params, name)
}

fn headers_of<'a>(method: &'a str, name: &'a str) -> Vec<(&'static str, &'a str)> {
    let all = [ACCEPT, ("mcp-protocol-version", NEW), ("mcp-method", method), ("mcp-name", name)];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

impl Client {
    /// Begins a session of the old version, and returns its id.
    pub(super) async fn mcp_session(&self, capabilities: Value) -> String {
        let params = json!({
            "protocolVersion": OLD, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"},
        });
        let reply = self.send("POST", DOOR, &[ACCEPT], Some(&request(0, "initialize", params))).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let id = session(&reply.head);
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.in_session(&id, &begun).await.status, 202);
        id
    }

    /// Sends a message of a session.
    pub(super) async fn in_session(&self, id: &str, message: &Value) -> Reply {
        let headers = [ACCEPT, ("mcp-session-id", id), ("mcp-protocol-version", OLD)];
        self.send("POST", DOOR, &headers, Some(message)).await
    }

    /// The stream of a request of a session.
    pub(super) async fn streamed_in(&self, id: &str, message: &Value) -> Stream {
        let headers = [ACCEPT, ("mcp-session-id", id), ("mcp-protocol-version", OLD)];
        self.stream("POST", DOOR, &headers, Some(message)).await
    }

    /// The stream of a session behind this event.
    pub(super) async fn streamed_behind(&self, id: &str, last: &str) -> Stream {
        let headers =
            [ACCEPT, ("mcp-session-id", id), ("mcp-protocol-version", OLD), ("last-event-id", last)];
        self.stream("GET", DOOR, &headers, None).await
    }

    /// The stream of a request of the new version, which stands alone.
    pub(super) async fn alone(&self, method: &str, params: Value, capabilities: Value) -> Stream {
        let (params, name) = standing_alone(params, capabilities);
        let headers = headers_of(method, &name);
        self.stream("POST", DOOR, &headers, Some(&request(1, method, params))).await
    }

    /// The connection on which such a request was sent.
    pub(super) async fn sent_alone(&self, method: &str, params: Value, capabilities: Value) -> TcpStream {
        let (params, name) = standing_alone(params, capabilities);
        let headers = headers_of(method, &name);
        self.sent("POST", DOOR, &headers, Some(&request(1, method, params))).await
    }

    /// The result of such a request.
    pub(super) async fn alone_result(&self, method: &str, params: Value, capabilities: Value) -> Value {
        let mut stream = self.alone(method, params, capabilities).await;
        answered(&mut stream).await
    }
}

/// What a stream has to its end, with the ids.
pub(super) async fn numbered(stream: &mut Stream) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    while let Some(event) = stream.numbered().await {
        all.push(event);
    }
    all
}

/// The result at the end of a stream.
pub(super) async fn answered(stream: &mut Stream) -> Value {
    loop {
        let message = stream.data().await.unwrap_or_else(|| panic!("no answer: {}", stream.head));
        if message["id"].is_null() || message["method"].is_string() {
            continue;
        }
        assert!(message["error"].is_null(), "{message}");
        return message["result"].clone();
    }
}
