//! The observable part of a run's state.

use std::sync::Arc;

use super::{Call, CallState, Machine, Round, RunStage, SharedCall};
use crate::{
    run::outcome::LastWords,
    value::{
        approval::ApprovalRequest,
        effect::SideEffect,
        event::ErrorReport,
        history::{History, OpenEnd},
        ids::{ApprovalId, CallId},
        message::AssistantMessage,
        receipt::{CallReport, ModelReport, ProviderToolReport},
        usage::Usage,
    },
};

/// A model call that is announced and has not ended, and its round. Exhaustive: of a round, or the summary before one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncedModel {
    Round(u32),
    Summary(u32),
}

impl Machine {
    /// The model call in progress.
    pub(crate) fn announced_model(&self) -> Option<AnnouncedModel> {
        match &self.stage {
            RunStage::Streaming => Some(AnnouncedModel::Round(self.rounds)),
            RunStage::Summarising => Some(AnnouncedModel::Summary(self.next_round())),
            RunStage::Ready | RunStage::Cut(_) | RunStage::Calls(_) | RunStage::Answered(_) => None,
        }
    }

    /// The conversation as it would be passed on now, including its open end.
    pub(crate) fn history_now(&self) -> History {
        self.with_tail(self.history.clone())
    }

    /// The same conversation of a run that has ended: moved out, since it may be long.
    pub(crate) fn take_history(&mut self) -> History {
        let closed = std::mem::take(&mut self.history);
        self.with_tail(closed)
    }

    /// `closed` with the open end.
    fn with_tail(&self, mut closed: History) -> History {
        match &self.stage {
            RunStage::Cut(message) => closed.leave_open(OpenEnd::Cut { message: Arc::clone(message) }),
            RunStage::Calls(round) => closed.leave_open(round.tail()),
            RunStage::Ready | RunStage::Summarising | RunStage::Streaming | RunStage::Answered(_) => {}
        }
        closed
    }

    /// The closed part, for the next model call.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// The text of the last message, complete or not.
    pub(crate) fn last_words(&self) -> LastWords {
        match &self.stage {
            RunStage::Answered(message) => self.answer_of(message),
            RunStage::Cut(message) => LastWords::of(message),
            RunStage::Calls(round) => LastWords::of(round.message()),
            RunStage::Ready | RunStage::Summarising | RunStage::Streaming => {
                self.history.last_message().map(LastWords::of).unwrap_or_default()
            }
        }
    }

    /// Where the run is, for people and histograms.
    pub(crate) fn phase(&self) -> &'static str {
        match &self.stage {
            RunStage::Ready if self.model.is_none() => "not yet started",
            RunStage::Ready => "between rounds",
            RunStage::Summarising => "its history was being summarised",
            RunStage::Streaming | RunStage::Cut(_) => "the model was streaming",
            RunStage::Calls(_) => "calls were running",
            RunStage::Answered(_) => "it was ending",
        }
    }

    /// The calls of the message, while they are the run's work.
    pub(super) fn round(&self) -> Option<&Round> {
        if let RunStage::Calls(round) = &self.stage { Some(round) } else { None }
    }

    /// The message of which the calls are the run's work.
    pub(crate) fn message(&self) -> Option<&Arc<AssistantMessage>> {
        self.round().map(Round::message)
    }

    pub(crate) fn call(&self, index: usize) -> Option<&Call> {
        self.round()?.call(index)
    }

    pub(crate) fn find(&self, id: &CallId) -> Option<&Call> {
        let round = self.round()?;
        round.call(round.place(id)?)
    }

    pub(crate) fn open_calls(&self) -> Vec<Call> {
        self.round().into_iter().flat_map(Round::open).cloned().collect()
    }

    /// The call of this id, if it runs.
    pub(crate) fn running_call(&self, id: &CallId) -> Option<&SharedCall> {
        self.round()?.running_call(id)
    }

    /// The calls whose runs resume with this one: they wait, or were cut with it.
    pub(crate) fn runs_to_resume(&self) -> impl Iterator<Item = &CallId> {
        self.round().into_iter().flat_map(Round::runs_to_resume).map(|call| &call.call.id)
    }

    /// Open questions of running calls.
    pub(crate) fn live(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.live.iter()
    }

    /// Open questions about calls that wait for the answer before they begin.
    pub(crate) fn questions(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.round().into_iter().flat_map(Round::open).filter_map(|call| match &call.step {
            CallState::AwaitingApproval(asked) => Some(asked),
            _ => None,
        })
    }

    pub(crate) fn asked(&self, id: &ApprovalId) -> Option<Call> {
        self.open_calls()
            .into_iter()
            .find(|call| matches!(&call.step, CallState::AwaitingApproval(request) if request.id == *id))
    }

    pub(crate) fn is_taken(&self, id: &CallId) -> bool {
        self.history.has_call(id) || self.round().is_some_and(|round| round.place(id).is_some())
    }
    pub(crate) fn next_round(&self) -> u32 {
        self.rounds + 1
    }
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }
    /// What all calls of the run, over all attempts, did to the world.
    pub(crate) fn effect(&self) -> SideEffect {
        self.effect
    }
    /// What was used before the last model call.
    pub(crate) fn usage_before(&self) -> &Usage {
        &self.usage_before
    }
    /// What the provider ran itself in this attempt.
    pub(crate) fn provider_tools(&self) -> &[ProviderToolReport] {
        self.provider_tools.as_ref().map_or(&[], |tools| &tools.0)
    }
    /// The calls of this attempt that summarised its history.
    pub(crate) fn summaries(&self) -> &[ModelReport] {
        &self.summaries
    }
    pub(crate) fn model(&self) -> Option<&ModelReport> {
        self.model.as_ref()
    }
    /// The rows of all calls that are over, in the order of the calls.
    pub(crate) fn call_reports(&self) -> Vec<CallReport> {
        let open = self.round().into_iter().flat_map(Round::reports);
        self.calls.iter().map(|report| &**report).chain(open).cloned().collect()
    }
    pub(crate) fn failure(&self) -> Option<&ErrorReport> {
        self.failure.as_ref()
    }
}
