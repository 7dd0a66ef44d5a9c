//! Model wires for Safepoint: [OpenAI chat completions](openai), which most servers speak, [OpenAI
//! Responses](responses), [Anthropic messages](anthropic) and [Gemini](gemini).
//!
//! All stream. A stop drops the response: the connection closes, or the HTTP/2 stream is reset, and no wait inside
//! (connecting, headers, silence, back-off) outlives the drop. Another try is made only before the first byte.

mod address;
pub mod anthropic;
mod body;
mod config;
mod conversation;
mod encoded_history;
mod error;
mod failover;
mod few;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
pub mod gemini;
mod http;
mod kept;
mod made;
pub mod openai;
mod parts;
mod provider_blocks;
mod reply;
pub mod responses;
mod retry;
pub mod sse;
mod strict_schema;
mod wired;

pub use config::{ConfigError, ToolChoice};
pub use failover::Failover;
pub use http::Patience;
pub use retry::Retry;
pub use wired::{HttpModel, Wire, answers::TypedAnswers};
