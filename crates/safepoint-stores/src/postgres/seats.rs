//! What this handle knows of the sessions that its leases are on: where the next append begins.

use std::{collections::HashMap, sync::Mutex};

use safepoint::{
    ids::{NodeId, SessionId},
    raw::store::{Chain, Damage, DamageKind, Lease, NodeState},
    store::Error,
};
use tokio_postgres::Row;

use super::{column::count, lock, nodes::state};

/// Where a session's journal ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JournalEnd {
    pub(super) head: u64,
    pub(super) chain: Chain,
    /// How many appends there were.
    pub(super) serial: i64,
    /// What the last append, taking or giving back made up.
    pub(super) mark: i64,
}

/// The session's row, as far as its holder needs it.
#[derive(Debug)]
pub(super) struct FoundSeat {
    epoch: u64,
    is_held: bool,
    node: NodeState,
    end: Option<JournalEnd>,
    head: u64,
}

pub(super) const SEAT: &str = "SELECT s.epoch, s.holder IS NOT DISTINCT FROM $2, n.state, s.head, s.chain, s.serial, s.mark \
     FROM sessions s LEFT JOIN nodes n ON n.id = $2 WHERE s.id = $1";

impl FoundSeat {
    pub(super) fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (head, chain) = (count(row.try_get(3)?), row.try_get::<_, &[u8]>(4)?);
        let (serial, mark) = (row.try_get(5)?, row.try_get(6)?);
        Ok(Self {
            epoch: count(row.try_get(0)?),
            is_held: row.try_get(1)?,
            // One that is forgotten has ended.
            node: row.try_get::<_, Option<i16>>(2)?.map_or(NodeState::Gone, state),
            end: Chain::from_bytes(chain).map(|chain| JournalEnd { head, chain, serial, mark }),
            head,
        })
    }

    /// Where the journal ends, if the lease is the newest, was not given back, and its node is present.
    pub(super) fn of(self, lease: &Lease) -> Result<JournalEnd, Error> {
        let session = lease.session().clone();
        if self.epoch != lease.epoch() || !self.is_held {
            if self.epoch == lease.epoch() && self.node == NodeState::Buried {
                return Err(Error::Buried(lease.node().id().clone()));
            }
            return Err(Error::Fenced { session, epoch: lease.epoch(), newest: self.epoch });
        }
        let damage = || Damage { position: self.head.saturating_sub(1), flaw: DamageKind::OtherHead };
        self.end.ok_or_else(|| Error::Damaged(session, damage()))
    }

    /// The end, also where another node holds it.
    pub(super) fn end(&self) -> Option<&JournalEnd> {
        self.end.as_ref()
    }
}

/// The ends that are known, by session: of the newest lease alone.
#[derive(Debug, Default)]
pub(super) struct Seats {
    /// Held to look or to change it, never across an await; no other lock is taken under it. A session's lane is the only one that
    /// changes its entry.
    known: Mutex<HashMap<SessionId, Seated>>,
}

#[derive(Debug)]
struct Seated {
    epoch: u64,
    node: NodeId,
    end: JournalEnd,
}

impl Seats {
    pub(super) fn get(&self, lease: &Lease) -> Option<JournalEnd> {
        let known = lock(&self.known);
        let found = known.get(lease.session());
        let found = found.filter(|seat| seat.epoch == lease.epoch() && seat.node == *lease.node().id());
        found.map(|seat| seat.end.clone())
    }

    pub(super) fn put(&self, lease: &Lease, end: JournalEnd) {
        let seat = Seated { epoch: lease.epoch(), node: lease.node().id().clone(), end };
        lock(&self.known).insert(lease.session().clone(), seat);
    }

    /// The lease is over.
    pub(super) fn remove(&self, lease: &Lease) {
        let mut known = lock(&self.known);
        if known.get(lease.session()).is_some_and(|seat| seat.epoch == lease.epoch()) {
            known.remove(lease.session());
        }
    }

    /// The node has ended, and every lease by it.
    pub(super) fn remove_of(&self, node: &NodeId) {
        lock(&self.known).retain(|_, seat| seat.node != *node);
    }
}
