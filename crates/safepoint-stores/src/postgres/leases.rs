//! Who may write which session.

use std::time::Duration;

use jiff::Timestamp;
use safepoint::{
    ids::SessionId,
    raw::store::{Chain, Changes, Lease, NodeLease, Rest},
    store::Error,
};
use tokio_postgres::Row;

use super::{
    burial::{JudgedNode, judged_values},
    column::{count, in_micros, int, stored, text},
    core::{Core, no_row},
    limits::made_up,
    nodes::unreadable,
    plan::names,
    seats::{FoundSeat, JournalEnd, SEAT},
    tries::{Again, Tries},
};

/// Which sessions are removed. Exhaustive: whatever waits in it, or only where nothing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    Always,
    AtRest,
}

impl Core {
    pub(super) async fn acquire(&self, id: &SessionId, node: &NodeLease) -> Result<Lease, Error> {
        const CALL: &str = "SELECT * FROM acquire_1($1, $2, $3, $4, $5, $6, $7, $8)";
        let (session, holder, mark) = (stored(id.as_str()), stored(node.id().as_str()), made_up());
        let mut tries = self.tries(Again::Always);
        let mut judged = None;
        loop {
            let (judged_id, expires, until) = judged_values(judged.take());
            let (is_again, now) = (tries.is_again(), self.now());
            let call = (
                CALL,
                &[
                    &session as _,
                    &holder as _,
                    &mark as _,
                    &is_again as _,
                    &judged_id as _,
                    &expires as _,
                    &until as _,
                    &now as _,
                ][..],
            );
            let rows = match self.once(&self.rooms.lanes, &tries, call).await {
                Ok(rows) => rows,
                Err(failure) => {
                    tries.after(failure).await?;
                    continue;
                }
            };
            let row = rows.first().ok_or_else(no_row)?;
            match row.try_get(0).map_err(unreadable)? {
                "taken" => return self.taken(id, node, mark, row).map_err(unreadable),
                "held" => {
                    let by: String = row.try_get(5).map_err(unreadable)?;
                    judged = self.must_be_dead(id, &by, &tries).await?;
                }
                "none" => return Err(Error::NoSession(id.clone())),
                "draining" => return Err(Error::Draining(node.id().clone())),
                "parked" => {
                    let why: String = row.try_get(6).map_err(unreadable)?;
                    return Err(Error::Parked(id.clone(), text(why)));
                }
                _ => return Err(Error::Buried(node.id().clone())),
            }
        }
    }

    fn taken(
        &self,
        id: &SessionId,
        node: &NodeLease,
        mark: i64,
        row: &Row,
    ) -> Result<Lease, tokio_postgres::Error> {
        let lease = Lease::new(id.clone(), count(row.try_get(1)?), node.clone());
        // A checksum that is none is found by the first append.
        if let Some(chain) = Chain::from_bytes(row.try_get(3)?) {
            let (head, serial) = (count(row.try_get(2)?), row.try_get(4)?);
            self.seats.put(&lease, JournalEnd { head, chain, serial, mark });
        }
        Ok(lease)
    }

    /// The holder of a session, as one that may be buried; `None` if it is to be asked anew who holds it.
    async fn must_be_dead(
        &self,
        id: &SessionId,
        by: &str,
        tries: &Tries,
    ) -> Result<Option<JudgedNode>, Error> {
        let held = "SELECT since FROM sessions WHERE id = $1 AND holder = $2";
        let rows = self.look(held, &[&stored(id.as_str()), &by]).await?;
        let since: Option<Timestamp> =
            rows.first().map(|row| row.try_get(0)).transpose().map_err(unreadable)?;
        let (Some(since), Some((row, judged))) = (since, self.judge_node(by).await?) else {
            if tries.left().is_zero() {
                let why = "who holds the session changes again and again; try again later";
                return Err(Error::Busy(safepoint::raw::store::Cause::new(why)));
            }
            return Ok(None);
        };
        match judged {
            Some(dead) => Ok(Some(dead)),
            None => Err(Error::Held(id.clone(), Box::new(row.as_holder(since)))),
        }
    }

    pub(super) async fn release(&self, lease: &Lease, seen: Changes, rest: Rest) -> Result<(), Error> {
        /// What is due later than that is not looked for before.
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
        const CALL: &str = "SELECT release_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let ((session, node), epoch, mark) = (names(lease), int(lease.epoch()), made_up());
        let (items, stops, decisions) = (int(seen.items), int(seen.stops), int(seen.decisions));
        let (rest, after) = match rest {
            Rest::Nothing => (0, None),
            Rest::After(time) => (1, Some(in_micros(time.min(CENTURY)))),
            Rest::Now => (2, None),
        };
        let mut tries = self.tries(Again::Always);
        let is_given_back: bool = loop {
            let (is_again, now) = (tries.is_again(), self.now());
            let call = (
                CALL,
                &[
                    &session as _,
                    &epoch as _,
                    &node as _,
                    &mark as _,
                    &is_again as _,
                    &items as _,
                    &stops as _,
                    &decisions as _,
                    &rest as _,
                    &after as _,
                    &now as _,
                ][..],
            );
            match self.once(&self.rooms.lanes, &tries, call).await {
                Ok(rows) => break rows.first().ok_or_else(no_row)?.try_get(0).map_err(unreadable)?,
                Err(failure) => tries.after(failure).await?,
            }
        };
        self.seats.remove(lease);
        if is_given_back {
            return Ok(());
        }
        let rows = self.look(SEAT, &[&session, &node]).await?;
        let row = rows.first().ok_or_else(|| Error::NoSession(lease.session().clone()))?;
        FoundSeat::read(row).map_err(unreadable)?.of(lease).map(drop)
    }

    /// Removes it, and returns whether that was allowed.
    pub(super) async fn remove_if(&self, id: &SessionId, removal: Removal) -> Result<bool, Error> {
        const CALL: &str = "SELECT * FROM remove_1($1, $2, $3, $4, $5)";
        let (session, is_only_at_rest) = (stored(id.as_str()), removal == Removal::AtRest);
        let tries = self.tries(Again::Never);
        let mut judged = None;
        loop {
            let (judged_id, expires, until) = judged_values(judged.take());
            let call = (
                CALL,
                &[&session as _, &is_only_at_rest as _, &judged_id as _, &expires as _, &until as _][..],
            );
            let row = self.row(&self.rooms.long, Again::Never, call).await?;
            match row.try_get(0).map_err(unreadable)? {
                "removed" => return Ok(true),
                "waits" => return Ok(false),
                "none" => return Err(Error::NoSession(id.clone())),
                _ => {
                    let by: String = row.try_get(1).map_err(unreadable)?;
                    judged = self.must_be_dead(id, &by, &tries).await?;
                }
            }
        }
    }
}
