//! What the end of a model's message does. Answers that must have a form are taken, or the model is told what does not fit,
//! some times.
//!
//! **Invariants**: what is done here follows from recorded facts and the agent's definition, so it is no fact itself.

use std::sync::Arc;

use super::{Machine, Round, Stage};
use crate::{
    run::outcome::LastWords,
    value::{
        event::Wholeness,
        history::{Entry, note},
        message::{AssistantMessage, CallResult, UserMessage},
        receipt::ModelReport,
        usage::UsageSource,
    },
};

impl Machine {
    pub(super) fn model_ended(
        &mut self,
        message: &Arc<AssistantMessage>,
        whole: &Wholeness,
        report: &ModelReport,
    ) {
        self.usage_before = self.usage.clone();
        self.usage.add(&report.usage);
        self.spent.model_ended(whole, report);
        if *whole == Wholeness::Whole && report.usage.source == UsageSource::Exact {
            self.history.measure(report.usage.input);
        }
        // A whole message of which nothing was sent is no model's: an agent that is a remote one decided it by itself.
        self.model = (*whole != Wholeness::Whole || report.was_sent()).then(|| report.clone());
        self.stage = match whole {
            Wholeness::Cut => Stage::Cut(Arc::clone(message)),
            Wholeness::Steered => {
                self.taken.extend(message.calls().map(|call| call.id.clone()));
                self.history.close_cut(Arc::clone(message), note::OVERTAKEN);
                Stage::Ready
            }
            Wholeness::Failed(error) => {
                self.failure = Some(error.clone());
                Stage::Cut(Arc::clone(message))
            }
            Wholeness::Whole if message.calls().next().is_none() => {
                if !message.is_blank() {
                    self.history.push(Entry::Assistant(Arc::clone(message)));
                }
                self.answered(message)
            }
            Wholeness::Whole => {
                self.taken.extend(message.calls().map(|call| call.id.clone()));
                Stage::Calls(Round::new(Arc::clone(message), report.calls_left_out))
            }
        };
    }

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
