//! Whether a demand on a run reaches the remote agent that does its work. Such an agent has no safe point to
//! wait for, so a stop that would wait for one is sent to it at once (S10.64).

use safepoint_scope::{Demand, Mode, Reach, Scope};

/// The relation of a remote agent to its run. Exhaustive: it is all of it, or one call of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// The run is its work: every demand on the run reaches it.
    Alone,
    /// It does a call of the run, like a child run: a safe point is demanded of it only by what reaches the
    /// whole tree (S9.2).
    AsTool,
}

impl Stands {
    fn is_reached_by(self, demand: &Demand) -> bool {
        match (self, demand.mode, demand.reach) {
            (_, Mode::Now, _) | (Self::Alone, Mode::At(_), _) | (Self::AsTool, Mode::At(_), Reach::Tree) => {
                true
            }
            (Self::AsTool, Mode::At(_), Reach::Root) => false,
        }
    }

    /// Waits until its work must end.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn reached(self, scope: &Scope) {
        let mut demand = scope.demand();
        while !demand.is_some_and(|demand| self.is_reached_by(&demand)) {
            demand = Some(scope.changed(demand).await);
        }
    }
}
