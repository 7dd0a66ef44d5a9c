//! What is known of a call beside its facts: rows that arrive after its end, and the rules' permission to
//! begin.

use std::sync::Arc;

use super::{CallState, Machine, RunStage};
use crate::value::{
    ids::CallId,
    receipt::{CallReport, CleanupReport, ProcessReport, RemoteReport},
};

impl Machine {
    /// Adds rows that arrived after a call's end was recorded. They go into the receipt and change nothing
    /// else.
    pub(crate) fn add_rows(
        &mut self,
        id: &CallId,
        cleanups: Vec<CleanupReport>,
        processes: Vec<ProcessReport>,
    ) {
        if let Some(report) = self.report_mut(id) {
            report.cleanups.extend(cleanups);
            report.processes.extend(processes);
        }
    }

    fn report_mut(&mut self, id: &CallId) -> Option<&mut CallReport> {
        let open = if let RunStage::Calls(round) = &mut self.stage { round.report_mut(id) } else { None };
        open.or_else(|| self.calls.iter_mut().find(|report| report.call_id == *id).map(Arc::make_mut))
    }

    /// Adds what is known of the remote agent of a call that has ended.
    pub(crate) fn name_remote(&mut self, id: &CallId, remote: RemoteReport) {
        if let Some(report) = self.report_mut(id) {
            report.remote = Some(Box::new(remote));
        }
    }

    /// The rules let this call begin. Derived from recorded facts and the agent's definition, so it is not a
    /// fact itself.
    pub(crate) fn clear(&mut self, index: usize, args: Arc<serde_json::Value>, overlaps: bool) {
        if let RunStage::Calls(round) = &mut self.stage {
            round.change(index, |call| {
                let asks_again = matches!(call.step, CallState::Resuming { asks_again: true, .. });
                call.step = CallState::Ready { args, asks_again };
                call.overlaps = overlaps;
            });
        }
    }
}
