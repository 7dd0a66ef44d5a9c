//! Whether what is asked of a run reaches the remote agent that does its work: such an agent has no safe point of ours to
//! wait for, so a stop that would wait for one is told to it at once (S10.64).

use safepoint_scope::{Demand, Mode, Reach, Scope};

/// How a remote agent hangs on its run. Exhaustive: it is all of it, or one call of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// The run is its work: whatever is asked of the run is asked of it.
    Alone,
    /// It does a call of the run, like a child run: a safe point is asked of it only by what reaches the whole tree (S9.2).
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

    /// Waits until its work is to end.
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
