//! The inbox: items that wait for a turn, pushed by whoever, taken by the holder (S6.2).

use jiff::Timestamp;

/// An item on its way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// The pusher's name for it, unique for the session's life: the same again is the same item.
    pub client_id: Option<String>,
    /// Tells whether it is the same content.
    pub digest: String,
    /// The content.
    pub bytes: Vec<u8>,
    /// How many items may wait at once, this one included.
    pub capacity: usize,
}

/// What came of a push. Exhaustive: whoever pushed must know where the item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is in, under this number.
    Accepted(u64),
    /// It was in before, under this number; nothing changed.
    Same(u64),
    /// Another item has this client id: the one of this number.
    Conflict(u64),
    /// As many items wait as may.
    Full,
    /// The inbox takes nothing.
    Closed,
}

/// Where an item is. Exhaustive: in exactly one place (S6.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemState {
    /// It waits.
    Waiting,
    /// A turn has it.
    Taken,
    /// It is done with.
    Removed,
}

/// An item of the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Its number within the session, counted from 1.
    pub number: u64,
    /// The pusher's name for it.
    pub client_id: Option<String>,
    /// Tells whether it is the same content.
    pub digest: String,
    /// Where it is.
    pub state: ItemState,
    /// When it came.
    pub at: Timestamp,
    /// The content.
    pub bytes: Vec<u8>,
}

/// What came of taking an item back. Exhaustive: it is out, or this is why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// It is out, and here.
    Item(InboxRow),
    /// A turn has it, or had it.
    Taken,
    /// There is no such item.
    Unknown,
}
