//! Sessions that want an owner and have none, and who had them before.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::value::ids::{NodeId, SessionId};

use super::{chain::Chain, session::Changes};

/// What another process did to a session of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The session.
    pub session: SessionId,
    /// The newest number of each kind.
    pub changes: Changes,
}

/// A session that wants an owner and has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The session.
    pub session: SessionId,
    /// Its pool; empty if any node may take it.
    pub pool: String,
    /// How urgent it is: lower comes first.
    pub priority: i16,
    /// How many of its owners died since it last was at rest.
    pub tries: u16,
}

/// One time that a session was held: the records from `head` to the next tenure's are its holder's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// The lease's epoch.
    pub epoch: u64,
    /// The holder.
    pub node: NodeId,
    /// The position of the first record that it could write.
    pub head: u64,
    /// When it took the session.
    pub at: Timestamp,
}

/// How many owners may die before a session is parked (S7.46).
pub const MOST_TRIES: u16 = 5;

/// Why a session is parked, as it is stored.
pub const PARKED: &str = "its owners died five times before it was at rest";

/// How long `due` does not name a session again that it has named.
pub const NAMED_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// How long a session waits for its next owner after this many have died. A part of it depends on the session alone, so that
/// sessions that were held together are taken apart, and the one that kills its owners is distinguished from the others.
#[must_use]
pub fn retry_after(session: &SessionId, tries: u16) -> Duration {
    const BACKOFF: [u64; 5] = [0, 0, 2, 8, 30];
    const PARTS: u32 = 64;
    let longest = BACKOFF[BACKOFF.len() - 1];
    let base = Duration::from_secs(BACKOFF.get(usize::from(tries)).copied().unwrap_or(longest));
    // Up to a half more, by a byte that any program derives alike.
    let part = u32::from(Chain::of(session).as_bytes()[0]) % PARTS;
    base + base / (2 * PARTS) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7.46: neighbours of the session that kills its owners come apart from it, and each at the same time everywhere.
    #[test]
    fn sessions_that_died_together_are_taken_up_apart() {
        let after = |id: &str, tries| retry_after(&id.into(), tries);
        for tries in [0, 1] {
            assert_eq!(after("a", tries), Duration::ZERO);
        }
        for (tries, base) in [(2, 2), (3, 8), (4, 30), (9, 30)] {
            let waits: Vec<Duration> = ["a", "b", "c", "d"].map(|id| after(id, tries)).into();
            let base = Duration::from_secs(base);
            assert!(waits.iter().all(|wait| (base..=base * 3 / 2).contains(wait)), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
        }
        assert_eq!(after("a", 3), after("a", 3));
    }
}
