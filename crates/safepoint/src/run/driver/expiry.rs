//! Questions that have expired without an answer.

use super::{Driver, LogFailure};
use crate::{
    run::{machine::CallState, shared::Closing},
    sync::clock,
    value::{ids::ApprovalId, receipt::CallStatus},
};

impl Driver {
    /// Ends the call that the question is about.
    pub(super) async fn expire(&mut self, id: &ApprovalId) -> Result<(), LogFailure> {
        if self.decide_live(id, Closing::Expired).await?.is_some() {
            return Ok(());
        }
        let Some(call) = self.machine.asked(id) else { return Ok(()) };
        self.close(id, &call.call.id, Closing::Expired).await?;
        self.end_unrun(&call.call, CallStatus::Expired, String::new()).await
    }

    /// Ends the calls whose questions expired while no driver was running, and returns those questions.
    pub(super) async fn expire_overdue(&mut self) -> Result<Vec<ApprovalId>, LogFailure> {
        let now = clock::now();
        let open = self.machine.open_calls().into_iter();
        let overdue: Vec<ApprovalId> = open
            .filter_map(|call| match call.step {
                CallState::AwaitingApproval(request) => (request.expires_at <= now).then_some(request.id),
                _ => None,
            })
            .collect();
        for id in &overdue {
            self.expire(id).await?;
        }
        Ok(overdue)
    }
}
