//! What can be seen of a run's state.

use super::{Machine, Stage};
use crate::{
    event::ErrorReport,
    history::{History, Tail},
    ids::CallId,
    receipt::{CallReport, ModelReport},
    usage::Usage,
};

impl Machine {
    /// The conversation as it would be handed on now, its open end included.
    pub(crate) fn history_now(&self) -> History {
        let mut history = self.history.clone();
        match &self.stage {
            Stage::Cut(message) => history.leave_open(Tail::Cut { message: (**message).clone() }),
            Stage::Calls(round) => history.leave_open(round.tail()),
            Stage::Ready | Stage::Streaming | Stage::Answered(_) => {}
        }
        history
    }

    /// The closed part, for the next model call.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// The text of the last message, whole or not.
    pub(crate) fn last_text(&self) -> String {
        match &self.stage {
            Stage::Cut(message) | Stage::Answered(message) => message.text(),
            Stage::Calls(round) => round.message().text(),
            Stage::Ready | Stage::Streaming => self.history.last_text().unwrap_or_default(),
        }
    }

    /// Where the run is, for people and histograms.
    pub(crate) fn phase(&self) -> &'static str {
        match &self.stage {
            Stage::Ready if self.model.is_none() => "not yet started",
            Stage::Ready => "between rounds",
            Stage::Streaming | Stage::Cut(_) => "the model was streaming",
            Stage::Calls(_) => "calls were running",
            Stage::Answered(_) => "it was ending",
        }
    }

    pub(crate) fn is_taken(&self, id: &CallId) -> bool {
        self.taken.contains(id)
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
    /// What was used before the last model call.
    pub(crate) fn usage_before(&self) -> &Usage {
        &self.usage_before
    }
    pub(crate) fn model(&self) -> Option<&ModelReport> {
        self.model.as_ref()
    }
    /// The rows of all calls that are over, in the order of the calls.
    pub(crate) fn call_reports(&self) -> Vec<CallReport> {
        let mut all = self.calls.clone();
        if let Stage::Calls(round) = &self.stage {
            all.extend(round.reports().cloned());
        }
        all
    }
    pub(crate) fn failure(&self) -> Option<&ErrorReport> {
        self.failure.as_ref()
    }
}
