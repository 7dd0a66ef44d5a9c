//! The door of a session, between an item and a letter that are no more than it needs.

#[path = "../../safepoint/src/session/door.rs"]
mod door;
#[cfg(test)]
mod explored;
mod item;
mod mail;
