//! The agent that works: its model or backend, its tools and servers, its limits, who is asked about calls.

pub(crate) mod approvals;
pub(crate) mod attached;
pub(crate) mod backend;
pub(crate) mod current;
pub(crate) mod helpers;
pub(crate) mod known;
pub(crate) mod limits;
pub(crate) mod mcp;
pub(crate) mod mode;
pub(crate) mod model;
pub(crate) mod offered;
mod own_turn;
pub(crate) mod planner;
mod repository;
mod status;
pub(crate) mod todo;
pub(crate) mod tools;
