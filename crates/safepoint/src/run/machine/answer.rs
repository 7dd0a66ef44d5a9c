//! What the end of a model's message does. An answer that must match a schema is accepted, or the model
//! learns what does not fit, a limited number of times.
//!
//! **Invariants**: what is done here follows from recorded facts and the agent's definition, so it is not a
//! fact itself.

use std::sync::Arc;

use super::{Machine, Round, RunStage};
use crate::{
    run::outcome::LastWords,
    value::{
        event::Completion,
        history::{Message, Omission, note},
        message::{AssistantMessage, CallResult, UserMessage},
        receipt::{ModelReport, ProviderToolReport},
        usage::UsageSource,
    },
};

impl Machine {
    pub(super) fn summary_ended(
        &mut self,
        whole: &Completion,
        report: &ModelReport,
        shortened: Option<&Omission>,
    ) {
        self.usage.add(&report.usage);
        self.summaries.push(report.clone());
        self.request.is_changed = false;
        self.stage = RunStage::Ready;
        match (shortened, whole) {
            (Some(shortened), _) => self.shorten(shortened),
            (None, Completion::Failed(error)) => self.fail(error.clone()),
            (None, Completion::Complete | Completion::Stopped | Completion::Steered) => {}
        }
    }

    pub(super) fn model_ended(
        &mut self,
        message: &Arc<AssistantMessage>,
        whole: &Completion,
        report: &ModelReport,
    ) {
        if message.provider_blocks().next().is_some() {
            let tools = self.provider_tools.get_or_insert_default();
            ProviderToolReport::count(&mut tools.0, message);
        }
        self.usage_before = self.usage.clone();
        self.usage.add(&report.usage);
        self.spent.model_ended(whole, report);
        let request = std::mem::take(&mut self.request);
        if *whole == Completion::Complete && report.usage.source == UsageSource::Exact && !request.is_changed
        {
            self.history.measure(report.usage.input);
        }
        // A complete message without a sent request came from no model: a remote agent's run decided it.
        self.model = (*whole != Completion::Complete || report.was_sent()).then(|| report.clone());
        self.stage = match whole {
            Completion::Stopped => RunStage::Cut(Arc::clone(message)),
            Completion::Steered => {
                self.history.close_cut(Arc::clone(message), note::OVERTAKEN);
                RunStage::Ready
            }
            Completion::Failed(error) => {
                self.failure = Some(error.clone());
                RunStage::Cut(Arc::clone(message))
            }
            Completion::Complete if message.calls().next().is_none() => {
                if !message.is_blank() {
                    self.history.push(Message::Assistant(Arc::clone(message)));
                }
                self.answered(message)
            }
            Completion::Complete => RunStage::Calls(Round::new(Arc::clone(message), report.calls_left_out)),
        };
    }

    /// What follows a complete message without calls; the message is in the history already.
    pub(super) fn answered(&mut self, message: &Arc<AssistantMessage>) -> RunStage {
        let Some(form) = self.form.clone() else { return RunStage::Answered(Arc::clone(message)) };
        if form.found(message).is_some() {
            return RunStage::Answered(Arc::clone(message));
        }
        self.history.push(Message::User(UserMessage::from(form.correction(&message.text()))));
        self.missed();
        RunStage::Ready
    }

    /// What follows a round whose calls are over.
    pub(super) fn after_calls(
        &mut self,
        message: &Arc<AssistantMessage>,
        results: &[CallResult],
    ) -> RunStage {
        let Some(form) = self.form.clone() else { return RunStage::Ready };
        if form.is_taken(results) {
            return RunStage::Answered(Arc::clone(message));
        }
        if results.iter().any(|result| result.name == form.name()) {
            self.missed();
        }
        RunStage::Ready
    }

    fn missed(&mut self) {
        self.missed += 1;
        if let Some(error) = self.form.as_ref().and_then(|form| form.refusal(self.missed)) {
            self.fail(error);
        }
    }

    /// The text of an answer: the arguments of the answering call, if there is one.
    pub(super) fn answer_of(&self, message: &Arc<AssistantMessage>) -> LastWords {
        let found = self.form.as_ref().and_then(|form| form.found(message));
        found.map_or_else(|| LastWords::of(message), LastWords::from)
    }
}
