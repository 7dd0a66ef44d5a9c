//! Events as lines of JSON: one object an event, in the form that `--json` prints and that `docs/schema/event.json`
//! describes.
//!
//! **Invariants**: a line is made in one place; a large text in it is shared with its event and never copied.

pub(crate) mod body;
pub(crate) mod encoder;
mod facts;
pub(crate) mod journal;
pub(crate) mod line;
pub(crate) mod outcome;
#[cfg(feature = "schema")]
pub(crate) mod schema;
pub(crate) mod session;
mod words;
