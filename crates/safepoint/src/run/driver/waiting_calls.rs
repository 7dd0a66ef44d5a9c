//! A run at rest under a stop. If all that runs waits for a person without an approver here, the run is at a
//! safe point of every set (S2.17), and its stop ends what waits.

use safepoint_scope::{Demand, Mode, StopRequest};

use super::Driver;
use crate::{
    run::executor::CallEnd,
    value::{ids::CallId, receipt::StopSource},
};

impl Driver {
    /// Ends the calls that only wait, by the run's stop, if nothing else of the run is active. The only step
    /// due here is to wait.
    pub(super) fn end_waiting_calls(&mut self) {
        if self.cx.scope.demand().is_none() {
            return;
        }
        let waiting = self.approvals.mid_call.unattended(&self.machine);
        if waiting.is_empty() || !self.machine.is_resting(self.tree.children.parked() + waiting.len()) {
            return;
        }
        for site in waiting.iter().filter_map(|call| self.calls.get(call)) {
            if let Some(reason) = self.cx.scope.reason().filter(|_| !site.scope.is_stopping()) {
                site.board.end_with_the_run();
                site.stop.stop(StopRequest::now().with_reason(reason));
            }
        }
    }

    /// One of them has ended: the run is at a boundary that the demand names.
    pub(super) fn note_waiting_end(&mut self, id: &CallId, ending: &CallEnd) {
        let with_the_run = self.calls.get(id).is_some_and(|site| site.board.ends_with_the_run());
        if let Some(Demand { mode: Mode::At(points), .. }) = self.cx.scope.demand()
            && with_the_run
            && ending.stopped_by == Some(StopSource::Run)
        {
            self.stops.closed_at(Some(points));
        }
    }
}
