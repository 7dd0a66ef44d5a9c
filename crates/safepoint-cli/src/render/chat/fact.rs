//! One recorded fact in one line, for `/trace`.

use std::time::Duration;

use safepoint::{
    event::{Fact, Resolution},
    raw::lasting,
};

use crate::render::text::{brief, completion, hook_action};

pub(crate) fn line(fact: &Fact) -> String {
    match fact {
        Fact::AttemptOpened { run, attempt, .. } => format!("attempt {attempt} of {run}"),
        Fact::TimeTaken { ms } => format!("{} of its time are used", lasting(Duration::from_millis(*ms))),
        Fact::HistoryRepaired { repairs } => format!("history repaired in {} places", repairs.len()),
        Fact::ModelStarted { round } => format!("request {round} to the model"),
        Fact::ModelEnded { whole, report, .. } => {
            let (usage, how) = (&report.usage, completion(whole));
            format!("message {how}; {} tokens in, {} out", usage.input, usage.output)
        }
        Fact::ModelTooLong { report, error } => {
            format!("request {} was too long for the model and is shortened: {}", report.round, error.message)
        }
        Fact::HookActed(acted) => format!("hook {} {}", acted.hook, hook_action(&acted.action)),
        Fact::HistoryShortened(shortened) => format!(
            "the window is full: {} messages of the model are not sent any more; about {} tokens instead of {}",
            shortened.omitted.rounds, shortened.tokens_after, shortened.tokens_before
        ),
        Fact::SummaryStarted { round } => format!("request for a summary, before request {round}"),
        Fact::SummaryEnded { shortened, report, .. } => {
            let taken =
                if shortened.is_some() { "takes the place of the oldest rounds" } else { "is not used" };
            format!("the summary {taken}; {} tokens in, {} out", report.usage.input, report.usage.output)
        }
        Fact::SteerTaken { round, steers } => format!("{} steered in, for request {round}", steers.len()),
        Fact::CallStarted { name, call_id, args, .. } => format!("{name} {call_id} begins: {}", brief(args)),
        Fact::RemoteTaskNamed { call_id, task } => format!("{call_id} is {task} at its peer"),
        Fact::CallEnded { report, .. } => {
            let effect = format!("{:?}", report.effect).to_lowercase();
            format!("{} {}: {}, effect {effect}", report.name, report.call_id, report.status.as_str())
        }
        Fact::ChildSuspended { call_id, approvals, .. } => {
            format!("the run of {call_id} waits for {} decisions", approvals.len())
        }
        Fact::ApprovalRequested(question) => format!("asked whether {} may run", question.tool),
        Fact::ApprovalResolved { answer, .. } => match answer {
            Resolution::Decided(decision) => format!("answered: {decision:?}"),
            Resolution::Expired => "the question expired".to_owned(),
            Resolution::Withdrawn => "the question was withdrawn".to_owned(),
        },
        Fact::StopRequested(request) => {
            format!("stop requested: {} ({}), {}", request.mode, request.reach, request.reason.text)
        }
        Fact::StopEscalated => "grace period ended: now".to_owned(),
        Fact::StopObserved { .. } => "the stop takes effect".to_owned(),
        Fact::Settled { receipt, .. } => format!("settled: {}", receipt.ending.as_str()),
    }
}
