//! What a run does not do while nothing keeps a copy of it from doing the same (S7.19).

use super::{Driver, LogFailure};
use crate::{
    run::machine::CallState,
    value::{effect::EffectClass, history::note, message::ToolCall, receipt::CallKind},
};

impl Driver {
    /// Whether this call would harm if a copy of the run made it too, and nothing keeps one from it. The calls of a run below
    /// are looked at there.
    pub(super) fn only_a_claim_allows(&self, call: &ToolCall) -> bool {
        let Some(work) = self.cx.def.tools.get(&call.name) else { return false };
        let is_repeatable = matches!(work.spec().effect, EffectClass::ReadOnly | EffectClass::Idempotent);
        self.cx.shared.tree.is_of_a_copy() && work.kind() == CallKind::Tool && !is_repeatable
    }

    /// Refuses the calls that a person approved before this attempt: the approval is good for one copy.
    pub(super) async fn refuse_copied_approvals(&mut self) -> Result<(), LogFailure> {
        if !self.cx.shared.tree.is_of_a_copy() {
            return Ok(());
        }
        for call in self.machine.open_calls() {
            if matches!(call.step, CallState::Approved(_)) {
                self.deny(&call.call, note::NOT_CLAIMED.into()).await?;
            }
        }
        Ok(())
    }
}
