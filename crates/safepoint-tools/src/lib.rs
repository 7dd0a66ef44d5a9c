//! Tools for Safepoint agents: commands under a guard that leaves nothing behind, files, search, http.

pub mod limits;
pub mod process;
