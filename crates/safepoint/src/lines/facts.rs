//! Lines of recorded facts that depend on no event before them.

use std::sync::Arc;

use super::{
    body::{AnswerLine, ClosedBy, EscalatedBy, MessageStatus, ModeName, RunLine, Shortened, SteerLine, TEXT},
    line::{EventLine, TextOf},
};
use crate::value::{
    event::{Completion, Fact, HookReport, OutputExtent, RecordedSteer, Resolution},
    history::Omission,
    receipt::{CallReport, RequestReport},
};

/// The line of a fact that says all of it, and depends on none before it.
pub(super) fn plain(fact: &Fact) -> Option<RunLine<'_>> {
    Some(match fact {
        Fact::AttemptOpened { attempt, .. } => RunLine::RunStarted { attempt: *attempt },
        Fact::HistoryRepaired { repairs } => RunLine::HistoryRepaired { repairs },
        Fact::ModelTooLong { report, error } => RunLine::ModelTooLong {
            round: report.round,
            name: &report.model,
            state: report.state,
            usage: &report.usage,
            error: &error.message,
        },
        Fact::HookActed(HookReport { hook, action }) => RunLine::HookActed { hook, action },
        Fact::SteerTaken { round, steers } => {
            RunLine::SteerDelivered { round: *round, steers: steers.iter().map(steer_line).collect() }
        }
        Fact::HistoryShortened(shortened) => {
            let Shortened { by, entries, rounds, text, tokens_before, tokens_after } = shortened.into();
            RunLine::HistoryShortened { by, entries, rounds, text, tokens_before, tokens_after }
        }
        Fact::SummaryStarted { round } => RunLine::SummaryStarted { round: *round },
        Fact::SummaryEnded { whole, report, shortened } => RunLine::SummaryEnded {
            round: report.round,
            name: &report.model,
            status: whole.into(),
            state: report.state,
            usage: &report.usage,
            shortened: shortened.as_ref().map(Into::into),
        },
        Fact::CallStarted { call_id, name, round, args, effect, .. } => {
            RunLine::CallStarted { call_id, name, round: *round, args, effect: *effect }
        }
        Fact::RemoteTaskNamed { call_id, task } => RunLine::CallNamed { call_id, task },
        Fact::ChildSuspended { call_id, child, .. } => RunLine::CallSuspended { call_id, child: &child.path },
        Fact::ApprovalRequested(request) => RunLine::ApprovalAsked {
            approval_id: &request.id,
            call_id: &request.call_id,
            name: &request.tool,
            args: &request.args,
            digest: &request.digest,
            expires_at: request.expires_at,
        },
        Fact::ApprovalResolved { id, call_id, answer } => {
            RunLine::ApprovalDecided { approval_id: id, call_id, answer: answer.into() }
        }
        Fact::StopRequested(request) => stop_requested(request),
        Fact::StopEscalated => RunLine::StopEscalated { by: EscalatedBy::Deadline },
        Fact::StopObserved { at } => RunLine::StopObserved { observed_at: *at },
        Fact::TimeTaken { .. }
        | Fact::ModelStarted { .. }
        | Fact::ModelEnded { .. }
        | Fact::CallEnded { .. }
        | Fact::Settled { .. } => return None,
    })
}

fn steer_line(steer: &RecordedSteer) -> SteerLine<'_> {
    SteerLine { id: steer.id.as_str(), text: &steer.message.text, notice: steer.is_notice() }
}

fn stop_requested(request: &RequestReport) -> RunLine<'_> {
    const NOW: &str = "now";
    let is_now = request.mode == NOW;
    RunLine::StopRequested {
        mode: if is_now { ModeName::Now } else { ModeName::At },
        points: if is_now { Vec::new() } else { request.mode.split(',').collect() },
        scope: &request.reach,
        within_ms: request.within_ms,
        reason: &request.reason,
        asked: &request.asked,
    }
}

pub(super) fn call_ended(fact: &Arc<Fact>, report: &CallReport, extent: &OutputExtent) -> EventLine {
    let (truncated, file) = match extent {
        OutputExtent::All => (false, None),
        OutputExtent::Truncated { file, .. } => (true, file.as_deref()),
    };
    let line = RunLine::CallEnded {
        call_id: &report.call_id,
        name: &report.name,
        round: report.round,
        status: report.status,
        effect: report.effect,
        output: TEXT,
        truncated,
        file,
        started_at: report.started_at,
        ended_at: report.ended_at,
    };
    let output = TextOf(Arc::clone(fact), |fact, f| match &**fact {
        Fact::CallEnded { result, .. } => f.write_str(&result.text),
        _ => Ok(()),
    });
    EventLine::of(&line).with("output", output.into())
}

impl From<&Completion> for MessageStatus {
    fn from(whole: &Completion) -> Self {
        match whole {
            Completion::Complete => Self::Completed,
            Completion::Stopped => Self::Stopped,
            Completion::Steered => Self::Steered,
            Completion::Failed(_) => Self::Failed,
        }
    }
}

impl From<&Omission> for Shortened {
    fn from(shortened: &Omission) -> Self {
        let omitted = &shortened.omitted;
        Self {
            by: omitted.by,
            entries: omitted.entries,
            rounds: omitted.rounds,
            text: omitted.text().to_owned(),
            tokens_before: shortened.tokens_before,
            tokens_after: shortened.tokens_after,
        }
    }
}

impl<'a> From<&'a Resolution> for AnswerLine<'a> {
    fn from(answer: &'a Resolution) -> Self {
        match answer {
            Resolution::Decided(decision) => Self::Decided(decision),
            Resolution::Expired => Self::Closed { decision: ClosedBy::Expired },
            Resolution::Withdrawn => Self::Closed { decision: ClosedBy::Withdrawn },
        }
    }
}
