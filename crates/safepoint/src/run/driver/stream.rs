//! Where a model call's performer writes: the draft and its write permission, shown to readers as the draft
//! grows.
//!
//! **Invariants**: nothing of a message is shown after it was cut, nor anything that exceeds its bounds;
//! between two deltas the performer yields.

use std::{
    future::{Pending, pending},
    sync::Arc,
};

use safepoint_scope::{Effect, Scope};

use super::{
    filters::{FilterPanic, Filters},
    model_errors::retry,
    unshown::unshown,
};
use crate::{
    contract::{
        log::Recorded,
        model::{Delta, GuardedReply, ModelError, ModelErrorKind, OnModelStop},
    },
    run::{
        draft::Draft,
        outcome::LastWords,
        shared::{RunMessage, SharedRun},
    },
    sync::{Mutex, callback::Panicked},
    value::{
        event::{EventKind, HookReport},
        receipt::RetryReport,
    },
};

/// The effect of calling a model.
#[derive(Debug)]
pub(super) enum CallModel {}

impl Effect for CallModel {
    type Announcement = Recorded;
}

/// The draft and its write permission. The permission is withdrawn when the call is cut, so that a chunk that
/// arrives later changes nothing and is not shown.
///
/// Its lock is held for one delta, or by the driver to withdraw the permission and take what is there. Of other locks
/// only those of the feeds are taken under it, and nothing is awaited.
pub(super) struct SharedDraft {
    pub(super) draft: Draft,
    pub(super) permission: Writer,
    pub(super) retries: Vec<RetryReport>,
    /// What hooks have changed of it.
    pub(super) changed: Vec<HookReport>,
}

impl SharedDraft {
    pub(super) fn new(draft: Draft) -> Self {
        Self { draft, permission: Writer::default(), retries: Vec::new(), changed: Vec::new() }
    }
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
    pub(super) draft: Arc<Mutex<SharedDraft>>,
    pub(super) shared: Arc<SharedRun>,
    pub(super) round: u32,
    /// Whether readers see the text: a summary is not shown.
    pub(super) is_shown: bool,
    /// The part of the text that readers have seen.
    pub(super) said: LastWords,
    /// What hooks make of the text, if any does.
    pub(super) filters: Option<Box<Filters>>,
}

/// Streams one message into its draft. Dropping the future releases the exchange.
pub(super) async fn read(
    mut reply: GuardedReply,
    mut writer: DraftWriter,
    (on_cut, scope): (OnModelStop, Scope),
) -> Result<(), ModelError> {
    while let Some(delta) = reply.next().await {
        let delta = match delta {
            Err(error) if error.kind() == ModelErrorKind::OutputBytes => {
                writer.fill();
                return Err(error);
            }
            Err(error) => {
                writer.flush().await;
                return Err(error);
            }
            Ok(delta) => delta,
        };
        let is_last = matches!(delta, Delta::Ended(_));
        let is_full =
            if writer.filters.is_some() { writer.write_filtered(delta).await } else { writer.write(delta) };
        // The message is complete: a stream that stays open is not waited for. A message beyond its bounds is
        // not read either, except for its bill.
        if is_last || is_full && on_cut == OnModelStop::Disconnect {
            break;
        }
        // A stream that always has another delta must not hide the stop: it is checked between any two
        // deltas.
        if on_cut == OnModelStop::Disconnect && scope.is_stopping() {
            tokio::task::yield_now().await;
        }
        tokio::task::coop::consume_budget().await;
    }
    writer.flush().await;
    reply.end()
}

impl DraftWriter {
    /// Writes one delta, and returns whether the message exceeds its bounds.
    fn write(&self, delta: Delta) -> bool {
        let mut locked = self.draft.lock();
        match (locked.permission, &delta) {
            (Writer::Performer, _) => {}
            // What arrives after the cut is fenced; only the usage is written.
            (Writer::UsageOnly, Delta::Usage(_) | Delta::Ended(_)) => {
                locked.draft.take(delta);
                return false;
            }
            (Writer::UsageOnly | Writer::Closed, _) => return false,
        }
        let was_full = locked.draft.is_full();
        locked.retries.extend(retry(&delta));
        let shown = self.shown(&delta);
        let was_unsent = locked.draft.is_unsent();
        locked.draft.take(delta);
        let waits = locked.draft.is_unsent() && !was_unsent;
        let is_full = locked.draft.is_full();
        // Content without room is not part of the message and is not shown. The rest is shown under the lock:
        // a cut takes the same lock, so nothing is shown after it.
        if !is_full && let Some(shown) = shown {
            self.shared.feed.push(shown);
        }
        drop(locked);
        if waits {
            self.shared.post(RunMessage::ModelWaits);
        }
        if is_full && !was_full {
            self.shared.post(RunMessage::TooLong { round: self.round });
        }
        is_full
    }

    /// Writes what hooks leave of a delta.
    async fn write_filtered(&mut self, delta: Delta) -> bool {
        let filtered = self.filters.as_mut().map(|filters| filters.take(delta));
        let deltas = match filtered.transpose() {
            Ok(deltas) => deltas.unwrap_or_default(),
            Err(panic) => return self.failed(panic).await,
        };
        self.write_all(deltas)
    }

    /// Writes what hooks still keep: nothing more arrives.
    async fn flush(&mut self) {
        let rest = self.filters.as_mut().map(|filters| filters.flush());
        match rest.transpose() {
            Ok(Some(rest)) => {
                self.write_all(rest);
            }
            Ok(None) => {}
            Err(panic) => {
                self.failed(panic).await;
            }
        }
    }

    fn write_all(&self, deltas: impl IntoIterator<Item = Delta>) -> bool {
        let mut is_full = false;
        for delta in deltas {
            is_full |= self.write(delta);
        }
        if let Some(filters) = &self.filters {
            self.draft.lock().changed = filters.changed(self.round);
        }
        is_full
    }

    /// A filter panicked: nothing of the message is written any more, and the driver, which fails the run, cuts it.
    fn failed(&self, (hook, Panicked(message)): FilterPanic) -> Pending<bool> {
        self.shared.post(RunMessage::HookPanicked { hook, message });
        pending()
    }

    /// The decoder has exceeded its bounds.
    fn fill(&self) {
        let mut locked = self.draft.lock();
        let was_full = locked.draft.is_full();
        locked.draft.fill();
        drop(locked);
        if !was_full {
            self.shared.post(RunMessage::TooLong { round: self.round });
        }
    }

    /// What readers see of a delta.
    fn shown(&self, delta: &Delta) -> Option<EventKind> {
        match delta {
            Delta::Text(_)
            | Delta::Reasoning(_)
            | Delta::CallPreview { .. }
            | Delta::CallArguments { .. }
            | Delta::Provider(_)
            | Delta::Usage(_)
                if !self.is_shown =>
            {
                None
            }
            Delta::Text(text) => {
                unshown(self.said.as_str(), text).map(|text| EventKind::Text(text.as_ref().into()))
            }
            Delta::Reasoning(text) => Some(EventKind::Reasoning(text.as_str().into())),
            Delta::CallPreview { name } => Some(EventKind::CallBegun(name.clone())),
            Delta::CallArguments { id, name, text } => {
                let (call_id, name, arguments) = (id.clone(), Arc::clone(name), text.as_str().into());
                Some(EventKind::CallDelta { call_id, name, arguments })
            }
            Delta::Provider(block) => Some(EventKind::Provider(Arc::new((**block).clone()))),
            Delta::Usage(usage) => Some(EventKind::Usage(usage.clone())),
            Delta::Retrying { failed, after, error } | Delta::Reconnecting { failed, after, error } => {
                let (failed, after, error) = (*failed, *after, error.clone());
                Some(EventKind::Retrying { failed, after, error })
            }
            Delta::Waiting { what } => Some(EventKind::Waiting { what: Arc::clone(what) }),
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
