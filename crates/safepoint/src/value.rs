//! What is said, measured and recorded: data, with no task, no lock and no clock.

pub(crate) mod approval;
pub(crate) mod effect;
pub(crate) mod event;
pub(crate) mod history;
pub(crate) mod ids;
pub(crate) mod json;
pub(crate) mod limits;
pub(crate) mod message;
pub(crate) mod partial_json;
pub(crate) mod receipt;
#[cfg(feature = "schema")]
pub(crate) mod schema;
pub(crate) mod spill;
pub(crate) mod tagged;
pub(crate) mod text;
pub(crate) mod usage;

/// Whether a stored field has its default value, and is left out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
