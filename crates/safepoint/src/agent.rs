//! The definition of an agent, and how its runs begin.

pub(crate) mod builder;
pub(crate) mod runs;
mod states;
#[cfg(feature = "schema")]
mod typed;

pub use crate::contract::setup::RunSetup;
pub(crate) use builder::AgentBuilder;
pub use builder::BuildError;
pub(crate) use runs::Agent;
#[cfg(feature = "schema")]
pub use typed::{REPAIRS, TypedAgent};
