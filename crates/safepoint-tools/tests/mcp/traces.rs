//! What a server is told of the trace that it works in.

use safepoint::raw::trace::{self, Propagator, TraceContext};
use safepoint_testkit::mcp::{HttpServer, McpManners, McpSeen};
use safepoint_tools::mcp::Server;
use serde_json::{Value, json};
use tracing::{Span, subscriber::NoSubscriber};

use crate::mcp::support::start;

/// Names the spans of calls by their numbers.
struct Numbers;

impl Propagator for Numbers {
    fn set_parent(&self, _span: &Span, _parent: &TraceContext) {}
    fn link(&self, _span: &Span, _to: &TraceContext) {}
    fn context(&self, span: &Span) -> Option<TraceContext> {
        span.metadata().filter(|span| span.name() == "execute_tool")?;
        let text = format!("00-0af7651916cd43dd8448eb211c80319c-{:016x}-01", span.id()?.into_u64());
        TraceContext::parse(&text).map(|context| context.with_state("ours=1"))
    }
}

/// S11.14: a call of a server's tool names the span of the call in its `_meta`, and none where nothing is traced.
#[tokio::test]
async fn a_server_is_asked_in_the_span_of_the_call() {
    assert!(trace::install(Numbers));
    // For all threads: a place that another test's thread meets first is enabled as that thread has it. The second
    // subscriber, which comes first here, makes `tracing` ask again about places that were met before the first.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
    for is_traced in [false, true] {
        let guard = (!is_traced).then(|| tracing::subscriber::set_default(NoSubscriber::new()));
        let http = HttpServer::start(McpManners::default()).await.unwrap();
        let client = Server::http("test", http.url()).connect().await.unwrap();
        let running = start(&client, "echo", json!({"text": "x"})).await;
        assert!(running.handle.done().await.answer().is_some());
        let seen = http.seen();
        let mut calls = seen.iter().filter_map(|(_, seen)| match seen {
            McpSeen::Got(message) if message["method"] == "tools/call" => Some(&message["params"]["_meta"]),
            McpSeen::Got(_) | McpSeen::GaveUp(_) => None,
        });
        let meta = calls.next().unwrap();
        let named = meta["traceparent"].as_str().and_then(TraceContext::parse);
        assert_eq!(named.is_some(), is_traced, "{meta}");
        let state = if is_traced { json!("ours=1") } else { Value::Null };
        assert_eq!(meta["tracestate"], state, "{meta}");
        assert!(!meta["progressToken"].is_null(), "what was there stays: {meta}");
        drop(guard);
    }
}
