//! What a program or an adapter implements: one trait a file, its types beside it.

pub(crate) mod approver;
pub(crate) mod extensions;
pub(crate) mod guard;
pub(crate) mod hook;
pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod remote;
pub(crate) mod setup;
pub(crate) mod store;
pub(crate) mod tool;
pub(crate) mod trace;
