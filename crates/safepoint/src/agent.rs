//! The definition of an agent, and how its runs begin.

pub(crate) mod builder;
pub(crate) mod runs;
mod typed;

pub use crate::contract::setup::RunSetup;
pub(crate) use builder::AgentBuilder;
pub use builder::BuildError;
pub(crate) use runs::Agent;
pub use typed::{REPAIRS, TypedAgent};
