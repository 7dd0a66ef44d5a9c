//! A whole session, given at one moment and taken in one transaction.

use rusqlite::{Connection, OptionalExtension as _, params};
use safepoint::{
    ids::SessionId,
    raw::store::{ImageStamp, OverImage, SessionImage},
    store::{Error, SessionRow},
};

use super::{
    approvals,
    column::{int, micros, optional_text, text, time},
    due,
    fail::Fail,
    inbox, journal, records, sessions, stops,
};

/// What a session's row has beside what lists show.
const REST: &str =
    "SELECT pool, priority, inbox_closed, due, tries, at_rest, parked FROM sessions WHERE id = ?1";

/// All of it, if no node holds it.
pub(super) fn image(connection: &Connection, id: &SessionId) -> Result<SessionImage, Fail> {
    let moment = connection.unchecked_transaction()?;
    let row = free(&moment, id)?;
    let mut select = moment.prepare_cached(REST)?;
    let image = select.query_row([id.as_str()], |rest| {
        let due: Option<i64> = rest.get(3)?;
        Ok(SessionImage {
            row,
            pool: text(rest, 0)?,
            priority: rest.get(1)?,
            changes: Default::default(),
            is_inbox_closed: rest.get(2)?,
            records: Vec::new(),
            items: Vec::new(),
            stops: Vec::new(),
            approvals: Vec::new(),
            tenures: Vec::new(),
            due: due.map(time),
            tries: rest.get(4)?,
            is_at_rest: rest.get(5)?,
            parked: optional_text(rest, 6)?,
        })
    })?;
    let image = SessionImage {
        changes: sessions::notice(&moment, id)?,
        records: records::all(&moment, id)?,
        items: inbox::all(&moment, id)?,
        stops: stops::all(&moment, id)?,
        approvals: approvals::list(&moment, id)?,
        tenures: due::tenures(&moment, id)?,
        ..image
    };
    image.check()?;
    Ok(image)
}

/// The session's row, if no node holds it.
fn free(connection: &Connection, id: &SessionId) -> Result<SessionRow, Fail> {
    let row = sessions::open(connection, id)?;
    match &row.holder {
        Some(holder) => Err(Error::Held(id.clone(), Box::new(holder.clone())).into()),
        None => Ok(row),
    }
}

/// Puts it there, over nothing or over what is still as it was.
pub(super) fn restore(
    connection: &Connection,
    image: &SessionImage,
    over: &OverImage,
) -> Result<SessionRow, Fail> {
    const THERE: &str = "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)";
    const EPOCH: &str = "UPDATE epochs SET newest = max(newest, ?1)";
    image.check()?;
    let id = &image.row.id;
    let found: bool = connection.prepare_cached(THERE)?.query_row([id.as_str()], |row| row.get(0))?;
    match over {
        OverImage::Nothing if found => return Err(Error::SessionExists(id.clone()).into()),
        OverImage::Nothing => {}
        OverImage::Unchanged(stamp) => {
            must_be(connection, id, stamp)?;
            sessions::remove(connection, id)?;
        }
    }
    let key = insert(connection, image)?;
    journal::refill(connection, key, (id, &image.records))?;
    inbox::refill(connection, key, &image.items)?;
    stops::refill(connection, key, &image.stops)?;
    approvals::refill(connection, key, &image.approvals)?;
    due::refill(connection, key, &image.tenures)?;
    connection.prepare_cached(EPOCH)?.execute([int(image.row.epoch)])?;
    Ok(image.row.clone())
}

fn must_be(connection: &Connection, id: &SessionId, stamp: &ImageStamp) -> Result<(), Fail> {
    let row = free(connection, id)?;
    let is = ImageStamp {
        head: row.head,
        chain: row.chain,
        updated: row.updated,
        changes: sessions::notice(connection, id)?,
    };
    if is == *stamp { Ok(()) } else { Err(Error::SessionExists(id.clone()).into()) }
}

/// Its row; the key of it.
fn insert(connection: &Connection, image: &SessionImage) -> Result<i64, Fail> {
    const INSERT: &str = "INSERT INTO sessions (id, created, updated, label, title, setup, head, chain, epoch, inbox_closed, \
         inbox_changes, stops, decisions, pool, priority, due, tries, at_rest, parked) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19) RETURNING key";
    let SessionRow { id, created, updated, label, title, setup, head, chain, epoch, .. } = &image.row;
    let changes = image.changes;
    let mut insert = connection.prepare_cached(INSERT)?;
    let key = insert
        .query_row(
            params![
                id.as_str(),
                micros(*created),
                micros(*updated),
                label,
                title,
                setup,
                int(*head),
                chain.as_bytes(),
                int(*epoch),
                image.is_inbox_closed,
                int(changes.items),
                int(changes.stops),
                int(changes.decisions),
                image.pool,
                image.priority,
                image.due.map(micros),
                image.tries,
                image.is_at_rest,
                image.parked,
            ],
            |row| row.get(0),
        )
        .optional()?;
    key.ok_or_else(|| Error::SessionExists(id.clone()).into())
}
