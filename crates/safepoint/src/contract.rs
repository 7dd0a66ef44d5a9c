//! What a program or an adapter implements: one trait a file, its types beside it.

pub(crate) mod approver;
pub mod hook;
pub mod log;
pub mod model;
pub(crate) mod remote;
pub mod store;
pub mod tool;
