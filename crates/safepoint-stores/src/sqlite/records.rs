//! Journals, read: each record against its checksum, and what cannot be read named by its position.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Row};
use safepoint::{
    ids::SessionId,
    raw::store::{Chain, ChainCheck, ChainReader, DamageKind, JournalEntry, Page, Record},
    store::{Error, SessionRow},
};

use super::{
    column::{number, place, places},
    fail::Fail,
    sessions,
};

/// Records that a check holds at once.
const STRETCH: usize = 512;

const COLUMNS: &str = "SELECT place, path, kind, version, bytes, chain FROM records";

/// What stands at a place.
enum FoundRecord {
    Row(Record, Option<Chain>),
    Unreadable(String),
}

/// One journal, as one moment shows it.
struct Journal<'a> {
    connection: &'a Connection,
    row: SessionRow,
    key: i64,
}

pub(super) fn read(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    most: usize,
) -> Result<Page, Fail> {
    let moment = connection.unchecked_transaction()?;
    let journal = Journal::open(&moment, session)?;
    let mut walk = journal.walk(from)?;
    journal.page(&mut walk, most)
}

/// All of them, if none is damaged.
pub(super) fn all(moment: &Connection, session: &SessionId) -> Result<Vec<Record>, Fail> {
    let journal = Journal::open(moment, session)?;
    let mut walk = journal.walk(0)?;
    let mut all = Vec::new();
    loop {
        let page = journal.page(&mut walk, STRETCH)?;
        for entry in page.entries {
            all.push(entry.record.map_err(|damage| Error::Damaged(session.clone(), damage))?);
        }
        if page.next.is_none() {
            return Ok(all);
        }
    }
}

pub(super) fn check(connection: &Connection, session: &SessionId) -> Result<ChainCheck, Fail> {
    let moment = connection.unchecked_transaction()?;
    let journal = Journal::open(&moment, session)?;
    let mut walk = journal.walk(0)?;
    loop {
        let page = journal.page(&mut walk, STRETCH)?;
        if let Some(damage) = page.entries.into_iter().find_map(|entry| entry.record.err()) {
            return Ok(ChainCheck::Damaged(damage));
        }
        if page.next.is_none() {
            break;
        }
    }
    let verdict = walk.end(journal.row.head, journal.row.chain);
    match journal.last()? {
        Some(last) if last >= journal.row.head => {
            Ok(ChainReader::from(last + 1, None).end(journal.row.head, journal.row.chain))
        }
        Some(_) | None => Ok(verdict),
    }
}

impl<'a> Journal<'a> {
    fn open(connection: &'a Connection, session: &SessionId) -> Result<Self, Fail> {
        let key = sessions::key(connection, session)?;
        Ok(Self { connection, row: sessions::open(connection, session)?, key })
    }

    /// A walk that begins after the record before `from`.
    fn walk(&self, from: u64) -> Result<ChainReader, Fail> {
        let before = match from.checked_sub(1) {
            None => Some(Chain::of(&self.row.id)),
            Some(before) => match self.one(before)? {
                Some(FoundRecord::Row(_, chain)) => chain,
                Some(FoundRecord::Unreadable(_)) | None => None,
            },
        };
        Ok(ChainReader::from(from, before))
    }

    fn page(&self, walk: &mut ChainReader, most: usize) -> Result<Page, Fail> {
        let from = walk.position();
        let to = self.row.head.min(from.saturating_add(most as u64));
        let mut found = if from < to { self.stretch(from, to)? } else { BTreeMap::new() };
        let mut entries = Vec::with_capacity(found.len());
        for position in from..to {
            let record = match found.remove(&position) {
                Some(FoundRecord::Row(record, chain)) => walk.step(record, chain),
                Some(FoundRecord::Unreadable(why)) => Err(walk.skip(DamageKind::Unreadable { why })),
                None => Err(walk.skip(self.gap(position)?)),
            };
            entries.push(JournalEntry { position, record });
        }
        Ok(Page { entries, next: (to < self.row.head && from < to).then_some(to) })
    }

    /// Whether a record that is not there is one in the midst, or the first of a lost end.
    fn gap(&self, position: u64) -> Result<DamageKind, Fail> {
        let is_end = self.last()?.is_none_or(|last| last < position);
        Ok(if is_end { DamageKind::TailLost { head: self.row.head } } else { DamageKind::Missing })
    }

    /// The newest record that is there, whatever the session's row says.
    fn last(&self) -> Result<Option<u64>, Fail> {
        let mut select =
            self.connection.prepare_cached("SELECT max(place) FROM records WHERE place BETWEEN ?1 AND ?2")?;
        let last: Option<i64> = select.query_row(places(self.key), |row| row.get(0))?;
        Ok(last.map(number))
    }

    /// What stands at `from..to`: in one go where that can be read, else one by one.
    fn stretch(&self, from: u64, to: u64) -> Result<BTreeMap<u64, FoundRecord>, Fail> {
        let mut select = self
            .connection
            .prepare_cached(&format!("{COLUMNS} WHERE place >= ?1 AND place < ?2 ORDER BY place"))?;
        let range = (place(self.key, from)?, place(self.key, to)?);
        let whole: rusqlite::Result<BTreeMap<u64, FoundRecord>> = select.query_map(range, found)?.collect();
        match whole {
            Ok(whole) => Ok(whole),
            Err(_) => {
                let each = |position| Ok(self.one(position)?.map(|found| (position, found)));
                (from..to).filter_map(|position| each(position).transpose()).collect()
            }
        }
    }

    fn one(&self, position: u64) -> Result<Option<FoundRecord>, Fail> {
        let mut select = self.connection.prepare_cached(&format!("{COLUMNS} WHERE place = ?1"))?;
        let place = place(self.key, position).map_err(|error: Error| Fail::from(error))?;
        match select.query_row([place], found).optional() {
            Ok(row) => Ok(row.map(|(_, found)| found)),
            Err(why) => Ok(Some(FoundRecord::Unreadable(why.to_string()))),
        }
    }
}

/// A row of [`COLUMNS`]. One whose values are not what the columns hold is unreadable, and alone so.
fn found(row: &Row<'_>) -> rusqlite::Result<(u64, FoundRecord)> {
    let record = || -> rusqlite::Result<(Record, Vec<u8>)> {
        let record =
            Record { path: row.get(1)?, kind: row.get(2)?, version: row.get(3)?, bytes: row.get(4)? };
        Ok((record, row.get(5)?))
    };
    let found = match record() {
        Ok((record, chain)) => FoundRecord::Row(record, Chain::from_bytes(&chain)),
        Err(why) => FoundRecord::Unreadable(why.to_string()),
    };
    Ok((number(row.get(0)?), found))
}
