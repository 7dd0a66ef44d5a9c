//! Model wires for Safepoint: [OpenAI chat completions](openai), which most servers speak, [OpenAI
//! Responses](responses), [Anthropic messages](anthropic) and [Gemini](gemini).
//!
//! All stream. A stop drops the response: the connection closes, or the HTTP/2 stream is reset, and no wait inside
//! (connecting, headers, silence, back-off) outlives the drop. Another try is made only before the first byte.
//!
//! # A model
//!
//! ```no_run
//! use safepoint::Agent;
//! use safepoint_models::openai;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The key is in `OPENAI_API_KEY`. `OPENAI_BASE_URL` names another server that speaks the same wire.
//! let agent = Agent::builder(openai::from_env("gpt-5.2")?.temperature(0.2)).build();
//! println!("{}", agent.run("What is a safe point?").await.into_result()?);
//! # Ok(())
//! # }
//! ```
//!
//! A server on this machine, such as Ollama or vLLM, needs no key. Here it is the scripted server of `safepoint-testkit`:
//!
//! ```
//! use safepoint::Agent;
//! use safepoint_models::openai;
//! use safepoint_testkit::{script::{Reply, Script}, server::ModelServer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ModelServer::start(Script::of([Reply::text("A place where a run may stop.")])).await?;
//! let model = openai::model("any").base_url(server.url());
//! let outcome = Agent::builder(model).build().run("What is a safe point?").await;
//! assert_eq!(outcome.answer(), Some("A place where a run may stop."));
//! # Ok(())
//! # }
//! ```
//!
//! # Chosen while the program runs
//!
//! A model is named with its provider; the providers that are known are in [`PROVIDERS`]. An `Arc<dyn Model>` is a model.
//!
//! ```no_run
//! # fn agent() -> Result<safepoint::Agent, safepoint_models::ConfigError> {
//! let model = safepoint_models::parse("groq:llama-3.3-70b-versatile")?; // its key is in `GROQ_API_KEY`
//! # Ok(safepoint::Agent::builder(model).build())
//! # }
//! ```
//!
//! # What a call may do
//!
//! Parameters that two wires share are typed, and one that a wire has no form for is an error when the agent is built. What only
//! one provider has is an extra field.
//!
//! ```
//! use safepoint::model::{Parameters, ReasoningEffort};
//! use safepoint_models::responses;
//!
//! let careful = Parameters::new().reasoning_effort(ReasoningEffort::High).max_tokens(4_000);
//! let model = responses::model("gpt-5.2").parameters(careful).extra("user", "ann");
//! ```
//!
//! # Several models, one limit
//!
//! ```
//! use safepoint_models::{Failover, RateLimit, anthropic, gemini};
//!
//! let limit = RateLimit::new("anthropic").requests_per_minute(50).tokens_per_minute(40_000);
//! let model = Failover::new(limit.limit(anthropic::model("claude-sonnet-4-5"))).or(gemini::model("gemini-3-pro-preview"));
//! ```
//!
//! # How requests travel
//!
//! [`Transport`] has the proxy, the trust and the headers; [`Patience`] and [`Retry`] have the times. [`embed`] makes vectors of texts.
//! Each wire is a Cargo feature of its name; all are on by default.
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
