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

    /// Passes on a decision that came before this run had read what earlier attempts asked: the run below that asked has it
    /// then, or finds it. One about no question of another run is returned.
    pub(crate) fn pass_decision(
        &self,
        id: &ApprovalId,
        ruled: Ruled,
        reply: Reply,
    ) -> Result<(), (Ruled, Reply)> {
        let (ruled, reply) = match self.tree.leave_early(id, ruled, reply) {
            Err(returned) => returned,
            Ok(()) => return Ok(()),
        };
        let Some(mailbox) = self.tree.asker_beside(id, &self.path) else { return Err((ruled, reply)) };
        if !mailbox.post(RunMessage::Decided { id: id.clone(), ruled, reply }) {
            // That run has ended. With its message the reply is dropped, which says so.
        }
        Ok(())
    }
}
