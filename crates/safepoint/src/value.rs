//! What is said, measured and recorded: data, with no task, no lock and no clock.

pub(crate) mod approval;
pub(crate) mod effect;
pub(crate) mod event;
pub(crate) mod limits;
pub(crate) mod partial_json;
pub(crate) mod receipt;
#[cfg(feature = "schema")]
pub(crate) mod schema;
pub(crate) mod spill;

pub(crate) use safepoint_model::{
    ids, message,
    raw::{is_default, json, text},
};

/// Conversations, and the parts of them that are the engine's own business.
pub(crate) mod history {
    pub(crate) use safepoint_model::history::*;
    pub(crate) use safepoint_model::raw::history::*;
}

/// What calls used, and the sums of it.
pub(crate) mod usage {
    pub(crate) use safepoint_model::raw::usage::*;
    pub(crate) use safepoint_model::usage::*;
}
