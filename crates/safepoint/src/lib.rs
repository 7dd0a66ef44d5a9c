//! An agent runtime in which everything can be stopped, steered, approved and resumed, and which always tells the
//! truth about what it stopped.
//!
//! Begin with [`Agent`]; stop a run through its [`RunHandle`]; read its [`Outcome`] and its [`receipt`].

mod agent;
mod answer;
pub mod approval;
pub mod backend;
pub mod child;
mod claim;
mod conductor;
mod draft;
pub mod event;
mod executor;
pub mod history;
pub mod hook;
pub mod ids;
pub mod json;
pub mod limits;
pub mod log;
mod machine;
pub mod message;
pub mod model;
pub mod observe;
pub mod outcome;
pub mod receipt;
pub mod remote;
mod run;
pub mod schema;
pub mod secret;
pub mod session;
mod shared;
mod spans;
pub mod spill;
pub mod steer;
pub mod store;
mod sync;
#[cfg(test)]
mod tests;
pub mod tool;
mod toolset;
pub mod typed;
pub mod usage;
pub mod window;

pub use agent::{Agent, AgentBuilder, BuildError, OnRestart};
pub use history::History;
pub use hook::Hooks;
pub use limits::Limits;
pub use model::{Model, OnCut};
pub use outcome::Outcome;
pub use receipt::Receipt;
pub use run::{Run, RunHandle};
pub use safepoint_scope::{
    Actor, Asked, Code, Failure, Grace, Halt, Reach, Reason, SafePoints, Scope, Stop, StopHandle,
    StopRequest, secs,
};
pub use session::{Session, SessionHandle, SessionStop};
pub use shared::DecideError;
pub use steer::{Landed, Steer};
pub use tool::{Cx, Tool, ToolResult};
pub use typed::{Typed, TypedAgent, TypedRun};
pub use usage::{Price, Usage};
pub use window::Window;
