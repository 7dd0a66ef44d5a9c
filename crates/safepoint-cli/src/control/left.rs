//! What may still be running of the last turn of a session without an owner, by the records of that turn.

use safepoint::{
    ids::SessionId,
    raw::{JournalFact, read_journal},
    store::Store,
};
use serde_json::json;

use super::protocol::{Reply, Wait};
use crate::exit::code;

/// What may still be running. Exhaustive: nothing, the named processes, or not recorded.
enum Left {
    Nothing,
    Named(Vec<String>),
    Unknown,
}

/// The last reply to a caller that waits for the end of a session without an owner. It says quiet only for a turn that was
/// recorded as quiet (S3.6).
pub(super) async fn reply(store: &dyn Store, session: &SessionId, said: &str, wait: Wait) -> Reply {
    let left = of(store, session).await;
    let but = match &left {
        Left::Nothing => {
            let status = if wait == Wait::Quiet { "quiet" } else { "settled" };
            return Reply::new(code::ACCEPTED, status, said);
        }
        Left::Named(names) => format!("may still be running: {}", names.join(", ")),
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
        // A turn began or was running.
        Ok(JournalFact::Fact { path, .. }) if path.is_root() => left = Left::Unknown,
        Ok(_) => {}
        Err(_damage) => left = Left::Unknown,
    });
    match read.await {
        Ok(()) => left,
        Err(_unread) => Left::Unknown,
    }
}
