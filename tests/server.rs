//! Sessions over HTTP, on real sockets: what a client may rely on (S13).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "server/a2a.rs"]
mod a2a;
#[path = "server/access.rs"]
mod access;
#[path = "server/acp.rs"]
mod acp;
#[path = "server/basics.rs"]
mod basics;
#[path = "server/client.rs"]
mod client;
#[path = "server/crashed.rs"]
mod crashed;
#[path = "server/decisions.rs"]
mod decisions;
#[path = "server/direct.rs"]
mod direct;
#[path = "server/editor.rs"]
mod editor;
#[path = "server/elsewhere.rs"]
mod elsewhere;
#[path = "server/items.rs"]
mod items;
#[path = "server/limits.rs"]
mod limits;
#[path = "server/mcp.rs"]
mod mcp;
#[path = "server/nodes.rs"]
mod nodes;
#[path = "server/operators.rs"]
mod operators;
#[path = "server/responses.rs"]
mod responses;
#[path = "server/resumed.rs"]
mod resumed;
#[path = "server/signature.rs"]
mod signature;
#[path = "server/streams.rs"]
mod streams;
#[path = "server/traces.rs"]
mod traces;
#[path = "server/world.rs"]
mod world;
