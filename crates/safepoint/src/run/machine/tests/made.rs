//! Calls, questions and ends, made up for the tests of the machine.

use jiff::Timestamp;
use serde_json::json;

use crate::{
    run::machine::CallState,
    value::{
        approval::{ApprovalKind, ApprovalRequest, Holds},
        effect::SideEffect,
        ids::{ApprovalId, CallId, Path},
        message::{CallResult, ResultStatus, ToolCall},
        receipt::{CallKind, CallReport, CallStatus, ChildReport, StopSource},
    },
};

pub(in crate::run::machine) fn tool_call(id: &str) -> ToolCall {
    ToolCall { id: CallId::from(id), name: "work".into(), args: "{}".into() }
}

pub(in crate::run::machine) fn question(id: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::from(id),
        path: Path::default(),
        question: ApprovalKind::BeforeCall,
        call_id: CallId::from("c0"),
        tool: "work".into(),
        definition: "declared".into(),
        holds: Holds::Once,
        args: json!("asked"),
        digest: String::new(),
        asked_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::UNIX_EPOCH,
    }
}

pub(in crate::run::machine) fn child() -> ChildReport {
    ChildReport { path: Path::default(), work: CallKind::Child, receipt: None, cost: 0.0 }
}

pub(in crate::run::machine) fn ended(id: &str, status: CallStatus, by: Option<StopSource>) -> CallState {
    let report = CallReport {
        call_id: CallId::from(id),
        name: "work".into(),
        round: 1,
        status,
        effect: SideEffect::Unknown,
        started_at: None,
        ended_at: None,
        reason: None,
        stopped_by: by,
        processes: Vec::new(),
        cleanups: Vec::new(),
        child: None,
        remote: None,
        ruled: Vec::new(),
    };
    let result = CallResult::of_text(id, "work", format!("end of {id}"), ResultStatus::Ok);
    CallState::Ended { report: report.into(), result }
}
