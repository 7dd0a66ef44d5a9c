//! Follows a wrapped run: its stop requests, its end, and what is alive after that. The one place where it
//! settles.

use std::{pin::pin, sync::Arc};

use futures_util::future::{Either, select};
use safepoint_scope::{
    Actor, Code, DEFAULT_CLEANUP_CAP, Demand, FiredBy, LoggedRequest, Mode, Reason, StopRequest,
};
use tokio::time::{Instant, timeout_at};

use super::{report, state::WrappedRun};
use crate::sync::clock;
use crate::value::{
    event::{EventKind, Fact},
    limits::after,
    receipt::{QuietReport, Receipt, StopSupport},
};

/// The watcher of one wrapped run. Whatever ends it, the run has an outcome and a report on its quiet.
pub(super) struct Watcher {
    cell: Arc<WrappedRun>,
    noticed: Vec<LoggedRequest>,
    /// Whether the end of a grace was shown.
    is_escalation_shown: bool,
}

impl Watcher {
    pub(super) fn new(cell: Arc<WrappedRun>) -> Self {
        Self { cell, noticed: Vec::new(), is_escalation_shown: false }
    }

    pub(super) async fn run(mut self) {
        if self.must_end().await {
            self.cell.deliver();
            match self.cell.spec.grade {
                _ if !self.cell.has_begun() => {}
                StopSupport::Hard => self.torn_down().await,
                StopSupport::CallerSide => {}
                StopSupport::None => self.cell.over().await,
            }
        }
        self.notice();
        self.settle();
        self.quieten().await;
    }

    /// For work that is over: the run is settled and quiet when this returns.
    pub(super) fn close(mut self) {
        self.settle();
        self.be_quiet(true);
    }

    /// Waits for the end of the work, or for `Now`; returns whether `Now` came first.
    async fn must_end(&mut self) -> bool {
        let cell = Arc::clone(&self.cell);
        let mut over = pin!(cell.over());
        let mut seen: Option<Demand> = None;
        loop {
            let changed = pin!(cell.shared().scope.changed(seen));
            // The end of the work is polled first: work that ended before `Now` is not reported as cut. `changed` gets the
            // demand seen last, so no change between two rounds is missed.
            match select(over.as_mut(), changed).await {
                Either::Left(_over) => return false,
                Either::Right((demand, _)) => {
                    seen = Some(demand);
                    self.notice();
                    if demand.mode == Mode::Now {
                        cell.observe(None);
                        return true;
                    }
                }
            }
        }
    }

    /// Shows stop requests that have not been shown.
    fn notice(&mut self) {
        let requests = self.cell.shared().scope.requests();
        for logged in &requests[self.noticed.len().min(requests.len())..] {
            self.cell.show(Fact::StopRequested(logged.into()));
        }
        let fired = self.cell.shared().scope.fired();
        if fired.is_some_and(|fired| fired.by == FiredBy::Deadline) && !self.is_escalation_shown {
            self.is_escalation_shown = true;
            self.cell.show(Fact::StopEscalated);
        }
        self.noticed = requests;
    }

    /// Waits until the work has ended, for as long as the stop allows.
    async fn torn_down(&mut self) {
        let began = Instant::now();
        let cell = Arc::clone(&self.cell);
        let scope = &cell.shared().scope;
        let mut over = pin!(cell.over());
        let mut seen = scope.demand();
        loop {
            let cap = seen.map_or(DEFAULT_CLEANUP_CAP, |demand| demand.cleanup_cap);
            let changed = pin!(scope.changed(seen));
            // A stronger demand only shortens the wait; the end of the work is polled before it and before the timeout.
            match timeout_at(after(began, cap), select(over.as_mut(), changed)).await {
                Ok(Either::Right((demand, _))) => seen = Some(demand),
                Ok(Either::Left(_)) | Err(_) => return,
            }
        }
    }

    fn settle(&mut self) {
        let cell = &self.cell;
        cell.shared().stop.settle();
        let Some(account) = cell.settle(|state| report::of(cell, state)) else { return };
        if let Some(at) = account.receipt.stop.as_ref().and_then(|stop| stop.observed_at) {
            cell.show(Fact::StopObserved { at });
        }
        account.facts().for_each(|fact| cell.show(fact));
        let settled = Fact::Settled { receipt: Arc::clone(&account.receipt), error: account.error.clone() };
        cell.shared().publish(account.into_outcome(), EventKind::Fact(Arc::new(settled)), None);
    }

    /// Waits until the work is over and nothing of it is alive, or names what is.
    async fn quieten(&mut self) {
        let shared = Arc::clone(self.cell.shared());
        let cap = shared.scope.demand().map_or(DEFAULT_CLEANUP_CAP, |demand| demand.cleanup_cap);
        let deadline = after(Instant::now(), cap.saturating_add(self.cell.limits.quiet_timeout));
        let is_quiet = timeout_at(deadline, shared.stop.quiet()).await.is_ok();
        self.be_quiet(is_quiet);
    }

    fn be_quiet(&mut self, is_quiet: bool) {
        let shared = self.cell.shared();
        let Some(outcome) = shared.outcome_now() else { return };
        let mut last = Receipt::clone(outcome.receipt());
        let mut audit = shared.audit.read(0);
        while let Some(event) = audit.now() {
            if let EventKind::Late(what) = event.kind {
                last.late.push(what);
            }
        }
        let quiet = if is_quiet {
            last.quiet_at = Some(clock::now());
            QuietReport::Quiet(Arc::new(last))
        } else {
            last.survivors = shared.alive();
            QuietReport::NotQuiet(Arc::new(last))
        };
        shared.publish_quiet(quiet);
    }
}

impl Drop for Watcher {
    /// Its runtime is gone: publishes what is missing.
    fn drop(&mut self) {
        let shared = Arc::clone(self.cell.shared());
        if shared.outcome_now().is_none() {
            let reason =
                Reason::new(Code::SHUTDOWN).with_actor(Actor::Engine).with_text("its runtime has gone");
            shared.stop.stop(StopRequest::now().with_reason(reason));
            self.cell.observe(None);
            self.settle();
        }
        if !shared.is_quiet_published() {
            self.be_quiet(false);
        }
    }
}
