//! What may be alive of the last turn of a session that nobody has any more, by what was recorded of it.

use safepoint::{
    ids::SessionId,
    session::{JournalFact, read_journal},
    store::Store,
};
use serde_json::json;

use super::protocol::{Reply, Wait};
use crate::exit::code;

/// What may be alive. Exhaustive: nothing, what was named, or nobody has said.
enum Left {
    Nothing,
    Named(Vec<String>),
    Unknown,
}

/// The last word to whoever waits for the end of a session that nobody has any more: quiet is said only of a turn that was
/// recorded as that, and nobody is there who could tell more (S3.6).
pub(super) async fn told(store: &dyn Store, session: &SessionId, said: &str, wait: Wait) -> Reply {
    let left = of(store, session).await;
    let but = match &left {
        Left::Nothing => {
            let status = if wait == Wait::Quiet { "quiet" } else { "settled" };
            return Reply::new(code::ACCEPTED, status, said);
        }
        Left::Named(names) => format!("NOT QUIET, this may go on: {}", names.join(", ")),
        Left::Unknown => "whether all of it has ended was not recorded".to_owned(),
    };
    let (code, status) = match (wait, &left) {
        (Wait::Quiet, Left::Named(_)) => (code::OTHER, "not_quiet"),
        (Wait::Quiet, _) => (code::OTHER, "unknown"),
        (Wait::No | Wait::Settled, _) => (code::ACCEPTED, "settled"),
    };
    let survivors = if let Left::Named(names) = left { names } else { Vec::new() };
    Reply::new(code, status, format!("{said}; {but}")).detail(json!({ "survivors": survivors }))
}

/// What was recorded last of the session's turns.
async fn of(store: &dyn Store, session: &SessionId) -> Left {
    let mut left = Left::Nothing;
    let read = read_journal(store, session, |past| match past.what {
        Ok(JournalFact::Quiet { survivors, .. }) if survivors.is_empty() => left = Left::Nothing,
        Ok(JournalFact::Quiet { survivors, .. }) => left = Left::Named(survivors),
        // A turn began, or was at work.
        Ok(JournalFact::Fact { path, .. }) if path.is_root() => left = Left::Unknown,
        Ok(_) => {}
        Err(_damage) => left = Left::Unknown,
    });
    match read.await {
        Ok(()) => left,
        Err(_unread) => Left::Unknown,
    }
}
