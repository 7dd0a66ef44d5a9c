//! Whether a demand on a run reaches the remote agent that does its work. Such an agent has no safe point to
//! wait for, so a stop that would wait for one is sent to it at once (S10.64).

use safepoint_scope::{Demand, Mode, Reach, Scope};

/// Waits until the work of a remote agent must end. If it is the whole run, every demand on the run reaches
/// it. If it is one call, like a child run, a safe point is demanded of it only by what reaches the whole
/// tree (S9.2).
///
/// # Cancel safety
/// Nothing is lost.
pub(super) async fn reached(is_whole_run: bool, scope: &Scope) {
    let is_reached = |demand: Demand| is_whole_run || demand.mode == Mode::Now || demand.reach == Reach::Tree;
    let mut demand = scope.demand();
    while !demand.is_some_and(is_reached) {
        demand = Some(scope.changed(demand).await);
    }
}
