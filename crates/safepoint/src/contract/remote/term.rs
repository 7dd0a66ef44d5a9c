//! How long a remote agent has to end its work: its own time, or the grace of the stop if that is longer
//! (S10.64).

use std::time::Duration;

use safepoint_scope::{Fired, FiredBy, Mode, Scope};
use tokio::time::{Instant, timeout_at};

use crate::value::limits::after;

/// The share of its time that is left to a remote agent when a stop with `Now` is requested: one part in
/// `HASTE`.
const HASTE: u32 = 2;

/// The time of a remote agent that was asked to stop, under the current demand: a stronger request makes it
/// shorter.
#[derive(Clone, Debug)]
pub struct Term {
    scope: Scope,
    asked: Instant,
    within: Duration,
}

impl Term {
    /// Starts now, under the demand on `scope`; `within` is the agent's own time.
    #[must_use]
    pub fn begin(scope: &Scope, within: Duration) -> Self {
        Self { scope: scope.clone(), asked: Instant::now(), within }
    }

    /// When the stop was requested.
    #[must_use]
    pub fn asked(&self) -> Instant {
        self.asked
    }

    /// When the time is over, under the current demand. `None`: the stop has no grace, and waits.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        let own = after(self.asked, self.within);
        let Some(demand) = self.scope.demand() else { return Some(own) };
        if let Mode::At(_) = demand.mode {
            return demand.deadline.map(|grace| grace.max(own));
        }
        Some(match self.scope.fired() {
            Some(Fired { by: FiredBy::Request, request }) if request.at > self.asked => {
                own.max(after(request.at, self.within / HASTE))
            }
            Some(Fired { by: FiredBy::Deadline, request }) => {
                own.max(request.demand.deadline.unwrap_or(request.at))
            }
            Some(_) | None => own,
        })
    }

    /// Like [`until`](Self::until), for an agent that this side can end: no longer than the clean-up may take
    /// (S1.1).
    #[must_use]
    pub fn until_cleaned(&self) -> Option<Instant> {
        let until = self.until()?;
        let now = self.scope.demand().filter(|demand| demand.mode == Mode::Now);
        let since = self
            .scope
            .fired()
            .map_or(self.asked, |fired| fired.request.demand.deadline.unwrap_or(fired.request.at));
        Some(now.map_or(until, |now| until.min(after(since.max(self.asked), now.cleanup_cap))))
    }

    /// The whole time.
    #[must_use]
    pub fn in_all(&self) -> Option<Duration> {
        self.until().map(|until| until.saturating_duration_since(self.asked))
    }

    /// Resolves when it is over.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn over(&self) {
        loop {
            let changed = self.scope.changed(self.scope.demand());
            match self.until() {
                Some(until) => match timeout_at(until, changed).await {
                    Ok(_harder) => {}
                    Err(_elapsed) => return,
                },
                None => drop(changed.await),
            }
        }
    }
}
