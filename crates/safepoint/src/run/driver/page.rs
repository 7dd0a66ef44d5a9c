//! Where a model call's performer writes: the draft and its write permission, shown to readers as the draft
//! grows.
//!
//! **Invariants**: nothing of a message is shown after it was cut, nor anything that exceeds its bounds;
//! between two deltas the performer yields.

use std::sync::Arc;

use safepoint_scope::{Permit, Scope};

use super::{
    model_call::CallModel,
    model_errors::{dead, retry},
    unsaid::unsaid,
    word::Word,
};
use crate::{
    contract::model::{Delta, ModelError, ModelErrorKind, OnModelStop, Reply},
    run::{
        draft::{Draft, Room},
        outcome::LastWords,
        shared::{RunMessage, Shared},
    },
    sync::Mutex,
    value::{event::EventKind, receipt::RetryReport},
};

/// The draft and its write permission. The permission is withdrawn when the call is cut, so that a chunk that
/// arrives later changes nothing and is not shown.
///
/// Its lock is held for one delta, or by the driver to withdraw the permission and take what is there. Of other locks
/// only those of the feeds are taken under it, and nothing is awaited.
pub(super) struct SharedDraft {
    pub(super) draft: Draft,
    pub(super) hand: Writer,
    pub(super) retries: Vec<RetryReport>,
}

/// Who may write. Exhaustive: the performer; the performer, but only the usage; or no writer.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Writer {
    #[default]
    Performer,
    Closed,
    UsageOnly,
}

/// Where a performer writes, and whom it notifies.
pub(super) struct DraftWriter {
    /// Shared with the driver: see [`SharedDraft`].
    pub(super) pen: Arc<Mutex<SharedDraft>>,
    pub(super) shared: Arc<Shared>,
    pub(super) round: u32,
    /// Whether readers see the text: a summary is not shown.
    pub(super) is_shown: bool,
    /// The part of the text that readers have seen.
    pub(super) said: LastWords,
}

/// Streams one message into its draft. Spends the permit; dropping the future releases the exchange.
pub(super) async fn perform(permit: Permit<CallModel>, reply: Reply, page: DraftWriter, on_cut: OnModelStop) {
    let scope = permit.into_scope();
    let word = Word::or(&page.shared, RunMessage::ModelEnded { round: page.round, error: Some(dead()) });
    let reading = read(reply, &page, (on_cut, &scope));
    let read = match on_cut {
        // The performer observes the stop itself, so that the exchange is released while the driver still
        // records the request.
        OnModelStop::Disconnect => scope.run(reading).await,
        OnModelStop::Drain => Ok(reading.await),
    };
    match read {
        Ok(ended) => word.say(RunMessage::ModelEnded { round: page.round, error: ended.err() }),
        // The driver observes the same stop, and cuts the message.
        Err(stop) => drop(stop),
    }
}

async fn read(
    mut reply: Reply,
    page: &DraftWriter,
    (on_cut, scope): (OnModelStop, &Scope),
) -> Result<(), ModelError> {
    while let Some(delta) = reply.next().await {
        let delta = match delta {
            Err(error) if error.kind() == ModelErrorKind::OutputBytes => {
                page.spent();
                return Err(error);
            }
            delta => delta?,
        };
        let is_last = matches!(delta, Delta::Ended(_));
        let room = page.write(delta);
        // The message is complete: a stream that stays open is not waited for. A message beyond its bounds is
        // not read either, except for its bill.
        if is_last || room == Room::Spent && on_cut == OnModelStop::Disconnect {
            break;
        }
        // A stream that always has another delta must not hide the stop: it is checked between any two
        // deltas.
        if on_cut == OnModelStop::Disconnect && scope.is_stopping() {
            tokio::task::yield_now().await;
        }
        tokio::task::coop::consume_budget().await;
    }
    reply.end()
}

impl DraftWriter {
    /// Writes one delta, and returns whether there is room for more.
    fn write(&self, delta: Delta) -> Room {
        let mut pen = self.pen.lock();
        match (pen.hand, &delta) {
            (Writer::Performer, _) => {}
            // What arrives after the cut is fenced; only the usage is written.
            (Writer::UsageOnly, Delta::Usage(_) | Delta::Ended(_)) => {
                pen.draft.take(delta);
                return Room::Left;
            }
            (Writer::UsageOnly | Writer::Closed, _) => return Room::Left,
        }
        let before = pen.draft.room();
        pen.retries.extend(retry(&delta));
        let shown = self.shown(&delta);
        pen.draft.take(delta);
        let room = pen.draft.room();
        // Content without room is not part of the message and is not shown. The rest is shown under the lock:
        // a cut takes the same lock, so nothing is shown after it.
        if room == Room::Left
            && let Some(shown) = shown
        {
            self.shared.feed.push(shown);
        }
        drop(pen);
        if (before, room) == (Room::Left, Room::Spent) {
            self.shared.post(RunMessage::TooLong { round: self.round });
        }
        room
    }

    /// The decoder has exceeded its bounds.
    fn spent(&self) {
        let mut pen = self.pen.lock();
        let before = pen.draft.room();
        pen.draft.spent();
        drop(pen);
        if before == Room::Left {
            self.shared.post(RunMessage::TooLong { round: self.round });
        }
    }

    /// What readers see of a delta.
    fn shown(&self, delta: &Delta) -> Option<EventKind> {
        match delta {
            Delta::Text(_) | Delta::Reasoning(_) | Delta::CallPreview { .. } | Delta::Usage(_)
                if !self.is_shown =>
            {
                None
            }
            Delta::Text(text) => {
                unsaid(self.said.as_str(), text).map(|text| EventKind::Text(text.as_ref().into()))
            }
            Delta::Reasoning(text) => Some(EventKind::Reasoning(text.as_str().into())),
            Delta::CallPreview { name } => Some(EventKind::CallBegun(name.clone())),
            Delta::Usage(usage) => Some(EventKind::Usage(usage.clone())),
            Delta::Retrying { failed, after, error } | Delta::Reconnecting { failed, after, error } => {
                let (failed, after, error) = (*failed, *after, error.clone());
                Some(EventKind::Retrying { failed, after, error })
            }
            Delta::FailedOver { from, to, error } => {
                let (from, to, error) = (Arc::clone(from), Arc::clone(to), error.clone());
                Some(EventKind::FailedOver { from, to, error })
            }
            Delta::Sent | Delta::Opened | Delta::ReasoningSeal(_) | Delta::CallReady(_) | Delta::Ended(_) => {
                None
            }
        }
    }
}
