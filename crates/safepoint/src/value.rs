//! What is said, measured and recorded: data, with no task, no lock and no clock.

pub(crate) mod approval;
pub(crate) mod effect;
pub mod event;
pub mod history;
pub mod ids;
pub mod json;
pub mod limits;
pub mod message;
pub mod receipt;
pub mod schema;
pub mod spill;
pub mod usage;
