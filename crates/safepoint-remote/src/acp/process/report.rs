//! The report of an agent's end: its answer, and the end of its process.

use std::time::Duration;

use safepoint::{
    raw::remote::{RemoteEvent, RemoteStopReply},
    receipt::Outside,
    stop::Failure,
};
use safepoint_tools::process::CommandReport;

use super::super::dialogue::Answered;
use crate::cancel;

/// The text for work that was never requested.
const UNASKED: &str = "it had not been asked anything";

/// The answer for an agent without work: there was nothing to stop.
pub(in crate::acp) fn unasked() -> RemoteStopReply {
    RemoteStopReply::unreachable(UNASKED)
}

/// The end of work that was never requested.
pub(in crate::acp) fn nothing_done() -> RemoteEvent {
    cancel::never_begun(UNASKED)
}

/// What is known of a stop now that the process was ended. Where outside parties may continue the work, this
/// is not its end: the report has only what the agent answered.
pub(super) fn of_stop(
    answered: Option<&Answered>,
    report: &CommandReport,
    outside: Outside,
) -> RemoteStopReply {
    let said = match answered {
        Some(Answered::Unasked) => UNASKED,
        Some(Answered::AsAsked(word) | Answered::Otherwise(word)) => word.as_str(),
        None => "it said nothing to that",
    };
    if !report.survivors.is_empty() {
        let survivors: Vec<String> = report.survivors.iter().map(ToString::to_string).collect();
        let survivors = survivors.join(", ");
        return RemoteStopReply::refused(format!("{said}; still alive after SIGKILL: {survivors}"))
            .outside(outside);
    }
    let signals: Vec<String> = report.rungs.iter().map(|climbed| climbed.rung.to_string()).collect();
    let word = if signals.is_empty() {
        format!("{said}; its process ended ({})", report.exit)
    } else {
        format!("{said}; its process was ended by {} ({})", signals.join(", "), report.exit)
    };
    let reply = match (outside.names(), answered) {
        ([], _) => RemoteStopReply::confirmed(word),
        (_, Some(_)) => RemoteStopReply::acknowledged(word),
        (_, None) => RemoteStopReply { word, ..RemoteStopReply::requested() },
    };
    reply.outside(outside)
}

/// It ended by itself before its turn did.
pub(super) fn ended(report: &CommandReport, has_begun: bool, words: &str) -> RemoteEvent {
    let exit = report.exit;
    if has_begun {
        return in_work(&format!("ended ({exit}) in the middle of its work{words}"));
    }
    before_work(&format!("ended ({exit}) before it was asked anything{words}"))
}

/// It closed its output, and was ended for that.
pub(super) fn mute(has_begun: bool, words: &str) -> RemoteEvent {
    if has_begun {
        return in_work(&format!("closed its output in the middle of its work, and was ended{words}"));
    }
    before_work(&format!("closed its output before it was asked anything{words}"))
}

/// It was not ready in time.
pub(super) fn slow(limit: Duration, words: &str) -> RemoteEvent {
    before_work(&format!("was not ready within {limit:?}{words}"))
}

fn in_work(what: &str) -> RemoteEvent {
    RemoteEvent::Failed(Failure::new(format!("the agent {what}")))
}

/// No work was requested of the agent.
pub(super) fn before_work(what: &str) -> RemoteEvent {
    RemoteEvent::Failed(Failure::new(format!("the agent {what}")).unreachable())
}
