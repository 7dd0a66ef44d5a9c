//! Tools of MCP servers: started or reached, held like any subprocess, and stopped as their protocol says (S4.10).
//!
//! ```no_run
//! # async fn example(model: impl safepoint::Model) -> Result<(), Box<dyn std::error::Error>> {
//! use safepoint_tools::mcp;
//! let files = mcp::Server::stdio("files", "mcp-server-filesystem").args(["."]).connect().await?;
//! let agent = safepoint::Agent::builder(model).tools(files.tools().await?).build();
//! # Ok(())
//! # }
//! ```
//!
//! What a server says is untrusted: names, schemas, annotations, results and notices are checked, bounded and marked
//! before a model or the engine sees them. `docs/guides/mcp.md` says what a stop does on each transport.
//!
//! **Invariants**
//! - A server process lives under [`Processes`](crate::process::Processes): it dies with its runtime.
//! - A stop of a call waits for nothing: the server gets a notice, and its later messages about that call are thrown away.
//! - A call is sent once. It is tried again only where it certainly was not sent.

mod address;
mod client;
mod content;
mod depth;
mod error;
mod exchange;
mod http;
mod link;
mod listing;
mod message;
mod names;
mod notices;
mod own;
mod server;
mod shown;
mod stdio;
mod tool;
mod watched;

pub use client::{Client, ServerEnd};
pub use content::Called;
pub use error::McpError;
pub use listing::{Offer, Refused};
pub use server::{Annotations, Protocol, Server};
