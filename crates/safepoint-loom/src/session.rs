//! The inbox of a session, between an item and a message that are no more than it needs.

#[cfg(test)]
mod explored;
#[path = "../../safepoint/src/session/inbox.rs"]
mod inbox;
mod item;
mod message;
mod ticket;
