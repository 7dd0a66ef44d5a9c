//! What a node put into a queue a short while ago: a session that is named again has not been taken since.

use std::{collections::HashMap, time::Duration};

use safepoint::ids::SessionId;
use tokio::time::Instant;

/// How long it is known. A session is named again after five seconds, to whichever node looks first.
const KNOWN: Duration = Duration::from_secs(30);
/// How many are known. What is beyond that is put into the queue again.
const MOST: usize = 10_000;

/// The sessions that were put into the queue, each with the time of that.
#[derive(Debug, Default)]
pub(super) struct SentWakes(HashMap<SessionId, Instant>);

impl SentWakes {
    pub(super) fn note(&mut self, sessions: Vec<SessionId>) {
        self.0.retain(|_, at| at.elapsed() < KNOWN);
        let now = Instant::now();
        let space = MOST.saturating_sub(self.0.len());
        self.0.extend(sessions.into_iter().take(space).map(|session| (session, now)));
    }

    pub(super) fn is_known(&self, session: &SessionId) -> bool {
        self.0.get(session).is_some_and(|at| at.elapsed() < KNOWN)
    }
}
