//! What was asked, as the run notices it: recorded once each, and told in the receipt.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use jiff::Timestamp;
use safepoint_scope::{Demand, Logged, Mode, Scope};

use super::{Broken, Conductor, Seen};
use crate::{
    event::Fact,
    receipt::{ByDeadline, Effected, StopReport},
};

/// Follows what is demanded of a run.
pub(super) struct StopWatch {
    scope: Scope,
    seen: Seen,
    changed: Option<Pin<Box<dyn Future<Output = Demand> + Send>>>,
    /// Requests of several nodes reach a child run, and a wider reach lets older ones through later.
    noticed: Vec<Logged>,
    phase: Option<&'static str>,
    pub(super) observed: Option<Observed>,
    deadline_fired: ByDeadline,
}

/// When and as what a demand took effect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    at: Timestamp,
    mode: Mode,
}

impl StopWatch {
    pub(super) fn new(scope: &Scope) -> Self {
        Self {
            scope: scope.clone(),
            seen: None,
            changed: None,
            noticed: Vec::new(),
            phase: None,
            observed: None,
            deadline_fired: ByDeadline::No,
        }
    }

    pub(super) fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let changed = self.changed.get_or_insert_with(|| Box::pin(self.scope.changed(self.seen)));
        match changed.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(_demand) => {
                self.changed = None;
                Poll::Ready(())
            }
        }
    }
}

impl Conductor {
    /// Records the requests and the escalation that have not been.
    pub(super) async fn notice(&mut self) -> Result<(), Broken> {
        let Some(demand) = self.scope.demand() else { return Ok(()) };
        if self.watch.seen == Some(demand) {
            return Ok(());
        }
        let before = self.watch.seen.replace(demand);
        self.watch.changed = None;
        let phase = self.phase();
        self.watch.phase.get_or_insert(phase);
        let requests = self.scope.requests();
        for logged in &requests {
            if !self.watch.noticed.iter().any(|noticed| is_same(noticed, logged)) {
                self.record(Fact::StopAsked(logged.into())).await?;
                self.watch.noticed.push(logged.clone());
            }
        }
        if let Some(grace) = self.up.as_ref().and_then(|up| up.grace(&self.scope)) {
            self.grace.arm(grace);
        }
        // `Now` that no request asked for is a grace that is over.
        let asked_now = requests.last().is_some_and(|last| last.joined.mode == Mode::Now);
        if demand.mode == Mode::Now && !asked_now && before.is_none_or(|before| before.mode != Mode::Now) {
            self.watch.deadline_fired = ByDeadline::Yes;
            self.record(Fact::StopEscalated).await?;
        }
        Ok(())
    }

    /// Records that a demand took effect, the first time: it ended something, or kept it from beginning.
    pub(super) async fn observe(&mut self, mode: Mode) -> Result<(), Broken> {
        if self.watch.observed.is_some() {
            return Ok(());
        }
        let at = Timestamp::now();
        self.watch.observed = Some(Observed { at, mode });
        self.record(Fact::StopObserved { at }).await?;
        Ok(())
    }

    /// Where the run is, for people and histograms.
    fn phase(&self) -> &'static str {
        if self.waits_for_a_person() { "it waited for a decision" } else { self.machine.phase() }
    }

    /// The stop's account; none if nobody asked.
    pub(super) fn stop_report(&self) -> Option<StopReport> {
        let effected = Effected {
            fired: self.watch.observed.map(|observed| (observed.at, observed.mode)),
            by_deadline: self.watch.deadline_fired,
            phase: self.watch.phase.unwrap_or_else(|| self.phase()),
        };
        StopReport::of(&self.scope.requests(), &effected)
    }
}

fn is_same(one: &Logged, other: &Logged) -> bool {
    (one.seq, one.at, &one.reason) == (other.seq, other.at, &other.reason)
}
