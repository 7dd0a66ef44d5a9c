//! A command under a scope: its stop is the scope's, with the scope's cap, and climbs faster when more is asked.

use std::time::Duration;

use safepoint::{Stop, stop::Scope};

use super::{CommandReport, Process};

/// How a command's time under a scope was over.
///
/// Exhaustive: it ended, it was stopped, or its own time was up.
#[derive(Debug)]
#[must_use = "a stop must be passed on"]
pub enum Waited {
    /// It ended by itself.
    Ended(CommandReport),
    /// The scope had to end; the tree is gone, or its survivors are named.
    Stopped(CommandReport, Stop),
    /// Its limit passed; the tree is gone, or its survivors are named.
    TimedOut(CommandReport),
}

impl Process {
    /// Waits for the command, stops it when `scope` must end, and when `limit` has passed. The ladder takes no longer
    /// than `cleanup`, nor than the cap of what is asked of the scope, which a later request may make shorter.
    ///
    /// # Cancel safety
    /// Nothing is lost: wait again, or drop the command, which kills it.
    pub async fn wait_in(&mut self, scope: &Scope, limit: Option<Duration>, cleanup: Duration) -> Waited {
        let over = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        // The natural end first: a command that has ended is not stopped. Neither of the others holds anything.
        let stop = tokio::select! {
            biased;
            report = self.wait() => return Waited::Ended(report),
            stop = scope.stopped() => Some(stop),
            () = over => None,
        };
        let report = self.climb_in(scope, cleanup).await;
        match stop {
            Some(stop) => Waited::Stopped(report, stop),
            None => Waited::TimedOut(report),
        }
    }

    /// The same, until `other` resolves: none then, and nothing has happened to the command.
    pub(crate) async fn wait_in_or(
        &mut self,
        scope: &Scope,
        limit: Option<Duration>,
        cleanup: Duration,
        other: impl Future<Output = ()>,
    ) -> Option<Waited> {
        // Giving up the wait loses nothing: who holds the command waits again, or stops it.
        tokio::select! {
            biased;
            waited = self.wait_in(scope, limit, cleanup) => Some(waited),
            () = other => None,
        }
    }

    /// The same for a background job, which is stopped as well when `end` resolves.
    pub(crate) async fn keep_in(
        &mut self,
        scope: &Scope,
        limit: Option<Duration>,
        cleanup: Duration,
        end: impl Future<Output = ()>,
    ) -> CommandReport {
        // Giving up the wait loses nothing: the stop below waits again.
        tokio::select! {
            biased;
            waited = self.wait_in(scope, limit, cleanup) => return match waited {
                Waited::Ended(report) | Waited::Stopped(report, _) | Waited::TimedOut(report) => report,
            },
            () = end => {}
        }
        self.climb_in(scope, cleanup).await
    }

    async fn climb_in(&mut self, scope: &Scope, cleanup: Duration) -> CommandReport {
        let mut seen = scope.demand();
        loop {
            let cap = seen.map_or(cleanup, |demand| demand.cleanup_cap.min(cleanup));
            // A request that strengthens gives the stop up and asks for it again, which only makes it faster.
            tokio::select! {
                biased;
                report = self.stop(cap) => return report,
                demand = scope.changed(seen) => seen = Some(demand),
            }
        }
    }
}
