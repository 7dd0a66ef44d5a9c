//! How a decision reaches the run that asked: through its mailbox, or left for a run that has yet to be
//! resumed.

use super::{Reply, RunMessage, SharedRun};
use crate::{
    sync::mailbox::Gone,
    value::{approval::Ruled, ids::ApprovalId},
};

/// What became of a decision. Exhaustive: the run has it, will find it, or has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Posted,
    Left,
    Gone,
}

impl SharedRun {
    /// Passes a decision to the run that asked, or leaves it for one that has yet to be resumed.
    pub(crate) fn put_decision(&self, id: &ApprovalId, ruled: Ruled, reply: Reply) -> Put {
        let Err((ruled, reply)) = self.tree.leave_early(id, ruled, reply) else { return Put::Left };
        let mailbox = self.tree.asker(id).unwrap_or_else(|| self.mailbox.clone());
        match mailbox.post(RunMessage::Decided { id: id.clone(), ruled, reply }) {
            Ok(()) => Put::Posted,
            Err(Gone) => Put::Gone,
        }
    }
}
