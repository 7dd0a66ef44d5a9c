//! Answers that must have a form: taken, or the model is told what does not fit, some times.
//!
//! **Invariants**: what is done here follows from recorded facts and the agent's definition, so it is no fact itself.

use std::sync::Arc;

use super::{Machine, Stage};
use crate::{
    history::Entry,
    message::{AssistantMessage, CallResult, UserMessage},
    outcome::LastWords,
};

impl Machine {
    /// What a whole message without calls leads to: it is in the history already.
    pub(super) fn answered(&mut self, message: &Arc<AssistantMessage>) -> Stage {
        let Some(form) = self.form.clone() else { return Stage::Answered(Arc::clone(message)) };
        if form.found(message).is_some() {
            return Stage::Answered(Arc::clone(message));
        }
        self.history.push(Entry::User(UserMessage::from(form.mend(&message.text()))));
        self.missed();
        Stage::Ready
    }

    /// What a round leads to whose calls are over.
    pub(super) fn after_calls(&mut self, message: &Arc<AssistantMessage>, results: &[CallResult]) -> Stage {
        let Some(form) = self.form.clone() else { return Stage::Ready };
        if form.is_taken(results) {
            return Stage::Answered(Arc::clone(message));
        }
        if results.iter().any(|result| result.name == form.name()) {
            self.missed();
        }
        Stage::Ready
    }

    fn missed(&mut self) {
        self.missed += 1;
        if let Some(error) = self.form.as_ref().and_then(|form| form.refusal(self.missed)) {
            self.fail(error);
        }
    }

    /// The text of an answer: what the answering call was given, where there is one.
    pub(super) fn answer_of(&self, message: &Arc<AssistantMessage>) -> LastWords {
        let found = self.form.as_ref().and_then(|form| form.found(message));
        found.map_or_else(|| LastWords::of(message), LastWords::from)
    }
}
