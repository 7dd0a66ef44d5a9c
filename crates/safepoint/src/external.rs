//! Runs that the engine does not execute itself.

pub mod backend;
pub(crate) mod remote;
