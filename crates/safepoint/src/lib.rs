//! An agent runtime in which everything can be stopped, steered, approved and resumed, and which always tells the
//! truth about what it stopped.
//!
//! Begin with [`Agent`]; stop a run through its [`RunHandle`]; read its [`Outcome`] and its [`receipt`].

mod agent;
pub mod approval;
mod contract;
mod definition;
mod external;
pub mod remote;
mod run;
pub mod session;
mod sync;
#[cfg(test)]
mod tests;
mod value;

pub use agent::typed;
pub use agent::typed::{Typed, TypedAgent, TypedRun};
pub use agent::{Agent, AgentBuilder, BuildError};
pub use contract::hook::Hooks;
pub use contract::model::{Model, OnModelStop};
pub use contract::tool::{Tool, ToolContext, ToolResult};
pub use contract::{hook, log, model, store, tool};
pub use definition::OnRestart;
pub use definition::window::Window;
pub use definition::{child, observe, secret, window};
pub use external::backend;
pub use run::outcome::Outcome;
pub use run::shared::DecideError;
pub use run::steer::{Steer, SteerOutcome};
pub use run::{Run, RunHandle};
pub use run::{outcome, steer};
pub use safepoint_scope::{
    Actor, Code, Failure, Grace, Halt, Reach, Reason, SafePoints, Scope, Stop, StopAck, StopHandle,
    StopRequest, secs,
};
pub use session::{Session, SessionHandle, SessionStop};
pub use value::history::History;
pub use value::limits::Limits;
pub use value::receipt::Receipt;
pub use value::usage::{Price, Usage};
pub use value::{event, history, ids, json, limits, message, receipt, schema, spill, usage};
