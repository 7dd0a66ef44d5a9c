//! The row of a remote agent: what it confirmed of a stop, and no more (S10.3).

use super::{
    super::{Outside, RemoteReport, RemoteStopState, StopSupport},
    rows::Rows,
    span,
};

const MAY_RUN: &str = "may still be running";

/// `are_ours_ended`: the processes of this run that do the remote agent's work are known to have ended.
pub(super) fn rows(report: &RemoteReport, rows: &mut Rows<'_>, are_ours_ended: bool) {
    let name = match &report.task {
        Some(task) => format!("remote  task {task} at {}", report.peer),
        None => format!("remote  {}", report.peer),
    };
    let state = report.stop.map_or_else(|| unstopped(report), |stop| stopped(report, stop, are_ours_ended));
    let after = answer_time(report).map(|after| format!(" after {after}")).unwrap_or_default();
    let word = if report.word.is_empty() { String::new() } else { format!("  \"{}\"", report.word) };
    let gap = if state.is_empty() { "" } else { "  " };
    rows.note(4, &format!("{name}{gap}{state}{after}{word}"));
    answer_row(report, rows);
}

fn unstopped(report: &RemoteReport) -> String {
    match (report.lost_at, &report.outside) {
        (Some(_), _) => format!("connection lost, {MAY_RUN}"),
        (None, Outside::Unseen) => "its own processes ended".into(),
        (None, _) => String::new(),
    }
}

fn stopped(report: &RemoteReport, stop: RemoteStopState, are_ours_ended: bool) -> String {
    let is_ended = report.ended_at.is_some();
    match (stop, report.grade) {
        (RemoteStopState::Refused, _) if is_ended => ended_after_refusal(report),
        (RemoteStopState::Acknowledged, StopSupport::CallerSide | StopSupport::None) if is_ended => {
            "stop requested, reported that its work had ended".into()
        }
        (RemoteStopState::Unreachable, _) if is_ended => "stop not delivered, no work is running".into(),
        _ if is_ended => "stop requested, work had ended".into(),
        _ if report.claimed_at.is_some() => {
            format!("stop requested, reported that its work had ended, {MAY_RUN}")
        }
        (RemoteStopState::Confirmed, StopSupport::Hard) => contained(report),
        (RemoteStopState::Acknowledged | RemoteStopState::Requested, StopSupport::Hard)
            if !report.outside.names().is_empty() =>
        {
            if are_ours_ended {
                contained(report)
            } else {
                format!("stop acknowledged, its own processes are ending; {}", others(report))
            }
        }
        (RemoteStopState::Confirmed, grade) => {
            let grade = grade.as_str();
            format!("reported that its work ended, but its stops are {grade}: {MAY_RUN}")
        }
        (RemoteStopState::Requested, _) => {
            let within = report.within_ms.map(std::time::Duration::from_millis);
            let within = within.map(|within| format!(" within {within:?}")).unwrap_or_default();
            format!("stop requested, no answer{within}, {MAY_RUN}")
        }
        (RemoteStopState::Acknowledged, _) => format!("stop acknowledged, {MAY_RUN}"),
        (RemoteStopState::Refused, _) => "stop refused, still running".into(),
        (RemoteStopState::Unreachable, _) => format!("stop not delivered, {MAY_RUN}"),
    }
}

/// The refusal and the end of the work have a time each.
fn ended_after_refusal(report: &RemoteReport) -> String {
    let after = |to| report.asked_at.zip(to).map(|(asked, to)| span(asked, to));
    let refused = after(report.replied_at).map(|time| format!(" after {time}")).unwrap_or_default();
    let ended = after(report.ended_at).map(|time| format!(", {time} after the request")).unwrap_or_default();
    format!("stop refused{refused}; work ended by itself{ended}")
}

/// How long the answer to the stop took, or the end of the work where that is later.
fn answer_time(report: &RemoteReport) -> Option<String> {
    let is_shown_with_refusal = report.stop == Some(RemoteStopState::Refused) && report.ended_at.is_some();
    let (asked, replied) = report.asked_at.zip(report.replied_at).filter(|_| !is_shown_with_refusal)?;
    report.stop?;
    Some(span(asked, report.ended_at.map_or(replied, |ended| ended.max(replied))))
}

/// The part of an answer that arrived before the work was stopped or lost.
fn answer_row(report: &RemoteReport, rows: &mut Rows<'_>) {
    const SHOWN: usize = 60;
    if report.said_bytes == 0 || report.ended_at.is_some() || report.claimed_at.is_some() {
        return;
    }
    let shown: String = report.said.chars().take(SHOWN).collect();
    let more = if (shown.len() as u64) < report.said_bytes { "…" } else { "" };
    rows.note(6, &format!("partial answer kept, {} bytes: \"{shown}{more}\"", report.said_bytes));
}

/// The processes of this run that did the work ended; what is known of others.
fn contained(report: &RemoteReport) -> String {
    match &report.outside {
        Outside::Unasked => "stop confirmed, work ended".into(),
        Outside::None => "stop confirmed, its own processes ended, no connection to other processes".into(),
        Outside::Unseen => "stop confirmed, its own processes ended".into(),
        Outside::Named(_) => format!("its own processes ended; {}", others(report)),
    }
}

fn others(report: &RemoteReport) -> String {
    let names = report.outside.names();
    let are = if names.len() == 1 { "is" } else { "are" };
    format!("worked with {}, which {are} outside this run and {MAY_RUN}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn shown(report: &RemoteReport) -> String {
        let mut warnings = Vec::new();
        let mut rows = Rows::new(String::new(), &mut warnings);
        super::rows(report, &mut rows, true);
        rows.finish()
    }

    /// S10.3: work that ended by itself after a refusal is not shown as over when the stop was requested.
    #[test]
    fn a_refusal_is_shown_also_where_the_work_has_ended_since() {
        let ended = |stop| RemoteReport {
            stop: Some(stop),
            ended_at: Some(Timestamp::UNIX_EPOCH),
            ..RemoteReport::of("a2a:x", StopSupport::CallerSide)
        };
        assert!(shown(&ended(RemoteStopState::Refused)).contains("stop refused; work ended by itself"));
        assert!(shown(&ended(RemoteStopState::Requested)).contains("work had ended"));
        let unsent = shown(&ended(RemoteStopState::Unreachable));
        assert!(unsent.contains("stop not delivered, no work is running"), "nothing was requested: {unsent}");
        let at = |millis| Timestamp::from_millisecond(millis).ok();
        let timed = |stop| {
            let word = "no; its task was working".to_owned();
            let (asked_at, replied_at, ended_at) = (at(1_000), at(1_010), at(3_800));
            shown(&RemoteReport { word, asked_at, replied_at, ended_at, ..ended(stop) })
        };
        let refused = "stop refused after 10.0 ms; work ended by itself, 2.8 s after the request  \"no; its task was working\"";
        assert!(timed(RemoteStopState::Refused).contains(refused), "{}", timed(RemoteStopState::Refused));
        let over = timed(RemoteStopState::Acknowledged);
        assert!(over.contains("its work had ended after 2.8 s"), "the time is that of the end: {over}");
    }

    /// S12.3: text of a remote agent stays in its row.
    #[test]
    fn the_words_of_a_remote_agent_do_not_break_a_row() {
        let mut report = RemoteReport::of("a2a:x", StopSupport::Hard);
        report.word = "no\n  running   nothing\u{1b}[2J".into();
        assert!(!shown(&report).trim_start().contains(['\n', '\u{1b}']), "{}", shown(&report));
    }
}
