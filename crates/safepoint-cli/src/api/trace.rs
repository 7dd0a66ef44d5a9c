//! The timeline of a session on a server.

use jiff::Timestamp;
use safepoint::{raw::store::NewSession, store::SessionRow};
use serde_json::{Value, json};

use super::{
    client::{ApiRequest, ServerApi},
    failure::ApiError,
    sessions::ServerSession,
};
use crate::{
    output::{Bulk, Unwritten},
    render::trace::{lines::LineFold, timeline::Timeline},
};

/// What a server lists of a session: how the session is, and what was recorded in it.
pub(crate) struct ServerTimeline {
    session: ServerSession,
    steps: Vec<Value>,
}

impl ServerApi {
    /// Reads the timeline of the session that is meant.
    ///
    /// # Errors
    /// If it cannot be read.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn timeline(&self, named: &str) -> Result<ServerTimeline, ApiError> {
        let read = async |session: &str| {
            let one = self.send(ApiRequest::get(&["sessions", session])).await?.body;
            let steps = self.pages(&["sessions", session, "timeline"], usize::MAX).await?;
            Ok(ServerTimeline { session: ServerSession::read(&one)?, steps })
        };
        Ok(self.of_session(named, read).await?.1)
    }
}

impl ServerTimeline {
    /// Writes the lines, numbered: those that `run --json` writes, as far as they are recorded.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(crate) fn say(self) -> Result<(), Unwritten> {
        let mut out = Bulk::default();
        for (seq, mut step) in self.steps.into_iter().enumerate() {
            let mut line = step["event"].take();
            line["seq"] = json!(seq);
            out.json(line)?;
        }
        out.flush()
    }

    /// The same as a story.
    pub(crate) fn story(&self) -> Timeline {
        let mut fold = LineFold::default();
        for step in &self.steps {
            let at = step["at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
            fold.take(step["position"].as_u64().unwrap_or_default(), at, &step["event"]);
        }
        let session =
            NewSession { title: self.session.title.clone(), ..NewSession::of(self.session.id.as_str()) };
        let mut row = SessionRow::new(&session, self.session.created);
        let cursor = self.session.cursor.as_deref().and_then(|cursor| cursor.split_once('.'));
        let last = cursor.and_then(|(_, position)| position.parse::<u64>().ok());
        (row.updated, row.head) = (self.session.updated, last.map_or(0, |last| last + 1));
        fold.story(row, self.session.state().shown())
    }
}
