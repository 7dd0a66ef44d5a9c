//! For testing agents: a scripted model server on a real socket, history oracles, and (feature `suites`) gate
//! tools and the invariants that close every test.
//!
//! A whole test of an agent of your own: its model is asked for a payment, the run is stopped while the tool
//! runs, and what must hold does hold: one outcome, nothing after it, a receipt that agrees with what the
//! tool wrote down itself, and a conversation that a strict server accepts.
//!
//! ```
//! use safepoint::{Agent, AgentBuilder, Model, StopRequest, approval::ApprovalMode, receipt::{CallStatus, SideEffect}};
//! use safepoint_testkit::{
//!     invariants::Invariants, ledger::Mark, script::{Reply, Script}, server::ModelServer, tools::GateTools,
//! };
//! use serde_json::json;
//!
//! // The agent under test, as the product builds it; only its tool that pays is another one.
//! fn clerk(model: impl Model) -> AgentBuilder {
//!     Agent::builder(model).system("You pay the rent.").approvals(ApprovalMode::Auto)
//! }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let server = ModelServer::start(Script::of([Reply::call("pay", json!({})), Reply::text("I will ask.")])).await.unwrap();
//! let tools = GateTools::new();
//! let model = safepoint_models::openai::model("any").base_url(server.url());
//! let agent = clerk(model).tool(tools.gated("pay")).build();
//!
//! let handle = agent.run("pay the rent").detach();
//! tools.gate().came(1).await; // the tool has begun, and waits at its gate: no sleep, no luck
//! handle.stop(StopRequest::now());
//!
//! let closed = Invariants::of(&handle).server(&server).ledger(tools.ledger()).check().await.unwrap(); // I1 to I6
//! let call = &closed.receipt.calls[0];
//! assert_eq!((call.status, call.effect), (CallStatus::Stopped, SideEffect::Unknown));
//! assert_eq!(tools.ledger().count(Mark::Commit), 0);
//!
//! let next = agent.run_on(closed.outcome.history().clone(), "was it paid?").await;
//! assert_eq!(next.answer(), Some("I will ask."));
//! let body = server.requests()[1].body.to_string();
//! assert!(body.contains("effects are unknown"), "the model knows that it may have been");
//! # });
//! ```
//!
//! # Time
//!
//! Every limit, grace and deadline of the engine is on tokio's clock, so a test controls it: with
//! `#[tokio::test(start_paused = true)]` it stands still while anything has work to do, and jumps to the next
//! deadline when nothing has. A model in process ([`scripted`], feature `suites`) keeps it exact, because no
//! socket is waited for: five seconds of a test take no time, and it measures them to the nanosecond. A
//! [`server`] works on that clock too, but while bytes are on their way nothing seems to have work to do, and
//! a deadline may come first: there keep the clock running, and drive the exchange by a gate. Deadlines in
//! records, such as that of an approval, and processes are on the clock of the world.
//!
//! ```
//! use std::time::Duration;
//! use safepoint::{Agent, StopRequest, approval::ApprovalMode, receipt::CallStatus};
//! use safepoint_testkit::{script::{Reply, Script}, scripted::ScriptedModel, tools::GateTools};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
//! let tools = GateTools::new();
//! let model = ScriptedModel::new(Script::of([Reply::call("pay", json!({}))]));
//! let agent = Agent::builder(model).approvals(ApprovalMode::Auto).tool(tools.deaf("pay")).build();
//! let handle = agent.run("pay").detach();
//! tools.gate().came(1).await;
//!
//! let asked = tokio::time::Instant::now();
//! handle.stop(StopRequest::now());
//! let outcome = handle.done().await;
//! assert_eq!(asked.elapsed(), Duration::from_secs(5), "its clean-up time, and not one tick more");
//! assert_eq!(outcome.receipt().calls[0].status, CallStatus::Stopped);
//! # });
//! ```
//!
//! # What there is
//!
//! [`server`] and [`script`]: every wire on a real socket, by a script or step by step, with the moment in
//! which the peer closed; [`flood`]: a model that never ends what it says. [`oracle`]: which histories a
//! provider accepts. [`scripted`]: the same scripts without a socket. [`tools`], [`tool_gate`] and
//! [`ledger`]: tools that behave and tools that do not. [`mcp`]: servers of tools that do not, and [`a2a`]
//! and [`acp`] agents. [`peer`]: remote agents that are honest about a stop, and that are not.
//! [`process_suite`]: is the tree of a command gone? [`wait`]: waits with a name and an end, and
//! [`skipped()`] for what this machine cannot test. [`recorder`] and [`invariants`]: what a run showed, and
//! what must hold of it.

#[cfg(feature = "server")]
pub mod a2a;
#[cfg(feature = "server")]
pub mod acp;
#[cfg(feature = "suites")]
pub mod backend_suite;
#[cfg(feature = "suites")]
pub mod background;
#[cfg(feature = "suites")]
pub mod fault_store;
#[cfg(feature = "server")]
pub mod flood;
#[cfg(feature = "server")]
mod http;
#[cfg(feature = "suites")]
pub mod invariants;
#[cfg(feature = "suites")]
pub mod ledger;
#[cfg(feature = "server")]
pub mod mcp;
#[cfg(feature = "server")]
mod notes;
pub mod oracle;
#[cfg(feature = "suites")]
pub mod peer;
#[cfg(feature = "suites")]
pub mod process_suite;
#[cfg(feature = "suites")]
pub mod recorder;
#[cfg(feature = "suites")]
pub mod replay;
#[cfg(feature = "server")]
pub mod script;
#[cfg(feature = "suites")]
pub mod scripted;
#[cfg(feature = "server")]
pub mod server;
mod skipped;
#[cfg(feature = "server")]
mod stdio;
#[cfg(feature = "suites")]
pub mod store_suite;
mod sync;
#[cfg(feature = "suites")]
pub mod tool_gate;
#[cfg(feature = "server")]
pub mod tool_server;
#[cfg(feature = "suites")]
pub mod tools;
pub mod wait;

pub use skipped::skipped;

/// What the project's README shows is compiled here, where all that it uses is at hand.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// And what the guides to models and to tools of others show.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/failover.md")]
#[doc = include_str!("../../../docs/guides/mcp.md")]
#[doc = include_str!("../../../docs/guides/models.md")]
#[doc = include_str!("../../../docs/guides/practice.md")]
#[doc = include_str!("../../../docs/guides/retrieval.md")]
#[doc = include_str!("../../../docs/guides/state.md")]
#[doc = include_str!("../../../docs/guides/tools.md")]
struct Guides;
