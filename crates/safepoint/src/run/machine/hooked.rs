//! What hooks do to a run, and what a provider's refusal of a long request does to it.

use std::sync::Arc;

use super::{CallState, Machine, RequestLength, RunStage};
use crate::value::{
    event::HookAction,
    history::{Message, Omission},
    message::AssistantMessage,
    receipt::ModelReport,
};

impl Machine {
    pub(super) fn hook_acted(&mut self, action: &HookAction) {
        match action {
            HookAction::RequestChanged { .. } => self.request.is_changed = true,
            HookAction::RunAnswered { text, .. } => self.answered_by_hook(text),
            HookAction::ArgsChanged { call_id, args, .. } => self.change(call_id, |call| {
                call.changed = Some(Arc::clone(args));
                call.revoke();
                call.step = CallState::Requested;
            }),
            // The end of the call, or of the message, says what came of it.
            HookAction::TextChanged { .. }
            | HookAction::CallRefused { .. }
            | HookAction::CallAnswered { .. }
            | HookAction::ResultChanged { .. }
            | HookAction::ResultWithheld { .. } => {}
        }
    }

    /// A hook has answered in the model's place.
    fn answered_by_hook(&mut self, text: &str) {
        if !matches!(self.stage, RunStage::Ready) {
            return;
        }
        let message = Arc::new(AssistantMessage::of_text(text));
        if !message.is_blank() {
            self.history.push(Message::Assistant(Arc::clone(&message)));
        }
        self.stage = self.answered(&message);
    }

    /// The provider has refused the request. The call is no round: it is made once more.
    pub(super) fn model_too_long(&mut self, report: &ModelReport) {
        self.usage_before = self.usage.clone();
        self.usage.add(&report.usage);
        self.rounds = report.round.saturating_sub(1);
        self.request.is_changed = false;
        self.request.length = RequestLength::Refused;
        self.stage = RunStage::Ready;
    }

    /// Less is sent from here on.
    pub(super) fn shorten(&mut self, shortened: &Omission) {
        self.history.shorten(shortened);
        if self.request.length == RequestLength::Refused {
            self.request.length = RequestLength::Shortened;
        }
    }

    /// Whether the next request must be shortened, because the provider has refused it.
    pub(super) fn is_too_long(&self) -> bool {
        self.request.length == RequestLength::Refused
    }

    /// Whether the provider has refused the request of this round already.
    pub(crate) fn was_too_long(&self) -> bool {
        self.request.length != RequestLength::Unknown
    }
}
