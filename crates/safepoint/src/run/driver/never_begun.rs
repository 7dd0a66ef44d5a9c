//! What was announced and never began, since foreign code panicked or the log broke between the record of a start and what begins
//! by it. It is reported as not started, and after a panic it is ended as that: nothing waits for it.

use std::sync::Arc;

use super::{Driver, LogFailure, calls::run_failed, parent::ChildStart, start_calls::entry_of};
use crate::{
    run::{
        executor::CallEnd,
        machine::{AnnouncedModel, Call, CallState},
    },
    sync::clock,
    value::{
        event::{Completion, Fact},
        message::AssistantMessage,
        receipt::{Ending, ModelReport, ModelState, StopSource},
        usage::Usage,
    },
};

impl Driver {
    /// Steps on after a panic in foreign code, for which the run fails.
    pub(super) async fn step_after_panic(&mut self) -> Result<Ending, LogFailure> {
        self.end_model_never_begun().await?;
        let open = self.machine.open_calls();
        let never = open.into_iter().filter(|call| self.has_never_begun(call));
        let ended = never.map(|call| (self.never_begun(&call), call.call, Vec::new()));
        let ended = ended.map(|(ending, call, asked)| (call, ending, asked)).collect();
        self.end_unbegun(ended).await?;
        self.step_until_settled().await
    }

    /// Whether the start of the call is recorded, and nothing of it has begun since.
    pub(super) fn has_never_begun(&self, call: &Call) -> bool {
        matches!(call.step, CallState::Running)
            && self.calls.get(&call.call.id).is_some_and(|site| !site.is_begun)
    }

    /// How it ends. What an earlier attempt may have begun is in doubt.
    fn never_begun(&self, call: &Call) -> CallEnd {
        let entry = if self.machine.attempt() > 1 { entry_of(call) } else { ChildStart::Anew };
        self.unbegun(call, entry, (run_failed(), StopSource::Run))
    }

    async fn end_model_never_begun(&mut self) -> Result<(), LogFailure> {
        let Some(announced) = self.machine.announced_model().filter(|_| !self.model.has_begun()) else {
            return Ok(());
        };
        let now = clock::now();
        let report = |round| ModelReport {
            model: self.cx.def.model.name().to_owned(),
            round,
            state: ModelState::NeverSent,
            usage: Usage::default(),
            started_at: now,
            ended_at: now,
            retries: Vec::new(),
            calls_left_out: 0,
        };
        let whole = Completion::Stopped;
        let ended = match announced {
            AnnouncedModel::Round(round) => {
                let message = Arc::new(AssistantMessage::default());
                Fact::ModelEnded { message, whole, report: report(round) }
            }
            AnnouncedModel::Summary(round) => {
                Fact::SummaryEnded { whole, report: report(round), shortened: None }
            }
        };
        self.record(ended).await.map(drop)
    }
}
