//! Sessions over HTTP, on real sockets: what a client may rely on (S13).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "server/basics.rs"]
mod basics;
#[path = "server/client.rs"]
mod client;
#[path = "server/world.rs"]
mod world;
