//! A request that its provider refuses as too long (S12.11).

use super::{
    super::{Driver, LogFailure, model_errors},
    ModelCall,
};
use crate::{
    contract::model::{ModelError, ModelErrorKind},
    definition::window::WindowMeter,
    value::{
        event::{Completion, ErrorReport, Fact},
        receipt::ModelState,
    },
};

impl Driver {
    /// Whether the call is made once more, shorter: its request was refused as too long before anything of a reply came,
    /// and there is a policy for that which was not applied to this request yet (S12.11).
    pub(super) fn may_shorten(&self, error: &ModelError, streaming: &ModelCall) -> bool {
        let has_policy = self.cx.def.meter.as_ref().is_some_and(WindowMeter::may_shorten);
        error.kind() == ModelErrorKind::ContextWindow
            && has_policy
            && streaming.summary.is_none()
            && !self.machine.was_too_long()
            && self.machine.failure().is_none()
            && streaming.draft.lock().draft.is_empty()
    }

    /// Records that the request was too long. The machine applies the policy next, and repeats the call.
    pub(super) async fn retry_shorter(
        &mut self,
        streaming: &mut ModelCall,
        error: &ModelError,
    ) -> Result<(), LogFailure> {
        let (_, report) = self.take_message(streaming, ModelState::Closed);
        self.hooks.ask_about_request_again();
        streaming.end_span(&Completion::Failed(model_errors::report(error)), &report);
        self.record(Fact::ModelTooLong { report, error: model_errors::report(error) }).await?;
        Ok(())
    }

    /// How the failure of a call is reported.
    pub(super) fn failed(&self, error: &ModelError) -> ErrorReport {
        match (error.kind(), self.cx.def.meter.is_some()) {
            (ModelErrorKind::ContextWindow, has_window) => model_errors::does_not_fit(error, has_window),
            _ => model_errors::report(error),
        }
    }
}
