//! A whole session, given at one moment and taken by one call.
//!
//! **Invariants:** what is read of a session in several statements counts if nothing of it has changed between the first and the last.

use std::borrow::Cow;

use jiff::Timestamp;
use safepoint::{
    ids::SessionId,
    raw::store::{Cause, Chain, ItemState, OverImage, Record, SessionImage},
    store::{Error, SessionRow},
};

use super::{
    column::{int, stored, stored_time, text},
    core::{Core, Values},
    limits,
    looks::alone,
    nodes::unreadable,
    plan::RecordColumns,
    sessions::{changes, spread},
    stops::StopsOf,
    tries::Again,
};

mod columns;

use columns::{ApprovalColumns, ItemColumns, StopColumns, TenureColumns};

/// How often a session is read that others change meanwhile.
const TRIES: usize = 5;

/// What a session's row has beside what lists show, and what changes with it.
const REST: &str = "SELECT pool, priority, inbox_closed, due, tries, at_rest, parked, items, stops, decisions, epoch, serial, mark, updated \
     FROM sessions WHERE id = $1";

/// That row.
struct Rest {
    image: SessionImage,
    /// Two reads with the same are of one moment.
    moment: (i64, i64, Timestamp),
}

impl Core {
    pub(super) async fn image(&self, id: &SessionId) -> Result<SessionImage, Error> {
        for _ in 0..TRIES {
            let before = self.rest(id).await?;
            let image = SessionImage {
                records: self.journal(id, before.image.row.head).await?,
                items: self.items(id).await?,
                stops: alone(self, StopsOf { session: id.clone(), after: 0 }).await?,
                approvals: self.approvals(id).await?,
                tenures: self.tenures(id).await?,
                ..before.image.clone()
            };
            let after = self.rest(id).await?;
            if after.moment == before.moment && after.image == before.image {
                image.check()?;
                return Ok(image);
            }
        }
        Err(Error::Busy(Cause::new(format!("session {id} is being changed"))))
    }

    /// The row, if no node holds the session.
    async fn rest(&self, id: &SessionId) -> Result<Rest, Error> {
        let row = self.open(id).await?;
        if let Some(holder) = row.holder {
            return Err(Error::Held(id.clone(), Box::new(holder)));
        }
        let rows = self.look(REST, &[&stored(id.as_str())]).await?;
        let rest = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
        read_rest(row, rest).map_err(unreadable)
    }

    /// The whole journal, if none of it is damaged.
    async fn journal(&self, id: &SessionId, head: u64) -> Result<Vec<Record>, Error> {
        let mut records = Vec::new();
        while (records.len() as u64) < head {
            let page = self.read(id, records.len() as u64, limits::PAGE_RECORDS).await?;
            if page.entries.is_empty() {
                break;
            }
            for entry in page.entries {
                records.push(entry.record.map_err(|damage| Error::Damaged(id.clone(), damage))?);
            }
        }
        Ok(records)
    }

    pub(super) async fn restore(&self, image: &SessionImage, over: &OverImage) -> Result<SessionRow, Error> {
        image.check()?;
        limits::image(image)?;
        let id = &image.row.id;
        let exists = || Error::SessionExists(id.clone());
        match &*self.put(image, over).await? {
            "restored" => Ok(image.row.clone()),
            "none" => Err(Error::NoSession(id.clone())),
            "held" => {
                let holder = self.open(id).await?.holder;
                Err(holder.map_or_else(exists, |holder| Error::Held(id.clone(), Box::new(holder))))
            }
            _ => Err(exists()),
        }
    }

    async fn put(&self, image: &SessionImage, over: &OverImage) -> Result<String, Error> {
        let call =
            format!("SELECT restore_1({})", (1..=42).map(|n| format!("${n}")).collect::<Vec<_>>().join(", "));
        let row = &image.row;
        let id = stored(row.id.as_str());
        let stamp = match over {
            OverImage::Nothing => None,
            OverImage::Unchanged(stamp) => Some(stamp),
        };
        let (is_over, stamp_chain) = (stamp.is_some(), stamp.map(|stamp| stamp.chain.as_bytes().to_vec()));
        let stamp_updated = stamp.map(|stamp| stored_time(stamp.updated));
        let stamp: Option<Vec<i64>> = stamp.map(|stamp| {
            let changes = stamp.changes;
            vec![
                int(stamp.head),
                int(changes.items),
                int(changes.stops),
                int(changes.decisions),
                int(changes.epoch),
            ]
        });
        let texts: Vec<Option<Cow<'_, str>>> =
            [Some(&image.pool), Some(&row.title), Some(&row.label), Some(&row.setup), image.parked.as_ref()]
                .map(|word| word.map(|word| stored(word)))
                .into();
        let (numbers, times) = (numbers(image), times(image));
        let chain = row.chain.as_bytes();
        let (records, items, stops) = (records(image), ItemColumns::of(image), StopColumns::of(image));
        let (approvals, tenures) = (ApprovalColumns::of(image), TenureColumns::of(image));
        let RecordColumns { positions, paths, kinds, versions, bytes, chains, .. } = &records;
        let mut values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![
            &id,
            &is_over,
            &stamp,
            &stamp_chain,
            &stamp_updated,
            &texts,
            &numbers,
            &times,
            &chain,
            &image.is_inbox_closed,
            &image.is_at_rest,
            positions,
            paths,
            kinds,
            versions,
            bytes,
            chains,
        ];
        values.extend(items.values());
        values.extend(stops.values());
        values.extend(approvals.values());
        values.extend(tenures.values());
        let values: Values<'_> = &values;
        let answered = self.row(&self.rooms.long, Again::Never, (&call, values)).await?;
        answered.try_get(0).map_err(unreadable)
    }
}

fn read_rest(row: SessionRow, rest: &tokio_postgres::Row) -> Result<Rest, tokio_postgres::Error> {
    let image = SessionImage {
        row,
        pool: text(rest.try_get(0)?),
        priority: rest.try_get(1)?,
        changes: changes(rest, 7)?,
        is_inbox_closed: rest.try_get(2)?,
        records: Vec::new(),
        items: Vec::new(),
        stops: Vec::new(),
        approvals: Vec::new(),
        tenures: Vec::new(),
        due: rest.try_get(3)?,
        tries: u16::try_from(rest.try_get::<_, i16>(4)?).unwrap_or(0),
        is_at_rest: rest.try_get(5)?,
        parked: rest.try_get::<_, Option<String>>(6)?.map(text),
    };
    Ok(Rest { image, moment: (rest.try_get(11)?, rest.try_get(12)?, rest.try_get(13)?) })
}

fn numbers(image: &SessionImage) -> Vec<i64> {
    let (row, changes) = (&image.row, image.changes);
    let last = image.items.last().map_or(0, |item| item.number);
    let waiting = image.items.iter().filter(|item| item.state == ItemState::Waiting).count();
    vec![
        i64::from(image.priority),
        i64::from(spread(&row.id)),
        int(row.head),
        int(row.epoch),
        int(last),
        int(waiting as u64),
        int(changes.items),
        int(changes.stops),
        int(changes.decisions),
        i64::from(image.tries),
    ]
}

fn times(image: &SessionImage) -> Vec<Option<Timestamp>> {
    vec![
        Some(stored_time(image.row.created)),
        Some(stored_time(image.row.updated)),
        image.due.map(stored_time),
    ]
}

fn records(image: &SessionImage) -> RecordColumns<'_> {
    let mut chains: Vec<Chain> = Vec::with_capacity(image.records.len());
    let begins = Chain::of(&image.row.id);
    for (position, record) in (0..).zip(&image.records) {
        chains.push(chains.last().unwrap_or(&begins).then(position, record));
    }
    let mut columns = RecordColumns::default();
    columns.add(1, image.records.iter(), (0, &chains));
    columns
}
