//! The inbox: any process pushes, the holder takes.

use std::sync::Arc;

use jiff::Timestamp;
use safepoint::{
    ids::SessionId,
    raw::store::{InboxRow, ItemState, NewItem, Pushed, Withdrawn},
    store::Error,
};
use tokio_postgres::Row;

use super::{
    column::{count, int, stored, text},
    core::Core,
    limits,
    looks::{Answers, Look, lists},
    nodes::unreadable,
    tries::Again,
};

fn item(row: &Row) -> Result<InboxRow, tokio_postgres::Error> {
    Ok(InboxRow {
        number: count(row.try_get(1)?),
        client_id: row.try_get::<_, Option<String>>(2)?.map(text),
        digest: text(row.try_get(3)?),
        state: match row.try_get::<_, i16>(4)? {
            0 => ItemState::Waiting,
            1 => ItemState::Taken,
            _ => ItemState::Removed,
        },
        at: row.try_get(5)?,
        bytes: row.try_get(6)?,
    })
}

/// A look at the items of a session that were not removed.
#[derive(Debug)]
pub(super) struct InboxOf(pub(super) SessionId);

impl Look for InboxOf {
    type Answer = Vec<InboxRow>;

    /// Fewer than of what is small.
    const MOST_SHARED: usize = 32;

    fn session(&self) -> &SessionId {
        &self.0
    }

    async fn ask(core: &Core, all: &[Self]) -> Answers<Self> {
        const SELECT: &str = "SELECT a.n, i.number, i.client, i.digest, i.state, i.at, i.bytes \
             FROM unnest($1::text[]) WITH ORDINALITY a(id, n) JOIN sessions s ON s.id = a.id \
             LEFT JOIN items i ON i.session = s.key AND i.state < 2 ORDER BY a.n, i.number";
        let ids: Vec<_> = all.iter().map(|look| stored(look.0.as_str())).collect();
        let rows = core.look(SELECT, &[&ids]).await?;
        lists(&rows, all.len(), |row| {
            let is_there = row.try_get::<_, Option<i64>>(1)?.is_some();
            is_there.then(|| item(row)).transpose()
        })
    }
}

impl Core {
    pub(super) async fn push(self: &Arc<Self>, id: &SessionId, new: &NewItem) -> Result<Pushed, Error> {
        const CALL: &str = "SELECT * FROM push_1($1, $2, $3, $4, $5, $6)";
        limits::item(new)?;
        let (session, client) = (stored(id.as_str()), new.client_id.as_deref().map(stored));
        let (digest, capacity, now) = (stored(&new.digest), int(new.capacity as u64), self.now());
        let call = (
            CALL,
            &[&session as _, &client as _, &digest as _, &new.bytes as _, &capacity as _, &now as _][..],
        );
        let row = self.row(&self.rooms.lanes, Again::Never, call).await?;
        let number = row.try_get::<_, Option<i64>>(1).map_err(unreadable)?.map_or(0, count);
        Ok(match row.try_get(0).map_err(unreadable)? {
            "accepted" => {
                self.notify(row.try_get::<_, Option<String>>(2).map_err(unreadable)?);
                Pushed::Accepted(number)
            }
            "same" => Pushed::Same(number),
            "conflict" => Pushed::Conflict(number),
            "full" => Pushed::Full,
            "closed" => Pushed::Closed,
            _ => return Err(Error::NoSession(id.clone())),
        })
    }

    /// Every one that was ever accepted.
    pub(super) async fn items(&self, id: &SessionId) -> Result<Vec<InboxRow>, Error> {
        const SELECT: &str = "SELECT i.number IS NOT NULL OR NULL, i.number, i.client, i.digest, i.state, i.at, i.bytes \
             FROM sessions s LEFT JOIN items i ON i.session = s.key WHERE s.id = $1 ORDER BY i.number";
        let rows = self.of_session(id, (SELECT, &[&stored(id.as_str())])).await?;
        rows.iter().map(item).collect::<Result<_, _>>().map_err(unreadable)
    }

    pub(super) async fn accepted(&self, id: &SessionId, number: u64) -> Result<Option<Timestamp>, Error> {
        const SELECT: &str = "SELECT i.number IS NOT NULL OR NULL, i.at \
             FROM sessions s LEFT JOIN items i ON i.session = s.key AND i.number = $2 WHERE s.id = $1";
        let rows = self.of_session(id, (SELECT, &[&stored(id.as_str()), &int(number)])).await?;
        rows.first().map(|row| row.try_get(1)).transpose().map_err(unreadable)
    }

    pub(super) async fn withdraw(self: &Arc<Self>, id: &SessionId, number: u64) -> Result<Withdrawn, Error> {
        const CALL: &str = "SELECT * FROM withdraw_1($1, $2, $3)";
        let (session, place, now) = (stored(id.as_str()), int(number), self.now());
        let row = self.row(&self.rooms.lanes, Again::Never, (CALL, &[&session, &place, &now])).await?;
        match row.try_get(0).map_err(unreadable)? {
            "item" => {
                let item = withdrawn(&row, number).map_err(unreadable)?;
                self.notify(row.try_get::<_, Option<String>>(1).map_err(unreadable)?);
                Ok(Withdrawn::Item(item))
            }
            "taken" => Ok(Withdrawn::Taken),
            "unknown" => Ok(Withdrawn::Unknown),
            _ => Err(Error::NoSession(id.clone())),
        }
    }
}

/// The item as it was when it was withdrawn.
fn withdrawn(row: &Row, number: u64) -> Result<InboxRow, tokio_postgres::Error> {
    Ok(InboxRow {
        number,
        client_id: row.try_get::<_, Option<String>>(2)?.map(text),
        digest: text(row.try_get(3)?),
        state: ItemState::Waiting,
        at: row.try_get(4)?,
        bytes: row.try_get(5)?,
    })
}
