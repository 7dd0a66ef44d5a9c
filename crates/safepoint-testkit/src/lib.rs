//! For testing agents: a scripted model server on a real socket, history oracles, and (feature `suites`) gate tools
//! and the invariants that close every test.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use safepoint::{Agent, Outcome};
//! use safepoint_testkit::{script::{Reply, Script}, server::ModelServer};
//!
//! let server = ModelServer::start(Script::of([Reply::text("hello")])).await.unwrap();
//! let model = safepoint_models::openai::model("any").base_url(server.url());
//! let outcome = Agent::builder(model).build().run("hi").await;
//! assert_eq!(outcome.answer(), Some("hello"));
//! # });
//! ```

#[cfg(feature = "server")]
mod asked;
#[cfg(feature = "suites")]
pub mod closing;
#[cfg(feature = "suites")]
pub mod ledger;
pub mod oracle;
#[cfg(feature = "suites")]
pub mod recorder;
#[cfg(feature = "server")]
pub mod script;
#[cfg(feature = "suites")]
pub mod scripted;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "suites")]
pub mod store_suite;
#[cfg(feature = "suites")]
pub mod tools;
#[cfg(feature = "suites")]
pub mod valve;
