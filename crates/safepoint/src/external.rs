//! Runs that the engine does not execute itself.

pub(crate) mod backend;
pub(crate) mod remote;
