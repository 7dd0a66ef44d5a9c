//! A session's row, and the counters that show its owner that another process wrote.

use jiff::Timestamp;

use crate::value::ids::SessionId;

use super::{chain::Chain, inbox::NewItem, lease::LeaseHolder, record::Record};

/// What a session begins with.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its name.
    pub id: SessionId,
    /// A few words for people; may be empty.
    pub title: String,
    /// Its state, as its writer names it.
    pub label: String,
    /// What the session's program stores for itself; may be empty.
    pub setup: String,
    /// The pool of nodes that may take it; empty: any node.
    pub pool: String,
    /// How urgent it is where many wait for an owner: lower comes first. 0 for people, 10 for what runs in the background.
    pub priority: i16,
    /// The items that wait in its inbox from the beginning, numbered from 1 in this order.
    pub items: Vec<NewItem>,
    /// The first records of its journal, in order.
    pub records: Vec<Record>,
}

impl NewSession {
    /// A session of this name, and nothing else.
    pub fn of(id: impl Into<SessionId>) -> Self {
        Self {
            id: id.into(),
            title: String::new(),
            label: String::new(),
            setup: String::new(),
            pool: String::new(),
            priority: 0,
            items: Vec::new(),
            records: Vec::new(),
        }
    }
}

/// What a list of sessions shows of each.
///
/// ```
/// use safepoint::store::{Error, Store};
/// async fn newest(store: &dyn Store) -> Result<(), Error> {
///     for session in store.list(20, None).await? {
///         println!("{} {} {} ({} records)", session.id, session.updated, session.title, session.head);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionRow {
    /// Its name.
    pub id: SessionId,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed. What says nothing new does not count: see [`Write::is_news`](super::Write::is_news).
    pub updated: Timestamp,
    /// Its state, as its writer names it.
    pub label: String,
    /// A few words for people.
    pub title: String,
    /// What the session's program has stored for itself; empty if nothing.
    pub setup: String,
    /// How many records its journal has: the position of the next one.
    pub head: u64,
    /// The checksum of the newest record.
    pub chain: Chain,
    /// The epoch of the newest lease; 0 before the first.
    pub epoch: u64,
    /// Who holds it.
    pub holder: Option<LeaseHolder>,
}

impl SessionRow {
    /// The row of a session that is created at this time, with the records that it begins with. It has no holder.
    #[must_use]
    pub fn new(session: &NewSession, at: Timestamp) -> Self {
        let records = (0..).zip(&session.records);
        Self {
            id: session.id.clone(),
            created: at,
            updated: at,
            label: session.label.clone(),
            title: session.title.clone(),
            setup: session.setup.clone(),
            head: session.records.len() as u64,
            chain: records.fold(Chain::of(&session.id), |chain, (at, record)| chain.then(at, record)),
            epoch: 0,
            holder: None,
        }
    }

    /// The cursor for a list that continues after this one.
    #[must_use]
    pub fn older(&self) -> PageCursor {
        PageCursor { updated: self.updated, id: self.id.clone() }
    }
}

/// Where the next page of a list begins: after this session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCursor {
    /// When it last changed.
    pub updated: Timestamp,
    /// Its name.
    pub id: SessionId,
}

/// The newest number of each kind that other processes may write. A greater number than before means that
/// there is something new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Changes of the inbox by others: items pushed or withdrawn.
    pub items: u64,
    /// Stop intents asked.
    pub stops: u64,
    /// Approvals that were decided, or withdrawn by an asker of a stop.
    pub decisions: u64,
    /// The epoch of the newest lease: if it differs from the caller's, the caller is fenced.
    pub epoch: u64,
}

impl Changes {
    /// Whether others did something beyond what was seen.
    #[must_use]
    pub fn is_beyond(&self, seen: Self) -> bool {
        self.items > seen.items || self.stops > seen.stops || self.decisions > seen.decisions
    }
}
