//! The chat screen's model: keys and events in, acts and lines out.

pub(crate) mod attention;
pub(crate) mod calls;
pub(crate) mod choosing;
pub(crate) mod commands;
pub(crate) mod compact;
pub(crate) mod completion;
pub(crate) mod copying;
pub(crate) mod custom;
pub(crate) mod edits;
pub(crate) mod events;
pub(crate) mod fact;
pub(crate) mod input;
pub(crate) mod kept;
pub(crate) mod keys;
pub(crate) mod live;
pub(crate) mod markdown;
pub(crate) mod mention;
pub(crate) mod meter;
pub(crate) mod modes;
pub(crate) mod own;
pub(crate) mod pane;
pub(crate) mod picker;
pub(crate) mod queue;
pub(crate) mod returned;
pub(crate) mod rewind;
pub(crate) mod search;
pub(crate) mod sessions;
pub(crate) mod short;
pub(crate) mod state;
pub(crate) mod surface;
pub(crate) mod terminal;
#[cfg(test)]
mod tests;
pub(crate) mod thoughts;
pub(crate) mod todo;
pub(crate) mod typing;
