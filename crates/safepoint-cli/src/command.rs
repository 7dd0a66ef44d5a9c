//! The commands: each wires the layers before it. Only `main` uses them.

pub(crate) mod acp;
pub(crate) mod approvals;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod leaving;
pub(crate) mod mcp;
pub(crate) mod nodes;
pub(crate) mod practice;
pub(crate) mod principal;
pub(crate) mod push;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod steer;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod trace;
mod unless;
pub(crate) mod withdraw;
