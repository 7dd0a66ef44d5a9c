//! A whole journal, as far as it can be read.

use crate::value::ids::SessionId;

use super::{Error, JournalEntry, Store, guarded};

/// How many records are in memory at once.
const STRETCH: usize = 512;

/// Passes on each position of a journal in order: its record, or its damage.
///
/// # Errors
/// The store's error, if the journal cannot be read at all or the store panics. Damage to one record is
/// reported in its place.
///
/// # Cancel safety
/// Nothing is lost; records already passed on stay passed on.
pub async fn export(
    store: &dyn Store,
    session: &SessionId,
    each: impl FnMut(JournalEntry) + Send,
) -> Result<(), Error> {
    export_from(store, session, 0, each).await
}

/// The same from this position on.
pub(crate) async fn export_from(
    store: &dyn Store,
    session: &SessionId,
    first: u64,
    mut each: impl FnMut(JournalEntry) + Send,
) -> Result<(), Error> {
    let mut from = Some(first);
    while let Some(start) = from {
        let page = guarded::read(|| store.read(session, start, STRETCH)).await?;
        page.entries.into_iter().for_each(&mut each);
        from = page.next;
    }
    Ok(())
}
