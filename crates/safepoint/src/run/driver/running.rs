//! Calls that run: each in its task, and where its body must end or has a time limit, with a watch over it.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use safepoint_scope::{DropHandle, Label, Permit};
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{Driver, grace::Grace};
use crate::{
    contract::tool::ToolContext,
    run::{
        executor::{self, AT_ONCE, CallEnd, Mail, RunCall, RunningCall},
        shared::{RunMessage, SharedRun},
    },
    value::{ids::CallId, receipt::CleanupReport},
};

/// How the task of a call, and its watch, reach the run.
pub(super) struct CallMail {
    shared: Arc<SharedRun>,
    call_id: CallId,
}

impl CallMail {
    pub(super) fn new(shared: &Arc<SharedRun>, call_id: &CallId) -> Self {
        Self { shared: Arc::clone(shared), call_id: call_id.clone() }
    }
}

impl Mail for CallMail {
    fn ended(&self, ending: Box<CallEnd>) {
        self.shared.post(RunMessage::CallEnded { call_id: self.call_id.clone(), ending });
    }

    fn cleaned(&self, cleanups: Vec<CleanupReport>) {
        let call_id = self.call_id.clone();
        self.shared.post(RunMessage::Cleaned { call_id, cleanups, processes: Vec::new() });
    }

    fn late(&self, what: String) {
        self.shared.post(RunMessage::Late { call_id: self.call_id.clone(), what });
    }
}

/// A call that runs, and what drops the watch over it.
pub(super) struct WatchableCall {
    call: Arc<RunningCall<CallMail>>,
    watch: Option<DropHandle>,
}

impl WatchableCall {
    fn new(call: Arc<RunningCall<CallMail>>) -> Self {
        Self { call, watch: None }
    }

    /// Begins the watch, if there is none. A stop is known `since` then, where it is known already.
    fn watch(&mut self, since: Option<Instant>) {
        self.watch.get_or_insert_with(|| {
            let label = Label::of("call ", self.call.mail.call_id.shared());
            self.call.run.spawn(label, executor::watch(Arc::clone(&self.call), since)).dropper()
        });
    }

    /// Whether it must end and is not watched yet.
    fn is_unwatched(&self) -> bool {
        self.watch.is_none() && self.call.scope.is_stopping()
    }
}

impl Drop for WatchableCall {
    /// The call is over for the run: nothing is left to watch.
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.drop_now();
        }
    }
}

/// When calls that a stop of the run must end are watched: not before their tasks have had their time to end them, since nearly
/// all do so at once.
#[derive(Default)]
pub(super) struct WatchTimer(Grace);

impl WatchTimer {
    /// Ready once, when the watches are due.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll(cx)
    }
}

impl Driver {
    /// Spends the permit: from here on the call runs, until its end arrives as a message.
    pub(super) fn run_call(
        &mut self,
        permit: Permit<RunCall>,
        call: Arc<RunningCall<CallMail>>,
        given: (ToolContext, Value),
    ) {
        let label = Label::of("tool ", self.cx.def.tools.name(given.0.name()));
        let (id, span) = (call.mail.call_id.clone(), call.span.clone());
        let mut running = WatchableCall::new(Arc::clone(&call));
        // A request that waits may become one that ends the call while the body blocks its thread.
        if call.limit().is_some() || call.scope.demand().is_some() {
            running.watch(None);
        }
        drop(self.cx.scope.spawn(label, executor::perform(permit, call, given).instrument(span)));
        self.calls.begins(id, running);
    }

    /// Watches the calls that a stop of the run, or its failure, must end. The driver is woken by both.
    pub(super) fn watch_ending_calls(&mut self) {
        if matches!(self.queue.watches.0, Grace::Unasked) {
            let are_due = self.calls.running().any(|running| running.is_unwatched());
            if are_due {
                self.queue.watches.0.arm(AT_ONCE);
            }
        }
    }

    /// Watches each call that must end and has not, of which the tasks know that `since` then.
    pub(super) fn watch_since(&mut self, since: Option<Instant>) {
        self.queue.watches = WatchTimer::default();
        self.calls
            .running()
            .filter(|running| running.is_unwatched())
            .for_each(|running| running.watch(since));
    }

    /// Watches each call that a stop of the run must end, and of which the time to do so itself is over.
    pub(super) fn watch_overdue(&mut self) {
        self.watch_since(Instant::now().checked_sub(AT_ONCE));
    }

    /// Watches each call of which a stop was requested, at whatever time it takes effect.
    pub(super) fn watch_asked_calls(&mut self) {
        for running in self.calls.running().filter(|running| running.call.scope.demand().is_some()) {
            running.watch(None);
        }
    }
}
