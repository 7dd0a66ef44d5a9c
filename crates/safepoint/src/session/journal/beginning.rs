//! The conversation that a session begins with, as the first records of its journal.
//!
//! **Invariants**: it is recorded before any turn, as a whole or not at all; a session with another one is not continued.

use super::{Grown, Journal, JournalLine, PAGE, look::looked};
use crate::{
    contract::store::{Cause, Durability, Error, Record, Write},
    sync::clock,
    value::{
        history::{History, Message},
        ids::{SessionId, TurnId},
    },
};

/// About how many bytes a record of it has at most, since a store may bound that, unless a single message has more.
const BYTES: usize = 8 << 20;

/// The conversation of another session until this turn of it, and behind it what the engine says to the model.
pub(in crate::session) fn continued(
    (from, turn): (SessionId, TurnId),
    history: &History,
    notes: Vec<String>,
) -> Result<Vec<Record>, Error> {
    let mut lines = lines(Some((from, turn)), history)?;
    if let Some(JournalLine::Begun { notes: last, .. } | JournalLine::BegunMore { notes: last, .. }) =
        lines.last_mut()
    {
        *last = notes;
    }
    records(&lines)
}

/// The conversation that a program gives; nothing if that is empty.
pub(in crate::session) fn given(history: &History) -> Result<Vec<Record>, Error> {
    if history.entries().is_empty() { Ok(Vec::new()) } else { records(&lines(None, history)?) }
}

fn lines(from: Option<(SessionId, TurnId)>, history: &History) -> Result<Vec<JournalLine>, Error> {
    let (at, mut from) = (clock::now(), from);
    let parts = Grown::parts(history, BYTES).map_err(unwritten)?;
    let line = |history| match from.take() {
        Some((from, turn)) => JournalLine::Begun { from, turn, history, notes: Vec::new(), at },
        None => JournalLine::BegunMore { history, notes: Vec::new(), at },
    };
    Ok(parts.into_iter().map(line).collect())
}

fn records(lines: &[JournalLine]) -> Result<Vec<Record>, Error> {
    lines.iter().map(|line| line.record().map_err(unwritten)).collect()
}

fn unwritten(error: serde_json::Error) -> Error {
    Error::Failed(Cause::new(error))
}

/// Ensures that the session has begun with this conversation: it is recorded if nothing is. An empty one is no demand.
///
/// # Errors
/// [`Error::BegunOtherwise`], and the store's.
pub(in crate::session) async fn begin_with(journal: &Journal, history: &History) -> Result<(), Error> {
    if history.entries().is_empty() {
        return Ok(());
    }
    let Some(begun) = begun(journal).await? else {
        let writes = given(history)?.into_iter().map(Write::Record).collect();
        journal.append(writes, Durability::Durable).await?;
        return Ok(());
    };
    if begun.entries().iter().eq(history.entries().iter()) {
        return Ok(());
    }
    Err(Error::BegunOtherwise(journal.session().clone()))
}

/// The conversation that the session began with, which may be empty. `None`: nothing is recorded.
async fn begun(journal: &Journal) -> Result<Option<History>, Error> {
    let (mut begun, mut from) = (None, Some(0));
    while let Some(position) = from {
        let page = looked(journal.store().read(journal.session(), position, PAGE)).await?;
        for entry in page.entries {
            let damaged = |damage| Error::Damaged(journal.session().clone(), damage);
            let record = entry.record.map_err(damaged)?;
            let before = begun.get_or_insert_with(History::new);
            if record.is_checkpoint() {
                return Ok(begun);
            }
            match JournalLine::read(entry.position, &record).map_err(damaged)? {
                JournalLine::Begun { history, notes, .. } | JournalLine::BegunMore { history, notes, .. } => {
                    *before = history.onto(before);
                    notes.into_iter().for_each(|note| before.push(Message::User(note.into())));
                }
                _ => return Ok(begun),
            }
        }
        from = page.next;
    }
    Ok(begun)
}
