//! The sessions' rows.

use safepoint::{
    ids::SessionId,
    raw::store::{Chain, Changes, NewItem, NewSession, PageCursor},
    store::{Error, SessionRow},
};
use tokio_postgres::Row;

use super::{
    column::{count, int, stored, stored_time, text},
    core::{Core, Values},
    leases::Removal,
    limits,
    looks::{Answers, Look},
    nodes::{NODE, NODE_COLUMNS, node, unreadable},
    plan::RecordColumns,
    tries::Again,
};

/// Columns of a session, as [`session`] reads them.
const SESSION: &str =
    "s.id, s.created, s.updated, s.label, s.title, s.setup, s.head, s.chain, s.epoch, s.since";
const FROM: &str = "FROM sessions s LEFT JOIN nodes n ON n.id = s.holder";

fn session(row: &Row) -> Result<SessionRow, tokio_postgres::Error> {
    let word = |at: usize| row.try_get(NODE_COLUMNS + at).map(text);
    let at = |at: usize| NODE_COLUMNS + at;
    let new = NewSession { title: word(4)?, label: word(3)?, setup: word(5)?, ..NewSession::of(word(0)?) };
    let mut found = SessionRow::new(&new, row.try_get(at(1))?);
    found.updated = row.try_get(at(2))?;
    found.head = count(row.try_get(at(6))?);
    // One that does not look like a checksum fits no record: a check places that.
    found.chain = Chain::from_bytes(row.try_get(at(7))?).unwrap_or(found.chain);
    found.epoch = count(row.try_get(at(8))?);
    let since: Option<jiff::Timestamp> = row.try_get(at(9))?;
    let holder = node(row, 0)?;
    found.holder = holder.zip(since).map(|(node, since)| node.as_holder(since));
    Ok(found)
}

/// Makes a session with all that it begins with, unless there is one.
const CREATE: &str = "WITH at AS (SELECT coalesce($1, clock_timestamp()) AS now), \
     made AS (INSERT INTO sessions (id, pool, priority, spread, created, updated, minute, title, label, setup, head, chain, \
         last_item, waiting, items, touched, due) \
         SELECT $2, $3, $4, $5, now, now, minute_of(now), $6, $7, $8, $9, $10, $11::bigint, $11, $11, \
             CASE WHEN $11::bigint > 0 THEN pg_current_xact_id() END, CASE WHEN $11::bigint > 0 THEN now END \
         FROM at ON CONFLICT (id) DO NOTHING RETURNING key, created), \
     recorded AS (INSERT INTO records (session, position, path, kind, version, bytes, chain) \
         SELECT made.key, r.* FROM made, unnest($12::bigint[], $13::text[], $14::text[], $15::bigint[], $16::bytea[], $17::bytea[]) r), \
     pushed AS (INSERT INTO items (session, number, client, digest, state, at, bytes) \
         SELECT made.key, i.number, i.client, i.digest, 0, made.created, i.bytes \
         FROM made, unnest($18::text[], $19::text[], $20::bytea[]) WITH ORDINALITY i(client, digest, bytes, number)) \
     SELECT made.created, class_1($21) FROM made";

/// The first item that a push into a new session would refuse.
fn refused(items: &[NewItem]) -> Option<u64> {
    let is_refused = |(place, item): &(usize, &NewItem)| {
        let is_known = |before: &NewItem| item.client_id.is_some() && before.client_id == item.client_id;
        *place >= item.capacity || items.iter().take(*place).any(is_known)
    };
    let first = items.iter().enumerate().find(is_refused);
    first.map(|(place, _)| place as u64 + 1)
}

/// A look at the counters of what others did to a session.
#[derive(Debug)]
pub(super) struct NoticeOf(pub(super) SessionId);

impl Look for NoticeOf {
    type Answer = Changes;

    fn session(&self) -> &SessionId {
        &self.0
    }

    async fn ask(core: &Core, all: &[Self]) -> Answers<Self> {
        const SELECT: &str = "SELECT s.key IS NOT NULL, s.items, s.stops, s.decisions, s.epoch \
             FROM unnest($1::text[]) WITH ORDINALITY a(id, n) LEFT JOIN sessions s ON s.id = a.id ORDER BY a.n";
        let ids: Vec<_> = all.iter().map(|look| stored(look.0.as_str())).collect();
        let rows = core.look(SELECT, &[&ids]).await?;
        let answer = |row: &Row| Ok(row.try_get::<_, bool>(0)?.then(|| changes(row, 1).map_err(unreadable)));
        rows.iter().map(answer).collect::<Result<_, _>>().map_err(unreadable)
    }
}

impl Core {
    pub(super) async fn create(&self, new: &NewSession) -> Result<SessionRow, Error> {
        limits::session(new)?;
        if let Some(place) = refused(&new.items) {
            let found =
                self.look("SELECT 1 FROM sessions WHERE id = $1", &[&stored(new.id.as_str())]).await?;
            let exists = Error::SessionExists(new.id.clone());
            return Err(if found.is_empty() { Error::ItemRefused(place) } else { exists });
        }
        let mut row = SessionRow::new(new, jiff::Timestamp::UNIX_EPOCH);
        let made = self.make(new, &row).await?;
        let made = made.first().ok_or_else(|| Error::SessionExists(new.id.clone()))?;
        row.created = made.try_get(0).map_err(unreadable)?;
        row.updated = row.created;
        Ok(row)
    }

    async fn make(&self, new: &NewSession, row: &SessionRow) -> Result<Vec<Row>, Error> {
        let (begins, spread) = (Chain::of(&new.id), spread(&new.id));
        let mut chains = Vec::new();
        for (position, record) in (0..).zip(&new.records) {
            chains.push(chains.last().unwrap_or(&begins).then(position, record));
        }
        let mut columns = RecordColumns::default();
        columns.add(1, new.records.iter(), (0, &chains));
        let RecordColumns { positions, paths, kinds, versions, bytes, chains, .. } = &columns;
        let clients: Vec<_> = new.items.iter().map(|item| item.client_id.as_deref().map(stored)).collect();
        let digests: Vec<_> = new.items.iter().map(|item| stored(&item.digest)).collect();
        let contents: Vec<&[u8]> = new.items.iter().map(|item| &item.bytes[..]).collect();
        let (id, pool, title) = (stored(new.id.as_str()), stored(&new.pool), stored(&new.title));
        let (label, setup) = (stored(&new.label), stored(&new.setup));
        let (head, items, chain) = (int(row.head), int(new.items.len() as u64), row.chain.as_bytes());
        let (is_durable, now) = (items > 0 || head > 0, self.now());
        let values: Values<'_> = &[
            &now,
            &id,
            &pool,
            &new.priority,
            &spread,
            &title,
            &label,
            &setup,
            &head,
            &chain,
            &items,
            positions,
            paths,
            kinds,
            versions,
            bytes,
            chains,
            &clients,
            &digests,
            &contents,
            &is_durable,
        ];
        self.rows(&self.rooms.lanes, Again::Never, (CREATE, values)).await
    }

    pub(super) async fn open(&self, id: &SessionId) -> Result<SessionRow, Error> {
        let sql = format!("SELECT {NODE}, {SESSION} {FROM} WHERE s.id = $1");
        let rows = self.look(&sql, &[&stored(id.as_str())]).await?;
        let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
        session(row).map_err(unreadable)
    }

    pub(super) async fn list(
        &self,
        most: usize,
        older: Option<&PageCursor>,
    ) -> Result<Vec<SessionRow>, Error> {
        const ORDER: &str = "ORDER BY s.minute DESC, s.updated DESC, s.id DESC LIMIT $1";
        let most = int(most as u64);
        let rows = match older {
            Some(PageCursor { updated, id }) => {
                let (updated, id) = (stored_time(*updated), stored(id.as_str()));
                let sql = format!(
                    "SELECT {NODE}, {SESSION} {FROM} \
                     WHERE s.minute <= minute_of($2) AND (s.updated, s.id) < ($2, $3) {ORDER}"
                );
                self.rows(&self.rooms.long, Again::Look, (&sql, &[&most, &updated, &id])).await?
            }
            None => {
                let sql = format!("SELECT {NODE}, {SESSION} {FROM} {ORDER}");
                self.rows(&self.rooms.long, Again::Look, (&sql, &[&most])).await?
            }
        };
        rows.iter().map(session).collect::<Result<_, _>>().map_err(unreadable)
    }

    pub(super) async fn remove(&self, id: &SessionId) -> Result<(), Error> {
        self.remove_if(id, Removal::Always).await.map(drop)
    }

    pub(super) async fn remove_if_at_rest(&self, id: &SessionId) -> Result<bool, Error> {
        self.remove_if(id, Removal::AtRest).await
    }

    /// What is asked about one session that must be there: each row has the session's key first, and then what was asked, or nulls.
    pub(super) async fn of_session(
        &self,
        id: &SessionId,
        (sql, values): (&str, Values<'_>),
    ) -> Result<Vec<Row>, Error> {
        let mut rows = self.look(sql, values).await?;
        if rows.is_empty() {
            return Err(Error::NoSession(id.clone()));
        }
        // A session without any is one row of nulls.
        rows.retain(|row| !matches!(row.try_get::<_, Option<bool>>(0), Ok(None)));
        Ok(rows)
    }
}

/// The part of a wait for the next owner that depends on the session: see `retry_after`.
pub(super) fn spread(id: &SessionId) -> i16 {
    /// How many parts such a wait has.
    const PARTS: i16 = 64;
    i16::from(Chain::of(id).as_bytes()[0]) % PARTS
}

/// The counters, from four columns of which the first is at `from`.
pub(super) fn changes(row: &Row, from: usize) -> Result<Changes, tokio_postgres::Error> {
    let mut newest = Changes::default();
    newest.items = count(row.try_get(from)?);
    newest.stops = count(row.try_get(from + 1)?);
    newest.decisions = count(row.try_get(from + 2)?);
    newest.epoch = count(row.try_get(from + 3)?);
    Ok(newest)
}
