//! Sessions that want a holder and have none, and who held them before.

use safepoint::{
    ids::SessionId,
    raw::store::{Due, Tenure},
    store::Error,
};
use tokio_postgres::Row;

use super::{
    column::{count, int, stored, text},
    core::Core,
    nodes::unreadable,
    tries::Again,
};

impl Core {
    pub(super) async fn due(&self, most: usize, pools: &[String]) -> Result<Vec<Due>, Error> {
        // The rows of an update have no order.
        const CALL: &str = "SELECT * FROM due_1($1, $2, $3) ORDER BY _priority, _since, _id";
        let (most, now) = (int(most as u64), self.now());
        let pools: Vec<_> = pools.iter().map(|pool| stored(pool)).collect();
        let rows = self.rows(&self.rooms.short, Again::Never, (CALL, &[&most, &pools, &now])).await?;
        let read = |row: &Row| {
            Ok(Due {
                session: text(row.try_get(0)?).into(),
                pool: text(row.try_get(1)?),
                priority: row.try_get(2)?,
                tries: u16::try_from(row.try_get::<_, i16>(3)?).unwrap_or(0),
            })
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(unreadable)
    }

    pub(super) async fn unpark(&self, id: &SessionId) -> Result<(), Error> {
        const UPDATE: &str = "UPDATE sessions SET tries = 0, parked = NULL, \
             due = CASE WHEN parked IS NULL THEN due ELSE coalesce($2, clock_timestamp()) END WHERE id = $1 RETURNING key";
        let (session, now) = (stored(id.as_str()), self.now());
        let rows = self.rows(&self.rooms.lanes, Again::Always, (UPDATE, &[&session, &now])).await?;
        rows.first().map(drop).ok_or_else(|| Error::NoSession(id.clone()))
    }

    pub(super) async fn tenures(&self, id: &SessionId) -> Result<Vec<Tenure>, Error> {
        const SELECT: &str = "SELECT t.epoch IS NOT NULL OR NULL, t.epoch, t.node, t.head, t.at \
             FROM sessions s LEFT JOIN tenures t ON t.session = s.key WHERE s.id = $1 ORDER BY t.epoch";
        let rows = self.of_session(id, (SELECT, &[&stored(id.as_str())])).await?;
        let read = |row: &Row| {
            let (epoch, head) = (count(row.try_get(1)?), count(row.try_get(3)?));
            Ok(Tenure { epoch, node: text(row.try_get(2)?).into(), head, at: row.try_get(4)? })
        };
        rows.iter().map(read).collect::<Result<_, _>>().map_err(unreadable)
    }
}
