//! Small values that the other samples are made of.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::{
    Usage,
    approval::{ApprovalKind, ApprovalRequest, Holds},
    event::ErrorReport,
    ids::{CallId, Path},
    message::{
        AssistantMessage, Block, CallResult, Part, PartKind, PartSource, Reasoning, ResultStatus, ToolCall,
    },
    outcome::ErrorKind,
    receipt::{ModelReport, ModelState, ReasonReport, RetryReport},
    usage::{ExtraBilling, UsageSource},
    value::event::ErrorSource,
};

/// That number of milliseconds after the start of 2026.
pub(super) fn at(ms: i64) -> Timestamp {
    const START: i64 = 1_767_225_600_000;
    Timestamp::from_millisecond(START + ms).unwrap()
}

/// The path of a child of a child.
pub(super) fn path() -> Path {
    Path::default().of(&CallId::from("call_1")).of(&CallId::from("call_2"))
}

pub(super) fn usage() -> Usage {
    Usage::new(1200, 345)
        .with_cached_input(1000)
        .with_cache_write(64)
        .with_reasoning(32)
        .with_source(UsageSource::Estimated)
        .with_billed_beyond(ExtraBilling::Unknown)
}

pub(super) fn error() -> ErrorReport {
    ErrorReport::new("provider", "it is overloaded", Some("try again"))
}

/// A failure with everything that may be left out.
pub(super) fn refused() -> ErrorReport {
    ErrorReport::new("provider", "the provider answered 429: slow down", None)
        .of_kind(ErrorKind::RateLimit)
        .with_status(Some(429))
        .with_retry_after(Some(Duration::from_secs(20)))
        .caused_by(ErrorSource::of("it is not recorded"))
}

/// A reason that has a cause.
pub(super) fn reason() -> ReasonReport {
    let cause = ReasonReport {
        code: "user".into(),
        actor: "person".into(),
        text: "enough".into(),
        at: Some(at(0)),
        caused_by: None,
    };
    ReasonReport {
        code: "parent".into(),
        actor: "engine".into(),
        text: String::new(),
        at: None,
        caused_by: Some(Box::new(cause)),
    }
}

pub(super) fn model(state: ModelState) -> ModelReport {
    let waited = RetryReport { at: at(10), error: "429".into(), after_ms: 500, instead: None };
    let moved =
        RetryReport { at: at(20), error: "503".into(), after_ms: 0, instead: Some("openai:other".into()) };
    ModelReport {
        model: "openai:practice".into(),
        round: 2,
        state,
        usage: usage(),
        started_at: at(5),
        ended_at: at(900),
        retries: vec![waited, moved],
        calls_left_out: 3,
    }
}

/// A report of a model call with nothing that may be left out.
pub(super) fn plain_model() -> ModelReport {
    let usage = Usage::new(10, 5);
    ModelReport { usage, retries: Vec::new(), calls_left_out: 0, round: 1, ..model(ModelState::Completed) }
}

/// A message with each kind of block.
pub(super) fn assistant() -> AssistantMessage {
    let call = ToolCall { id: "call_1".into(), name: "shell".into(), args: r#"{"command":"ls"}"#.into() };
    AssistantMessage {
        blocks: vec![
            Block::Reasoning(Reasoning { text: "hm".into(), seal: Some(json!({"signature": "abc"})) }),
            Block::Text { text: "I look.\nGrüße".into() },
            Block::Call(call),
        ],
    }
}

/// A part of each kind, from each source.
pub(super) fn parts() -> Vec<Part> {
    vec![
        Part {
            kind: PartKind::Image,
            media_type: "image/png".into(),
            name: None,
            source: PartSource::Base64("Zm9v".into()),
        },
        Part {
            kind: PartKind::File,
            media_type: String::new(),
            name: Some("a.pdf".into()),
            source: PartSource::Url("https://example.org/a.pdf".into()),
        },
    ]
}

pub(super) fn result() -> CallResult {
    CallResult {
        call_id: "call_1".into(),
        name: "shell".into(),
        text: String::from("a.txt").into(),
        verdict: ResultStatus::Ok,
        parts: parts(),
        structured: Some(Box::new(json!({"files": ["a.txt"]}))),
    }
}

/// A question with every field set.
pub(super) fn question() -> ApprovalRequest {
    let args = json!({"amount": 7, "to": "ann"});
    ApprovalRequest {
        id: "apr_1".into(),
        path: path(),
        question: ApprovalKind::AfterUnknownEnd,
        call_id: "call_1".into(),
        tool: "pay".into(),
        definition: "sha256:00".into(),
        holds: Holds::Session,
        digest: crate::raw::digest("pay", "sha256:00", &args),
        args,
        asked_at: at(100),
        expires_at: at(60_100),
    }
}

/// A question with nothing that may be left out.
pub(super) fn plain_question() -> ApprovalRequest {
    ApprovalRequest {
        path: Path::default(),
        question: ApprovalKind::BeforeCall,
        definition: String::new(),
        holds: Holds::Once,
        ..question()
    }
}
