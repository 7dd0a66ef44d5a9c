//! Rows that come when a call is over: for the receipt alone.

use super::{Machine, Stage};
use crate::{
    ids::CallId,
    receipt::{CleanupReport, ProcessReport},
};

impl Machine {
    /// Rows that came after a call's end was recorded: for the receipt, they change nothing else.
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
}
