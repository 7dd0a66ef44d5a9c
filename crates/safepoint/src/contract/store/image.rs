//! All of a session at one moment, to be taken from one store to another.

use std::collections::HashMap;

use jiff::Timestamp;

use super::{
    approval::{ApprovalRow, ApprovalState},
    chain::Chain,
    due::Tenure,
    error::Error,
    inbox::{InboxRow, ItemState},
    record::{Damage, DamageKind, Record},
    session::{Changes, SessionRow},
    stop::StopRow,
};

/// All of a session at one moment: what a store gives ([`Store::image`](super::Store::image)), and another one takes
/// ([`Store::restore`](super::Store::restore)). No node holds it.
///
/// ```
/// use safepoint::{ids::SessionId, raw::store::OverImage, store::{Error, Store}};
/// /// Copies a session into a store that has none of its name.
/// async fn copy(from: &dyn Store, to: &dyn Store, session: &SessionId) -> Result<(), Error> {
///     to.restore(from.image(session).await?, OverImage::Nothing).await?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionImage {
    /// Its row, without a holder.
    pub row: SessionRow,
    /// Its pool; empty if any node may take it.
    pub pool: String,
    /// How urgent it is: lower comes first.
    pub priority: i16,
    /// Its counters.
    pub changes: Changes,
    /// Whether its inbox takes nothing.
    pub is_inbox_closed: bool,
    /// Its journal, from the first record on.
    pub records: Vec<Record>,
    /// Every item that was ever accepted, by number; those that are removed have no content.
    pub items: Vec<InboxRow>,
    /// Every stop that was asked, by number.
    pub stops: Vec<StopRow>,
    /// Every approval, oldest first.
    pub approvals: Vec<ApprovalRow>,
    /// Who held it, oldest first.
    pub tenures: Vec<Tenure>,
    /// Since when it wants an owner, if it does.
    pub due: Option<Timestamp>,
    /// How many of its owners died since it was at rest.
    pub tries: u16,
    /// Whether it is at rest.
    pub is_at_rest: bool,
    /// Why no node takes it, if it is parked.
    pub parked: Option<String>,
}

/// What is replaced by an image. Exhaustive: a store must know each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverImage {
    /// Nothing: there is no session of its name.
    Nothing,
    /// The session, if it is still as another image of it was.
    Unchanged(ImageStamp),
}

/// How a session was when its image was taken: whatever changes it changes this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageStamp {
    /// How many records there were.
    pub head: u64,
    /// The checksum of the newest one.
    pub chain: Chain,
    /// When it last changed.
    pub updated: Timestamp,
    /// Its counters.
    pub changes: Changes,
}

impl SessionImage {
    /// How the session was when this image was taken.
    #[must_use]
    pub fn stamp(&self) -> ImageStamp {
        let SessionRow { head, chain, updated, .. } = self.row;
        ImageStamp { head, chain, updated, changes: self.changes }
    }

    /// Checks that the records are those that the row counts, by their checksums (S7.7).
    ///
    /// # Errors
    /// [`Error::Damaged`] if they are not.
    pub fn check(&self) -> Result<(), Error> {
        let id = &self.row.id;
        let damaged = |position, flaw| Err(Error::Damaged(id.clone(), Damage { position, flaw }));
        let records = self.records.len() as u64;
        if records < self.row.head {
            return damaged(records, DamageKind::TailLost { head: self.row.head });
        }
        if records > self.row.head {
            return damaged(self.row.head, DamageKind::Unannounced);
        }
        let newest =
            (0..).zip(&self.records).fold(Chain::of(id), |chain, (at, record)| chain.then(at, record));
        if newest != self.row.chain {
            return damaged(records.saturating_sub(1), DamageKind::OtherHead);
        }
        Ok(())
    }

    /// Whether both say the same. When it wants an owner is not compared: that is its store's to say.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Self { due: None, ..self.clone() } == Self { due: None, ..other.clone() }
    }

    /// Whether `newer` has all that this one has, so that nothing is lost where it takes the place of this one: it has the same records
    /// and owners and more of them, every item, stop and decision of this one, and nothing in it is undone.
    #[must_use]
    pub fn is_part_of(&self, newer: &Self) -> bool {
        let is_same_session = self.row.id == newer.row.id && self.row.created == newer.row.created;
        let are_counted = self.changes.items <= newer.changes.items
            && self.changes.stops <= newer.changes.stops
            && self.changes.decisions <= newer.changes.decisions;
        is_same_session
            && are_counted
            && newer.records.starts_with(&self.records)
            && newer.tenures.starts_with(&self.tenures)
            && self.items_are_in(newer)
            && self.stops_are_in(newer)
            && self.approvals_are_in(newer)
    }

    /// How often an item was withdrawn: a push and a withdrawal are each one change.
    fn withdrawals(&self) -> u64 {
        self.changes.items.saturating_sub(self.items.len() as u64)
    }

    fn items_are_in(&self, newer: &Self) -> bool {
        let of_number: HashMap<u64, &InboxRow> = newer.items.iter().map(|item| (item.number, item)).collect();
        let is_in = |item: &InboxRow| {
            of_number.get(&item.number).is_some_and(|other| {
                let is_it =
                    (&item.client_id, &item.digest, item.at) == (&other.client_id, &other.digest, other.at);
                is_it && (item.state != ItemState::Removed || other.state == ItemState::Removed)
            })
        };
        self.withdrawals() <= newer.withdrawals() && self.items.iter().all(is_in)
    }

    fn stops_are_in(&self, newer: &Self) -> bool {
        self.stops.len() <= newer.stops.len()
            && self.stops.iter().zip(&newer.stops).all(|(stop, other)| {
                let is_it = (stop.number, stop.at, &stop.bytes) == (other.number, other.at, &other.bytes);
                is_it && (!stop.seen || other.seen)
            })
    }

    fn approvals_are_in(&self, newer: &Self) -> bool {
        let of_id: HashMap<_, &ApprovalRow> =
            newer.approvals.iter().map(|row| (&row.asked.id, row)).collect();
        self.approvals.iter().all(|row| {
            of_id.get(&row.asked.id).is_some_and(|other| {
                let is_kept = match (&row.state, &other.state) {
                    (ApprovalState::Open, _) => true,
                    (
                        ApprovalState::Decided { principal, at, bytes, .. },
                        ApprovalState::Decided { principal: by, at: then, bytes: what, .. },
                    ) => (principal, at, bytes) == (by, then, what),
                    (state, other) => state == other,
                };
                row.asked == other.asked && row.at == other.at && is_kept
            })
        })
    }
}
