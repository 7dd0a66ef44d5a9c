//! What is known of a call beside its facts: rows that arrive after its end, and the rules' permission to
//! begin.

use super::{ApprovalReuse, CallState, Machine, Stage};
use crate::value::{
    ids::CallId,
    receipt::{CleanupReport, ProcessReport, RemoteReport},
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
        let open = match &mut self.stage {
            Stage::Calls(round) => round.report_mut(id),
            Stage::Ready | Stage::Summarising | Stage::Streaming | Stage::Cut(_) | Stage::Answered(_) => None,
        };
        if let Some(report) = open.or_else(|| self.calls.iter_mut().find(|report| report.call_id == *id)) {
            report.cleanups.extend(cleanups);
            report.processes.extend(processes);
        }
    }

    /// Adds what is known of the remote agent of a call that has ended.
    pub(crate) fn name_remote(&mut self, id: &CallId, remote: RemoteReport) {
        let open = match &mut self.stage {
            Stage::Calls(round) => round.report_mut(id),
            Stage::Ready | Stage::Summarising | Stage::Streaming | Stage::Cut(_) | Stage::Answered(_) => None,
        };
        if let Some(report) = open.or_else(|| self.calls.iter_mut().find(|report| report.call_id == *id)) {
            report.remote = Some(Box::new(remote));
        }
    }

    /// The rules let this call begin. Derived from recorded facts and the agent's definition, so it is not a
    /// fact itself.
    pub(crate) fn clear(&mut self, index: usize, args: serde_json::Value, overlaps: bool) {
        if let Stage::Calls(round) = &mut self.stage {
            round.change(index, |call| {
                let questions = match call.step {
                    CallState::Resuming { questions, .. } => questions,
                    _ => ApprovalReuse::Keep,
                };
                call.step = CallState::Ready { args, questions };
                call.overlaps = overlaps;
            });
        }
    }
}
