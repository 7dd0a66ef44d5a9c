//! A whole journal, as far as it can be read.

use crate::value::ids::SessionId;

use super::{
    Error, JournalEntry, Store,
    guarded::{Does, ask},
};

/// Records that are held at once.
const STRETCH: usize = 512;

/// Hands over each position of a journal in order: its record, or what is wrong with it.
///
/// # Errors
/// The store's, if it cannot be read at all, also if it panics; what is wrong with one record is told in its place.
///
/// # Cancel safety
/// Nothing is lost; what was handed over was handed over.
pub async fn export(
    store: &dyn Store,
    session: &SessionId,
    mut each: impl FnMut(JournalEntry) + Send,
) -> Result<(), Error> {
    let mut from = Some(0);
    while let Some(start) = from {
        let page = ask(Does::Reads, || store.read(session, start, STRETCH)).await?;
        page.entries.into_iter().for_each(&mut each);
        from = page.next;
    }
    Ok(())
}
