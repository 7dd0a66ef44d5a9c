//! Whatever ends the driver's task, the run gets an outcome and a report on its quiet.

use std::sync::Arc;

use safepoint_scope::{Actor, Code, Mode, Reason, StopRequest};

use super::Driver;
use crate::{
    run::outcome::Persisted,
    value::{
        event::{EventKind, Fact},
        receipt::{Ending, QuietReport, Receipt},
    },
};

/// The error of an outcome that the driver did not live to record.
const UNRECORDED: &str = "the run's own task ended before it could record its end";

impl Drop for Driver {
    /// Publishes what is missing, if the task was dropped with its runtime, never began, or panicked.
    fn drop(&mut self) {
        let receipt = match self.cx.shared.outcome_now() {
            Some(outcome) => Arc::clone(outcome.receipt()),
            None => self.settle_unrecorded(),
        };
        if !self.cx.shared.is_quiet_published() {
            let survivors = self.cx.shared.alive();
            let quiet = QuietReport::NotQuiet(Arc::new(Receipt { survivors, ..(*receipt).clone() }));
            self.cx.shared.publish_quiet(quiet.clone());
            self.stops.span.settled(&receipt);
            self.stops.span.quiet(&quiet);
        }
    }
}

impl Driver {
    fn settle_unrecorded(&mut self) -> Arc<Receipt> {
        let ending = if std::thread::panicking() {
            self.fail("callback", "the run's own task panicked", None);
            Ending::Failed
        } else {
            if self.cx.scope.demand().is_none_or(|demand| demand.mode != Mode::Now) {
                let reason =
                    Reason::new(Code::SHUTDOWN).with_actor(Actor::Engine).with_text("its runtime has gone");
                self.cx.shared.stop.stop(StopRequest::now().with_reason(reason));
            }
            Ending::Stopped
        };
        let origin = self.tree.parent.is_some().then(|| self.origin());
        self.cx.shared.stop.settle();
        let receipt = Arc::new(self.receipt(ending, Vec::new()));
        let outcome = self.outcome(ending, &receipt, Persisted::No(UNRECORDED.into()));
        let error = self.machine.failure().cloned();
        self.attempt.release();
        let settled = Arc::new(Fact::Settled { receipt: Arc::clone(&receipt), error });
        self.cx.shared.publish(outcome.clone(), EventKind::Fact(settled), None);
        if let Some(origin) = origin {
            self.report_to_parent(&outcome, origin);
        }
        receipt
    }
}
