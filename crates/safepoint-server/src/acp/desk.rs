//! What the requests of one editor share: who asks, the way to the editor, and the prompts that are open.
//!
//! **Invariants**: a prompt is open from before its item is pushed until its answer is said.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use safepoint::{
    Grace, Reason, StopRequest,
    session::QueueAfterStop,
    stop::{Actor, Code},
};
use serde_json::Value;
use tokio::sync::watch;

use super::{AcpServer, Job, outbox::Outbox};
use crate::caller::{Caller, Kept, items::view, left};

pub(super) struct Desk {
    pub(super) by: Caller,
    pub(super) outbox: Outbox,
    pub(super) agent: String,
    /// The folder that the agent works in.
    pub(super) folder: Option<PathBuf>,
    grace: Duration,
    /// Held for one look or one entry; no other lock is taken under it.
    prompts: Mutex<Vec<OpenPrompt>>,
    /// Whether the editor is gone.
    left: watch::Sender<bool>,
}

/// A prompt that has no answer yet.
#[derive(Clone)]
struct OpenPrompt {
    /// The editor's id of the request.
    request: Value,
    kept: Kept,
    /// None: its item is being pushed.
    number: Option<u64>,
    cancels: Cancels,
}

/// What the editor has asked of a prompt.
#[derive(Clone, Copy, Debug, Default)]
struct Cancels {
    count: u32,
    /// Whether the request itself was cancelled: its answer is an error then.
    is_of_request: bool,
}

impl Desk {
    pub(super) fn new(by: Caller, outbox: Outbox, server: AcpServer) -> Self {
        let AcpServer { agent, folder, grace, .. } = server;
        let left = watch::Sender::new(false);
        Self { by, outbox, agent, folder, grace, prompts: Mutex::default(), left }
    }

    /// What changes when the editor is gone.
    pub(super) fn left(&self) -> watch::Receiver<bool> {
        self.left.subscribe()
    }

    pub(super) fn has_left(&self) -> bool {
        *self.left.borrow()
    }

    /// A prompt is pushed next.
    pub(super) fn opened(&self, request: Value, kept: Kept) {
        self.prompts().push(OpenPrompt { request, kept, number: None, cancels: Cancels::default() });
    }

    /// It was pushed. It is stopped where the editor has gone since.
    ///
    /// # Cancel safety
    /// The stop may be under way.
    pub(super) async fn pushed(&self, request: &Value, number: u64) {
        let recorded = |open: &mut OpenPrompt| {
            open.number = Some(number);
            open.clone()
        };
        let found = self.prompts().iter_mut().find(|open| open.request == *request).map(recorded);
        let Some(open) = found else { return };
        // Behind the number: it is found there by an editor that goes from now on.
        if self.has_left() {
            self.stop(&open, self.leaves()).await;
        }
    }

    /// Its answer is said next, or it was not pushed.
    pub(super) fn closed(&self, request: &Value) {
        self.prompts().retain(|open| open.request != *request);
    }

    /// Whether the request itself was cancelled.
    pub(super) fn is_request_cancelled(&self, request: &Value) -> bool {
        self.prompts().iter().any(|open| open.request == *request && open.cancels.is_of_request)
    }

    /// Whether no other prompt of its session was open before it.
    pub(super) fn is_first(&self, request: &Value) -> bool {
        let prompts = self.prompts();
        let Some(own) = prompts.iter().find(|open| open.request == *request) else { return false };
        let is_behind = |open: &OpenPrompt| open.number.is_none() || open.number >= own.number;
        prompts.iter().all(|open| open.kept.id() != own.kept.id() || is_behind(open))
    }

    /// Stops every prompt of the session that is open now.
    pub(super) fn cancel_session(self: &Arc<Self>, session: &str) -> Job {
        let meant = self.cancelled(|open| open.kept.id().as_str() == session, false);
        let desk = Arc::clone(self);
        Box::pin(async move {
            for (open, request) in meant {
                desk.stop(&open, request).await;
            }
        })
    }

    /// Stops one prompt; any other request has an answer soon.
    pub(super) fn cancel_request(self: &Arc<Self>, id: &Value) -> Option<Job> {
        let (open, request) = self.cancelled(|open| open.request == *id, true).pop()?;
        let desk = Arc::clone(self);
        Some(Box::pin(async move { desk.stop(&open, request).await }))
    }

    /// The editor is gone: what it began is stopped, and what waits for a decision is left to wait.
    pub(super) fn leave(self: &Arc<Self>) -> Vec<Job> {
        // First: what is pushed from here on is stopped where that is known.
        self.left.send_replace(true);
        let open = self.prompts().clone();
        let stops = open.into_iter().map(|open| {
            let (desk, request) = (Arc::clone(self), self.leaves());
            let stop: Job = Box::pin(async move {
                let Some(number) = open.number else { return };
                let found = view(&desk.by.host, open.kept.id(), number).await;
                if found.is_ok_and(|item| item.outcome != Some("suspended")) {
                    desk.stop(&open, request).await;
                }
            });
            stop
        });
        stops.collect()
    }

    fn leaves(&self) -> StopRequest {
        let reason = Reason::new(Code::DISCONNECT).with_text("the editor closed its input");
        left::stop(reason.with_actor(self.actor()))
    }

    /// Those prompts with the stop that is next for each: a second one is at once.
    fn cancelled(
        &self,
        is_meant: impl Fn(&OpenPrompt) -> bool,
        is_of_request: bool,
    ) -> Vec<(OpenPrompt, StopRequest)> {
        let mut prompts = self.prompts();
        let meant = prompts.iter_mut().filter(|open| is_meant(open)).map(|open| {
            open.cancels.count += 1;
            open.cancels.is_of_request |= is_of_request;
            let grace = if open.cancels.count == 1 { self.grace } else { Duration::ZERO };
            let reason = Reason::user("cancelled in the editor").with_actor(self.actor());
            (open.clone(), within(grace).with_reason(reason))
        });
        meant.collect()
    }

    async fn stop(&self, open: &OpenPrompt, request: StopRequest) {
        // A line behind a prompt is read once that is recorded.
        let Some(number) = open.number else { return };
        let stopped = self.by.stop_item(&open.kept, number, request, QueueAfterStop::Continues).await;
        if stopped.is_err() {
            // It is over, or the store does not answer: the prompt's answer says how it ended.
        }
    }

    fn actor(&self) -> Actor {
        Actor::Remote(self.by.who.name().to_owned())
    }

    fn prompts(&self) -> MutexGuard<'_, Vec<OpenPrompt>> {
        self.prompts.lock().expect("no code under this lock panics")
    }
}

fn within(grace: Duration) -> StopRequest {
    Grace::try_from(grace).map_or_else(|_zero| StopRequest::now(), StopRequest::graceful)
}
