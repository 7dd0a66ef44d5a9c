//! Progress of calls under way: who gets a server's messages about a call that it still works on.
//!
//! **Invariants** A call is known here from before it is sent until it is abandoned; a message about any other is
//! thrown away. An answer to an abandoned call is reported as late, once, if it is one of the last few.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestId};

use crate::{files::cut, limits};

/// What comes out about an abandoned call. Exhaustive: it is given up, and later, perhaps, its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Afterwards<'a> {
    /// It was under way, and the server gets a notice.
    Abandoned,
    /// The server answered it after all: its work is over.
    Answered(&'a str),
    /// The process that worked on it is gone, with all that it had started.
    Gone,
}

/// Where the notices of one call go.
#[derive(Clone)]
pub(super) struct Sink(Arc<Inner>);

struct Inner {
    tell: Box<dyn Fn(String) + Send + Sync>,
    learn: Box<dyn Fn(Afterwards<'_>) + Send + Sync>,
    /// How many notices may still be passed on.
    left: AtomicUsize,
    /// Set once, before the request is written.
    handed_over: AtomicBool,
}

impl Sink {
    pub(super) fn new(
        tell: impl Fn(String) + Send + Sync + 'static,
        learn: impl Fn(Afterwards<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            tell: Box::new(tell),
            learn: Box::new(learn),
            left: AtomicUsize::new(limits::MCP_NOTICES),
            handed_over: AtomicBool::new(false),
        }))
    }

    /// Whether the call was handed to the transport: before that it certainly was not sent.
    pub(super) fn was_handed_over(&self) -> bool {
        // SeqCst for simplicity, once a call. The transport sets it before it sends, so a call that failed and reads
        // `false` was never sent: the failure came back through a channel, which orders the two.
        self.0.handed_over.load(Ordering::SeqCst)
    }

    /// The caller no longer waits for the call.
    pub(super) fn abandoned(&self) {
        (self.0.learn)(Afterwards::Abandoned);
    }

    fn tell(&self, notice: &ProgressNotificationParam) {
        let spend = |left: usize| left.checked_sub(1);
        // Relaxed: the count guards nothing else. The update is atomic, so two notices at once do not share the last
        // place.
        if self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok() {
            (self.0.tell)(text(notice));
        }
    }
}

/// A line: how far it is, and what the server says of it.
fn text(notice: &ProgressNotificationParam) -> String {
    let mut line = match notice.total {
        Some(total) => format!("{}/{total}", notice.progress),
        None => notice.progress.to_string(),
    };
    if let Some(message) = notice.message.as_deref().filter(|message| !message.is_empty()) {
        line.push(' ');
        line.push_str(cut(message, limits::MCP_NOTICE_BYTES));
    }
    line.push('\n');
    line
}

/// The calls under way on one connection.
#[derive(Clone, Default)]
pub(super) struct Notices {
    /// Calls under way. Of this lock and the next a thread holds one at a time, for one entry or one look-up. Sinks are
    /// called after it is released.
    calls: Arc<Mutex<HashMap<ProgressToken, Sink>>>,
    /// Calls whose end is still of interest. Removing is taking: of an answer and the end of the process one is
    /// reported.
    abandoned: Arc<Mutex<VecDeque<(RequestId, Sink)>>>,
}

impl Notices {
    /// The call is about to be sent.
    pub(super) fn hand_over(&self, token: ProgressToken, sink: &Sink) {
        // Before the call is known and before it is sent: see `was_handed_over`.
        sink.0.handed_over.store(true, Ordering::SeqCst);
        self.lock().insert(token, sink.clone());
    }

    /// The caller no longer waits for the call.
    pub(super) fn forget(&self, token: &ProgressToken) {
        self.lock().remove(token);
    }

    pub(super) fn tell(&self, notice: &ProgressNotificationParam) {
        // Not under the lock: the receiver may run any code, also code that comes back here.
        let sink = self.lock().get(&notice.progress_token).cloned();
        if let Some(sink) = sink {
            sink.tell(notice);
        }
    }

    /// The caller no longer waits for the answer to this request.
    pub(super) fn abandon(&self, id: RequestId, sink: Sink) {
        let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
        if abandoned.len() >= limits::MCP_LATE {
            abandoned.pop_front();
        }
        abandoned.push_back((id, sink));
    }

    /// Something answers this request.
    pub(super) fn answered(&self, id: &RequestId, how: &str) {
        let found = {
            let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
            let place = abandoned.iter().position(|(abandoned, _)| abandoned == id);
            place.and_then(|place| abandoned.remove(place))
        };
        // Not under the lock: the receiver may run any code, also code that comes back here.
        if let Some((_, sink)) = found {
            (sink.0.learn)(Afterwards::Answered(how));
        }
    }

    /// The server's process is gone: what it still worked on is over.
    pub(super) fn gone(&self) {
        let abandoned = std::mem::take(&mut *self.abandoned.lock().unwrap_or_else(PoisonError::into_inner));
        for (_, sink) in abandoned {
            (sink.0.learn)(Afterwards::Gone);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, Sink>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
