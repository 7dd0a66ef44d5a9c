//! The text of an approval: what would run, what may have run, and what each answer would do.
//!
//! **Invariants**: arguments are shown whole up to a size beyond what people read; larger ones show their
//! size, head and tail beside the answer. Characters that could disguise them are shown escaped.

use jiff::Timestamp;
use safepoint::{
    approval::{AllowScope, ApprovalKind, ApprovalRequest, Decision, Holds},
    raw::store::{ApprovalRow, ApprovalState},
    receipt::{CallReport, CallStatus, SideEffect},
    session::LostRun,
};
use serde_json::Value;

use crate::{
    render::text::{at_running, moment},
    render::{call, edit},
    visible::{self, block, one_line},
};

/// Letters of a name that a question shows.
const NAME: usize = 120;
/// Letters of an address that a question shows: more than a name of the network can have.
const ADDRESS: usize = 400;

/// The approval request as lines.
pub(crate) fn put(asked: &ApprovalRequest) -> String {
    let args = arguments(asked);
    let name = one_line(&asked.tool, NAME);
    let tool = match asked.path.is_root() {
        true => name,
        false => format!("{name} (of the agent at {})", one_line(&asked.path.to_string(), NAME)),
    };
    let lasts = match asked.holds {
        Holds::Once => "",
        Holds::Session => "\n  A yes allows exactly this for the rest of the session.",
    };
    match asked.question {
        ApprovalKind::BeforeCall => {
            let opens = opened(asked);
            format!("Allow {tool} to run?\n{args}{opens}{lasts}")
        }
        ApprovalKind::DuringCall => match reach(asked) {
            Some((by, origin)) => format!("Allow {by} to reach {origin}?{lasts}"),
            None => format!("Allow {tool}? A running call asks for it.\n{args}{lasts}"),
        },
        ApprovalKind::AfterUnknownEnd => format!(
            "{tool} was cut off while it was running: side effects unknown. Its arguments:\n{args}\n  \
             Check whether it happened before you answer; run again, it may happen twice."
        ),
    }
}

/// The arguments, whole: a command as it would be typed, with what else the call says below it; others as they are.
fn arguments(asked: &ApprovalRequest) -> String {
    let Some((command, others)) = call::command(&asked.tool, &asked.args) else { return block(&asked.args) };
    let shown = visible::command(&command);
    let row = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("    {name}: {value}")
    };
    let rows: Vec<String> = others.iter().map(row).collect();
    let is_plain = |row: &String| row.chars().count() <= NAME && !row.chars().any(visible::hides);
    match (&*rows, rows.iter().all(is_plain)) {
        ([], _) => shown,
        (rows, true) => format!("{shown}\n{}", rows.join("\n")),
        (_, false) => format!("{shown}\n{}", block(&Value::Object(others))),
    }
}

/// The tool that asks for an address on the network, and the address.
fn reach(asked: &ApprovalRequest) -> Option<(String, String)> {
    let by = asked.tool.strip_suffix("/reach")?;
    let only = asked.args.as_object().filter(|fields| fields.len() == 1)?;
    Some((one_line(by, NAME), one_line(only.get("origin")?.as_str()?, ADDRESS)))
}

/// What a command would open of the sandbox, if it would leave it.
fn opened(asked: &ApprovalRequest) -> String {
    if asked.tool != "shell_outside" {
        return String::new();
    }
    let what = match asked.args["opens"].as_str() {
        Some("network") => "the network, this machine's services included; it writes only below the root",
        Some("files") => "every file that you may write, without a network",
        _ => "everything: it runs without the sandbox",
    };
    format!("\n  It leaves the sandbox. For this command, a yes opens {what}.")
}

/// The same in a few words.
pub(crate) fn short(asked: &ApprovalRequest) -> String {
    let tool = one_line(&asked.tool, NAME);
    match asked.question {
        ApprovalKind::DuringCall if reach(asked).is_some() => "may it reach".to_owned(),
        ApprovalKind::BeforeCall | ApprovalKind::DuringCall => format!("may {tool} run"),
        ApprovalKind::AfterUnknownEnd => format!("{tool} may have happened already"),
    }
}

/// What a decision does that was taken.
pub(crate) fn taken(asked: &ApprovalRequest, decision: &Decision) -> String {
    let tool = one_line(&asked.tool, NAME);
    let may_have_run = asked.question == ApprovalKind::AfterUnknownEnd;
    match (decision, may_have_run) {
        (Decision::Approve, true) => format!("{tool} is run again"),
        (Decision::Approve, false) if asked.holds == Holds::Session => {
            format!(
                "allowed, from now on in this session without a question: {}",
                always(AllowScope::Call, &tool)
            )
        }
        (Decision::Approve, false) => format!("{tool} may run"),
        (Decision::ApproveAlways { covers }, _) => {
            let always = always(*covers, &tool);
            format!("{tool} may run, and from now on in this session, without a question: {always}")
        }
        (decision, _) if edit::is_as_shown(decision) => {
            format!("{tool} may run, if the file is still as it is now")
        }
        (Decision::ApproveWith { .. }, _) => format!("{tool} may run with your arguments"),
        (Decision::Deny { .. }, true) => "given up: the model learns that its result is unknown".into(),
        (Decision::Deny { .. }, false) => format!("{tool} does not run"),
        (Decision::Respond { .. }, true) => format!("{tool} counts as done, with your result"),
        (Decision::Respond { .. }, false) => format!("{tool} does not run; your answer is its result"),
    }
}

/// The receipt of a suspended run, with a row for each approval that the run waits for.
pub(crate) fn in_receipt(receipt: &str, approvals: &[ApprovalRequest]) -> String {
    let (before, from_running) = at_running(receipt);
    let row = |asked: &ApprovalRequest| {
        let tool = one_line(&asked.tool, NAME);
        let waits = match asked.question {
            ApprovalKind::BeforeCall => format!("open, call of {tool} not started"),
            ApprovalKind::DuringCall => format!("open, asked by a running call of {tool}"),
            ApprovalKind::AfterUnknownEnd => format!("open, {tool} may have run before"),
        };
        format!("\n  approval  {}  {waits}", asked.id)
    };
    let rows: String = approvals.iter().map(row).collect();
    format!("{before}{rows}\n{from_running}").trim_end().to_owned()
}

/// What is allowed from now on.
pub(crate) fn always(covers: AllowScope, tool: &str) -> String {
    let tool = one_line(tool, NAME);
    match covers {
        AllowScope::Call => format!("{tool} with exactly these arguments"),
        AllowScope::Tool => format!("every call of {tool}, whatever its arguments"),
    }
}

/// Whether the call was cut off in an earlier attempt with unknown side effects. It is not run again (S7.3).
pub(crate) fn is_lost(report: &CallReport) -> bool {
    let was_cut = report.status == CallStatus::Stopped && report.started_at.is_none();
    was_cut && report.effect == SideEffect::Unknown && report.stopped_by.is_none()
}

/// How a call ended, for a person who may have to act on it.
pub(crate) fn ended(report: &CallReport) -> String {
    let (name, status) = (&report.name, report.status.as_str().replace('_', " "));
    match (report.effect, report.status) {
        _ if is_lost(report) => format!(
            "{name}: side effects unknown; it was cut off while it was running. It is not run again, and the model \
             learns this"
        ),
        (SideEffect::Unknown, CallStatus::Stopped | CallStatus::Killed) => {
            format!("{name}: {status} while it was running; side effects unknown")
        }
        _ => match exit(report) {
            Some(exit) => format!("{name}: {exit}"),
            None => format!("{name}: {status}"),
        },
    }
}

/// How the command of a call ended, if it ended by itself and not well: `exit 101`.
pub(crate) fn exit(report: &CallReport) -> Option<&str> {
    let is_over = report.status == CallStatus::Completed;
    let ended = report.processes.iter().map(|process| &*process.ended);
    let mut bad = ended
        .filter(|ended| *ended != "exit 0" && (ended.starts_with("exit ") || ended.starts_with("signal ")));
    bad.next().filter(|_| is_over)
}

/// A run in the background that ended with the process that it lived in.
pub(crate) fn lost(lost: &LostRun) -> String {
    let LostRun { turn, path, unknown, .. } = lost;
    let said = format!(
        "what {turn} started in the background ({path}) ended with its process and is not resumed; the model learns this"
    );
    match &**unknown {
        [] => said,
        tools => format!("{said}. Side effects unknown: {}", tools.join(", ")),
    }
}

/// Whether it can still be answered.
pub(crate) fn is_open(row: &ApprovalRow) -> bool {
    row.state == ApprovalState::Open && row.asked.expires > Timestamp::now()
}

/// The decision, its author and its time; none if there is none.
pub(crate) fn decided(row: &ApprovalRow) -> Option<String> {
    let ApprovalState::Decided { principal, bytes, at, .. } = &row.state else { return None };
    Some(format!("{} by {principal} at {}", verb(bytes), moment(*at)))
}

/// What a stored decision is, in a few words.
pub(crate) fn verb(decision: &[u8]) -> &'static str {
    let Ok(decision) = serde_json::from_slice(decision) else { return "decided" };
    match decision {
        Decision::Approve => "approved",
        with @ Decision::ApproveWith { .. } if edit::is_as_shown(&with) => "approved",
        Decision::ApproveAlways { covers: AllowScope::Call } => "approved, always with these arguments,",
        Decision::ApproveAlways { covers: AllowScope::Tool } => "approved, always this tool,",
        Decision::ApproveWith { .. } => "approved with other arguments",
        Decision::Deny { .. } => "denied",
        Decision::Respond { .. } => "answered instead",
    }
}
