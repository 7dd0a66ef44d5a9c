//! How large what is stored may be: an error says what to do, before anything is asked (S7.56).

use std::hash::{BuildHasher as _, RandomState};

use safepoint::{
    raw::store::{Cause, NewApproval, NewItem, NewSession, Record, SessionImage},
    store::{Error, NewNode},
};

/// A name: of a session, a node, a pool, a client's item, an approval.
const NAME: usize = 512;
/// A record's content.
const RECORD: usize = 64 << 20;
/// An item, a stop, a question, a decision, or a text of the session.
const ITEM: usize = 8 << 20;
/// All of one append.
const APPEND: usize = 256 << 20;

/// The most records of a page.
pub(super) const PAGE_RECORDS: usize = 1_024;
/// The most bytes of a page; one record may have more.
pub(super) const PAGE_BYTES: i64 = 16 << 20;

fn bounded(what: &str, has: usize, most: usize, hint: &str) -> Result<(), Error> {
    if has <= most {
        return Ok(());
    }
    Err(Error::Failed(Cause::new(format!("{what} of {has} bytes is too large, {most} are the most: {hint}"))))
}

/// Names are in indexes.
pub(super) fn name(what: &str, name: &str) -> Result<(), Error> {
    bounded(what, name.len(), NAME, "use a shorter one")
}

pub(super) fn record(record: &Record) -> Result<(), Error> {
    bounded(
        "a record",
        record.bytes.len(),
        RECORD,
        "keep what is large in a file, and name it in the record",
    )?;
    words(&record.path)?;
    words(&record.kind)
}

/// The content of an item, a stop or a decision.
pub(super) fn content(what: &str, bytes: &[u8]) -> Result<(), Error> {
    bounded(what, bytes.len(), ITEM, "keep what is large in a file, and name it there")
}

pub(super) fn words(text: &str) -> Result<(), Error> {
    bounded("a text", text.len(), ITEM, "keep what is large in a file")
}

pub(super) fn item(item: &NewItem) -> Result<(), Error> {
    content("an item", &item.bytes)?;
    words(&item.digest)?;
    item.client_id.as_deref().map_or(Ok(()), |id| name("a client's id", id))
}

pub(super) fn question(asked: &NewApproval) -> Result<(), Error> {
    content("a question", &asked.bytes)?;
    for text in [asked.run.as_str(), asked.call.as_str(), &asked.digest] {
        words(text)?;
    }
    name("an approval's id", asked.id.as_str())
}

pub(super) fn together(bytes: usize) -> Result<(), Error> {
    bounded("an append", bytes, APPEND, "write it in several")
}

pub(super) fn session(new: &NewSession) -> Result<(), Error> {
    name("a session's id", new.id.as_str())?;
    name("a pool's name", &new.pool)?;
    [&new.title, &new.label, &new.setup].into_iter().try_for_each(|text| words(text))?;
    new.items.iter().try_for_each(item)?;
    new.records.iter().try_for_each(record)?;
    let items: usize = new.items.iter().map(|item| item.bytes.len()).sum();
    together(items + new.records.iter().map(|record| record.bytes.len()).sum::<usize>())
}

/// A session that comes from another store, which may have other limits.
pub(super) fn image(image: &SessionImage) -> Result<(), Error> {
    name("a session's id", image.row.id.as_str())?;
    name("a pool's name", &image.pool)?;
    [&image.row.title, &image.row.label, &image.row.setup].into_iter().try_for_each(|text| words(text))?;
    image.records.iter().try_for_each(record)?;
    for item in &image.items {
        content("an item", &item.bytes)?;
        item.client_id.as_deref().map_or(Ok(()), |id| name("a client's id", id))?;
    }
    image.stops.iter().try_for_each(|stop| content("a stop", &stop.bytes))?;
    image.approvals.iter().try_for_each(|row| question(&row.asked))?;
    let records: usize = image.records.iter().map(|record| record.bytes.len()).sum();
    let items: usize = image.items.iter().map(|item| item.bytes.len()).sum();
    bounded("a session", records + items, APPEND, "it stays where it is")
}

pub(super) fn node(new: &NewNode) -> Result<(), Error> {
    name("a node's id", new.id.as_str())?;
    name("a node's name", &new.name)?;
    new.pools.iter().try_for_each(|pool| name("a pool's name", pool))
}

/// A number that no other request has.
pub(super) fn made_up() -> i64 {
    i64::from_ne_bytes(RandomState::new().hash_one(0).to_ne_bytes())
}
