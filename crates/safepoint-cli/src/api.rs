//! The API of a server (`safepoint serve`): what the commands do that are given one with `--server`.
//!
//! **Invariants**: the token goes in a header to the server that it is for, and nowhere else; what a server did not answer is
//! not said.

pub(crate) mod address;
pub(crate) mod approvals;
mod client;
mod failure;
mod items;
pub(crate) mod sessions;
mod stops;
mod talk;
mod token;
pub(crate) mod trace;

pub(crate) use client::ServerApi;
pub(crate) use talk::talk;
