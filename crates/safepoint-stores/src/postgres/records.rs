//! Journals, read: each record against its checksum, and what cannot be read named by its position.

use std::collections::BTreeMap;

use safepoint::{
    ids::SessionId,
    raw::store::{Chain, ChainCheck, ChainReader, DamageKind, JournalEntry, Page, Record},
    store::Error,
};
use tokio_postgres::Row;

use super::{
    column::{count, int, stored, text},
    core::{Core, Values},
    failure::Failure,
    limits::{PAGE_BYTES, PAGE_RECORDS},
    nodes::unreadable,
    tries::{Again, Tries},
};

/// The session's row, the checksum before `$2`, the newest record that is there, the newest one of the page's range, and the records
/// from `$2` on, `$3` at most and not many bytes.
const PAGE: &str = "SELECT s.head, s.chain, b.chain, l.last, p.last, r.position, r.path, r.kind, r.version, r.bytes, r.chain \
     FROM sessions s \
     LEFT JOIN records b ON b.session = s.key AND b.position = $2::bigint - 1 \
     LEFT JOIN LATERAL (SELECT max(position) AS last FROM records WHERE session = s.key) l ON true \
     LEFT JOIN LATERAL (SELECT max(position) AS last FROM records \
         WHERE session = s.key AND position >= $2 AND position < least(s.head, $2::bigint + $3::bigint)) p ON true \
     LEFT JOIN LATERAL (SELECT * FROM (SELECT position, path, kind, version, bytes, chain, \
             sum(octet_length(bytes)) OVER (ORDER BY position) - octet_length(bytes) AS before FROM records \
             WHERE session = s.key AND position >= $2 AND position < least(s.head, $2::bigint + $3::bigint)) sized \
         WHERE before < $4) r ON true \
     WHERE s.id = $1 ORDER BY r.position";

/// What one look at a journal has found.
struct FoundPage {
    head: u64,
    chain: Chain,
    /// The checksum before the page.
    before: Option<Chain>,
    /// The newest record that is there, whatever the session's row says.
    last: Option<u64>,
    /// Where the page ends.
    to: u64,
    records: BTreeMap<u64, StoredRecord>,
    /// Why a record cannot be read: the page has that one position then.
    unreadable: Option<String>,
}

impl FoundPage {
    fn read(rows: &[Row], session: &SessionId, (from, most): (u64, u64)) -> Result<Self, Error> {
        let first = rows.first().ok_or_else(|| Error::NoSession(session.clone()))?;
        let mut found = Self::row(first, (from, most)).map_err(unreadable)?;
        for row in rows {
            let Some((position, record)) = record(row).map_err(unreadable)? else { continue };
            found.records.insert(position, record);
        }
        // Of a page that would be too large, the rest is for the next one.
        let is_cut = |newest: u64| found.records.last_key_value().is_some_and(|(last, _)| *last < newest);
        let newest: Option<i64> = first.try_get(4).map_err(unreadable)?;
        if newest.map(count).is_some_and(is_cut) {
            found.to = found.records.last_key_value().map_or(from, |(last, _)| last + 1);
        }
        Ok(found)
    }

    /// What each row says of the session.
    fn row(row: &Row, (from, most): (u64, u64)) -> Result<Self, tokio_postgres::Error> {
        let head = count(row.try_get(0)?);
        let before: Option<&[u8]> = row.try_get(2)?;
        Ok(Self {
            head,
            // One that does not look like a checksum fits no record.
            chain: Chain::from_bytes(row.try_get(1)?).unwrap_or_else(|| Chain::of(&"".into())),
            before: before.and_then(Chain::from_bytes),
            last: row.try_get::<_, Option<i64>>(3)?.map(count),
            to: head.min(from.saturating_add(most)),
            records: BTreeMap::new(),
            unreadable: None,
        })
    }

    /// Whether a record that is not there is one in the midst, or the first of a lost end.
    fn gap(&self, position: u64) -> DamageKind {
        let is_end = self.last.is_none_or(|last| last < position);
        if is_end { DamageKind::TailLost { head: self.head } } else { DamageKind::Missing }
    }

    /// One entry for each position of the page.
    fn entries(&mut self, walk: &mut ChainReader) -> Vec<JournalEntry> {
        let mut entries = Vec::new();
        for position in walk.position()..self.to {
            let record = match (self.records.remove(&position), self.unreadable.take()) {
                (_, Some(why)) => Err(walk.skip(DamageKind::Unreadable { why })),
                (Some((record, chain)), None) => walk.step(record, chain),
                (None, None) => Err(walk.skip(self.gap(position))),
            };
            entries.push(JournalEntry { position, record });
        }
        entries
    }
}

/// A record with the checksum that is stored with it.
type StoredRecord = (Record, Option<Chain>);

fn record(row: &Row) -> Result<Option<(u64, StoredRecord)>, tokio_postgres::Error> {
    let Some(position) = row.try_get::<_, Option<i64>>(5)? else { return Ok(None) };
    let record = Record {
        path: text(row.try_get(6)?),
        kind: text(row.try_get(7)?),
        version: u32::try_from(row.try_get::<_, i64>(8)?).unwrap_or(u32::MAX),
        bytes: row.try_get(9)?,
    };
    Ok(Some((count(position), (record, Chain::from_bytes(row.try_get(10)?)))))
}

impl Core {
    pub(super) async fn read(&self, session: &SessionId, from: u64, most: usize) -> Result<Page, Error> {
        let most = most.min(PAGE_RECORDS) as u64;
        let mut found = self.page(session, from, most).await?;
        let mut walk = ChainReader::from(from, before(&found, session, from));
        let entries = found.entries(&mut walk);
        let to = from + entries.len() as u64;
        Ok(Page { next: (to < found.head && from < to).then_some(to), entries })
    }

    /// Walks to the end that the first look has seen: what was appended since is not looked at.
    pub(super) async fn check(&self, session: &SessionId) -> Result<ChainCheck, Error> {
        let mut found = self.page(session, 0, PAGE_RECORDS as u64).await?;
        let (head, chain, last) = (found.head, found.chain, found.last);
        let mut walk = ChainReader::from(0, Some(Chain::of(session)));
        loop {
            found.to = found.to.min(head);
            let entries = found.entries(&mut walk);
            if let Some(damage) = entries.into_iter().find_map(|entry| entry.record.err()) {
                return Ok(ChainCheck::Damaged(damage));
            }
            if walk.position() >= head {
                break;
            }
            found = self.page(session, walk.position(), PAGE_RECORDS as u64).await?;
        }
        match last {
            Some(last) if last >= head => Ok(ChainReader::from(last + 1, None).end(head, chain)),
            Some(_) | None => Ok(walk.end(head, chain)),
        }
    }

    /// One page. If the database cannot read a record of it, the page ends before that one, or is that one alone.
    async fn page(&self, session: &SessionId, from: u64, most: u64) -> Result<FoundPage, Error> {
        let mut most = most;
        loop {
            let (id, first, records) = (stored(session.as_str()), int(from), int(most));
            // Beyond every journal: the sum must not overflow.
            let first = first.min(i64::MAX / 2);
            let values: Values<'_> = &[&id, &first, &records, &PAGE_BYTES];
            match self.try_page(values).await? {
                Ok(rows) => return FoundPage::read(&rows, session, (from, most)),
                Err(why) if most <= 1 => return self.damaged_page(session, from, why).await,
                Err(_) => most /= 2,
            }
        }
    }

    /// The rows, or why the database cannot read them.
    async fn try_page(&self, values: Values<'_>) -> Result<Result<Vec<Row>, String>, Error> {
        let mut tries: Tries = self.tries(Again::Look);
        loop {
            match self.once(&self.rooms.long, &tries, (PAGE, values)).await {
                Ok(rows) => return Ok(Ok(rows)),
                Err(Failure::Corrupt(why)) => return Ok(Err(why)),
                Err(failure) => tries.after(failure).await?,
            }
        }
    }

    async fn damaged_page(&self, session: &SessionId, from: u64, why: String) -> Result<FoundPage, Error> {
        const ROW: &str = "SELECT s.head, s.chain, NULL::bytea, (SELECT max(position) FROM records WHERE session = s.key) \
             FROM sessions s WHERE s.id = $1";
        let rows = self.look(ROW, &[&stored(session.as_str())]).await?;
        let row = rows.first().ok_or_else(|| Error::NoSession(session.clone()))?;
        let found = FoundPage::row(row, (from, 1)).map_err(unreadable)?;
        Ok(FoundPage { unreadable: Some(why), ..found })
    }
}

fn before(found: &FoundPage, session: &SessionId, from: u64) -> Option<Chain> {
    if from == 0 { Some(Chain::of(session)) } else { found.before }
}
