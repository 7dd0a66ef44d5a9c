//! A conversation in memory or in a store, and what a killed owner of it left behind.

pub(crate) mod attachments;
pub(crate) mod conversation;
pub(crate) mod files;
pub(crate) mod host;
pub(crate) mod processes;
pub(crate) mod prompts;
pub(crate) mod receipts;
pub(crate) mod rewind;
pub(crate) mod snapshots;
pub(crate) mod stored;
pub(crate) mod survivors;
