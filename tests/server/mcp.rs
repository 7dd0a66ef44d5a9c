//! MCP over two streams of bytes and on a real socket: a call is one item, and nothing is answered before it has settled.

use std::sync::Arc;

use safepoint::{Agent, AgentBuilder, store::MemoryStore, tool};
use safepoint_server::Surface;
use serde_json::{Value, json};

use super::world::{World, says};

#[path = "mcp/access.rs"]
mod access;
#[path = "mcp/calls.rs"]
mod calls;
#[path = "mcp/losses.rs"]
mod losses;
#[path = "mcp/peer.rs"]
mod peer;
#[path = "mcp/questions.rs"]
mod questions;
#[path = "mcp/rpc.rs"]
mod rpc;
#[path = "mcp/tasks.rs"]
mod tasks;
#[path = "mcp/traced.rs"]
mod traced;

/// The last version with an `initialize`.
pub(super) const OLD: &str = "2025-11-25";
/// The one whose requests stand alone.
pub(super) const NEW: &str = "2026-07-28";
/// The capability that a client of tasks declares.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A server that offers the agent over MCP.
pub(super) async fn world(agent: AgentBuilder) -> World {
    over(agent.build()).await
}

pub(super) async fn over(agent: Agent) -> World {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    World::offered(agent, Arc::new(MemoryStore::default()), folder, &[Surface::Mcp]).await
}

/// Pays a supplier.
#[tool(effect = "keyed", approval = "required")]
async fn pay(cents: u64) -> String {
    format!("paid {cents}")
}

/// An agent that pays once it may.
pub(super) fn payer() -> AgentBuilder {
    use safepoint_testkit::script::Reply;
    says([Reply::call("pay", json!({"cents": 12000})), Reply::text("Done.")]).tool(pay)
}

/// The parameters of a call.
pub(super) fn call(text: &str) -> Value {
    json!({"name": "helper", "arguments": {"text": text}})
}

/// What a request of the new version says of its client.
pub(super) fn client(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// What the session's own API has of a result.
pub(super) fn ours(result: &Value) -> &Value {
    &result["structuredContent"]
}

/// The text of a result.
pub(super) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}
