//! Model wires for Safepoint: [OpenAI chat completions](openai), which most servers speak, [OpenAI
//! Responses](responses), [Anthropic messages](anthropic) and [Gemini](gemini).
//!
//! All stream. A stop drops the response: the connection closes, or the HTTP/2 stream is reset, and no wait inside
//! (connecting, headers, silence, back-off) outlives the drop. Another try is made only before the first byte.
//!
//! A model that is chosen while the program runs is named with its provider: [`parse`](parse())`("groq:llama-3.3-70b-versatile")`.
//! The providers that are known are in [`PROVIDERS`]. Each wire is a Cargo feature of its name; all are on by default.
#![cfg_attr(
    not(all(feature = "openai", feature = "responses", feature = "anthropic", feature = "gemini")),
    expect(dead_code, reason = "what is only for a wire that this build leaves out")
)]

mod address;
#[cfg(feature = "anthropic")]
pub mod anthropic;
mod body;
mod config;
mod conversation;
#[cfg(any(feature = "openai", feature = "gemini"))]
pub mod embed;
#[cfg(any(feature = "openai", feature = "gemini"))]
mod embedding;
mod encoded_history;
mod error;
mod failover;
mod few;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(feature = "gemini")]
pub mod gemini;
mod http;
mod kept;
mod made;
#[cfg(feature = "openai")]
pub mod openai;
#[cfg(any(feature = "openai", feature = "responses"))]
mod openai_schema;
mod parse;
mod parts;
mod provider_blocks;
mod providers;
mod rate_limit;
mod reply;
#[cfg(feature = "responses")]
pub mod responses;
mod retry;
pub mod sse;
mod strict_schema;
mod transport;
mod wired;

pub use config::{ConfigError, ToolChoice};
pub use failover::Failover;
pub use http::Patience;
pub use parse::{ModelBuilder, parse};
pub use providers::{ModelProvider, PROVIDERS};
pub use rate_limit::RateLimit;
pub use retry::Retry;
pub use transport::Transport;
pub use wired::{HttpModel, Wire, answers::TypedAnswers};
