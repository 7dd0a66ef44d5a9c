//! The sessions of Safepoint over HTTP: named agents, sessions with items, stops, approvals, and events as a stream, for
//! programs, editors and pages.
//!
//! A [`Host`] opens sessions of a store when a request needs them. [`router`] makes routes of it for a program of your own,
//! and [`HostServer`] listens by itself. No work of a run is done in the future of a request: a client that goes away has
//! detached, and nothing stops (S13.2).
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//! use safepoint::{Agent, store::MemoryStore};
//! use safepoint_server::{Access, Host, HostServer};
//! # async fn serve(agent: Agent) -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::builder(Arc::new(MemoryStore::default())).agent("helper", agent).start().await?;
//! let access = Access::tokens("tokens.toml");
//! let server = HostServer::bind("127.0.0.1:7717".parse()?, &host, access).await?;
//! let ending = server.serve_until(std::future::pending()).await; // your signal
//! host.drain(Duration::from_secs(20)).await;
//! ending.finish().await;
//! # Ok(())
//! # }
//! ```

mod problem;

mod a2a;
mod access;
mod acp;
mod answer;
mod ask;
mod audit;
mod board;
mod caller;
mod fan;
mod follow;
mod host;
mod lines;
mod load;
#[cfg(feature = "mcp")]
mod mcp;
mod openapi;
mod reader;
mod responses;
mod routes;
mod serve;
mod sse;
mod surface;
mod webhook;

pub use access::{Access, AccessScope, NewToken, Principal, TokenFile, TokenRow};
#[cfg(feature = "jwks")]
pub use access::{Jwks, KeyFetch};
pub use acp::AcpServer;
pub use audit::AuditLog;
pub use host::{Host, HostBuilder};
#[cfg(feature = "mcp")]
pub use mcp::McpServer;
pub use openapi::document;
pub use routes::router;
pub use serve::{HostServer, LastAnswers, Tls};
pub use surface::Surface;
pub use webhook::{HookAttempt, HookSender, Webhook};
