//! What the holder writes.

use jiff::Timestamp;
use rusqlite::{Connection, blob::ZeroBlob, params};
use safepoint::{
    ids::{ApprovalId, SessionId},
    raw::store::{
        Appended, Chain, CloseResult, Damage, DamageKind, ItemState, Lease, NewSession, Record, Write,
    },
    store::Error,
};

use super::{
    approvals,
    column::{int, micros, place},
    fail::Fail,
    inbox,
    leases::{self, Seat},
    sessions, stops,
};

/// From this size in bytes on, a record is given its room in the file, and then written there in pieces: as a value of a statement
/// it would be in memory twice more (S12.4). What stands in the file is the same.
const LARGE: usize = 256 << 10;

/// An append under way.
struct Append<'a> {
    connection: &'a Connection,
    key: i64,
    head: u64,
    chain: Chain,
    now: Timestamp,
    decided: Vec<ApprovalId>,
}

/// Writes the first records of a new session.
pub(super) fn begin(connection: &Connection, new: &NewSession, now: Timestamp) -> Result<(), Fail> {
    if new.records.is_empty() {
        return Ok(());
    }
    let key = sessions::key(connection, &new.id)?;
    write(connection, key, (&new.id, &new.records), now)
}

/// Writes the whole journal of a session that has none.
pub(super) fn refill(
    connection: &Connection,
    key: i64,
    records: (&SessionId, &[Record]),
) -> Result<(), Fail> {
    // A record has no time.
    write(connection, key, records, Timestamp::UNIX_EPOCH)
}

fn write(
    connection: &Connection,
    key: i64,
    (id, records): (&SessionId, &[Record]),
    now: Timestamp,
) -> Result<(), Fail> {
    let mut append = Append { connection, key, head: 0, chain: Chain::of(id), now, decided: Vec::new() };
    records.iter().try_for_each(|record| append.record(record))
}

pub(super) fn append(
    connection: &Connection,
    lease: &Lease,
    writes: &[Write],
    now: Timestamp,
) -> Result<Appended, Fail> {
    let Seat { key, head: first, chain } = leases::must_hold(connection, lease)?;
    let damage = || Damage { position: first.saturating_sub(1), flaw: DamageKind::OtherHead };
    let chain = Chain::from_bytes(&chain).ok_or_else(|| Error::Damaged(lease.session().clone(), damage()))?;
    let mut append = Append { connection, key, head: first, chain, now, decided: Vec::new() };
    for write in writes {
        append.write(write)?;
    }
    let Append { head, chain, decided, .. } = append;
    if writes.iter().any(Write::is_news) {
        connection
            .prepare_cached("UPDATE sessions SET updated = ?2, head = ?3, chain = ?4 WHERE key = ?1")?
            .execute(params![key, micros(now), int(head), chain.as_bytes()])?;
    } else {
        connection
            .prepare_cached("UPDATE sessions SET head = ?2, chain = ?3 WHERE key = ?1")?
            .execute(params![key, int(head), chain.as_bytes()])?;
    }
    Ok(Appended { first, next: head, chain, decided })
}

impl Append<'_> {
    fn write(&mut self, write: &Write) -> Result<(), Fail> {
        const ANY: &[ItemState] = &[ItemState::Waiting, ItemState::Taken];
        let (connection, key) = (self.connection, self.key);
        match write {
            Write::Record(record) => self.record(record),
            Write::AtWork => self.set("UPDATE sessions SET at_rest = ?2 WHERE key = ?1", 0),
            Write::AtRest => self.set("UPDATE sessions SET at_rest = ?2, tries = 0 WHERE key = ?1", 1),
            Write::TakeItem(item) => {
                inbox::change(connection, key, *item, &[ItemState::Waiting], ItemState::Taken)
            }
            Write::PutBackItem(item) => {
                inbox::change(connection, key, *item, &[ItemState::Taken], ItemState::Waiting)
            }
            Write::RemoveItem(item) => inbox::change(connection, key, *item, ANY, ItemState::Removed),
            Write::CloseInbox => self.set("UPDATE sessions SET inbox_closed = ?2 WHERE key = ?1", 1),
            Write::OpenInbox => self.set("UPDATE sessions SET inbox_closed = ?2 WHERE key = ?1", 0),
            Write::StopSeen(number) => stops::seen(connection, key, *number),
            Write::OpenApproval(asked) => approvals::open(connection, key, asked, self.now),
            Write::CloseApproval(id, closed) => {
                if approvals::close(connection, key, id, *closed)? == CloseResult::TooLate {
                    self.decided.push(id.clone());
                }
                Ok(())
            }
            Write::Label(label) => self.set("UPDATE sessions SET label = ?2 WHERE key = ?1", label),
            Write::Title(title) => self.set("UPDATE sessions SET title = ?2 WHERE key = ?1", title),
            Write::Setup(setup) => self.set("UPDATE sessions SET setup = ?2 WHERE key = ?1", setup),
        }
    }

    fn set(&self, sql: &str, value: impl rusqlite::ToSql) -> Result<(), Fail> {
        self.connection.prepare_cached(sql)?.execute(params![self.key, value])?;
        Ok(())
    }

    fn record(&mut self, record: &Record) -> Result<(), Fail> {
        const INSERT: &str = "INSERT INTO records (place, path, kind, version, bytes, chain) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let chain = self.chain.then(self.head, record);
        let Record { path, kind, version, bytes } = record;
        let place = place(self.key, self.head)?;
        let mut insert = self.connection.prepare_cached(INSERT)?;
        if bytes.len() < LARGE {
            insert.execute(params![place, path, kind, version, bytes, chain.as_bytes()])?;
        } else {
            let (of_bytes, of_chain) = (space_for(bytes)?, space_for(chain.as_bytes())?);
            insert.execute(params![place, path, kind, version, of_bytes, of_chain])?;
            self.fill(place, "bytes", bytes)?;
            self.fill(place, "chain", chain.as_bytes())?;
        }
        self.chain = chain;
        self.head += 1;
        Ok(())
    }

    /// Writes what a column of a record has room for, in place.
    fn fill(&self, place: i64, column: &str, bytes: &[u8]) -> Result<(), Fail> {
        const PIECE: usize = 64 << 10;
        let mut blob = self.connection.blob_open("main", "records", column, place, false)?;
        for (number, piece) in bytes.chunks(PIECE).enumerate() {
            blob.write_at(piece, number * PIECE)?;
        }
        Ok(blob.close()?)
    }
}

/// A column with space for these. The size has another type in each release of `rusqlite` that may be used.
fn space_for(bytes: &[u8]) -> Result<ZeroBlob, Fail> {
    let size = bytes.len().try_into();
    let size = size.map_err(|too_large| rusqlite::Error::ToSqlConversionFailure(Box::new(too_large)))?;
    Ok(ZeroBlob(size))
}
