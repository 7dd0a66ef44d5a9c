//! The inbox: items that wait for a turn, pushed by any process, taken by the holder (S6.2).

use jiff::Timestamp;

/// An item to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// The sender's id for it, unique for the session's life: the same again is the same item.
    pub client_id: Option<String>,
    /// Shows whether the content is the same.
    pub digest: String,
    /// The content.
    pub bytes: Vec<u8>,
    /// How many items may wait at once, this one included.
    pub capacity: usize,
}

/// What came of a push. Exhaustive: the sender must know where the item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is stored, under this number.
    Accepted(u64),
    /// It was stored before, under this number; nothing changed.
    Same(u64),
    /// Another item has this client id: the one with this number.
    Conflict(u64),
    /// The capacity is reached.
    Full,
    /// The inbox is closed.
    Closed,
}

/// Where an item is. Exhaustive: in exactly one place (S6.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemState {
    /// The item waits.
    Waiting,
    /// A turn has it.
    Taken,
    /// It is done.
    Removed,
}

/// An item of the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Its number within the session, counted from 1.
    pub number: u64,
    /// The sender's id for it.
    pub client_id: Option<String>,
    /// Shows whether the content is the same.
    pub digest: String,
    /// Where it is.
    pub state: ItemState,
    /// When it arrived.
    pub at: Timestamp,
    /// The content.
    pub bytes: Vec<u8>,
}

/// What came of withdrawing an item. Exhaustive: it was withdrawn, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// It was withdrawn, and is here.
    Item(InboxRow),
    /// A turn has it, or had it.
    Taken,
    /// There is no such item.
    Unknown,
}
