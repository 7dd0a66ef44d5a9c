//! How a decision reaches the run that asked: through its mailbox, or left for a run that has yet to be
//! resumed.

use super::{DecideError, Reply, RunMessage, SharedRun};
use crate::value::{approval::Ruled, ids::ApprovalId};

impl SharedRun {
    /// Passes a decision to the run that asked, or leaves it for one that has yet to be resumed. Returns
    /// whether the run has it already.
    ///
    /// # Errors
    /// The run has ended.
    pub(crate) fn put_decision(
        &self,
        id: &ApprovalId,
        ruled: Ruled,
        reply: Reply,
    ) -> Result<bool, DecideError> {
        let Err((ruled, reply)) = self.tree.leave_early(id, ruled, reply) else { return Ok(false) };
        let mailbox = self.tree.asker(id).unwrap_or_else(|| self.mailbox.clone());
        let is_posted = mailbox.post(RunMessage::Decided { id: id.clone(), ruled, reply });
        if is_posted { Ok(true) } else { Err(DecideError::RunEnded) }
    }
}
