//! Spans of runs, model calls and tool calls, named by the OpenTelemetry GenAI semantic conventions (S11.3).
//!
//! A span that a stop ended is neither ok nor error: its `otel.status_code` stays unset, and `safepoint.ending` says
//! what became of it.

use tracing::{Span, field::Empty, info_span};

use crate::value::{
    event::Completion,
    ids::{RunId, SessionId},
    receipt::ModelReport,
};

/// A run: `invoke_agent`. Its conversation is its session; a run without one is a conversation by itself.
pub(crate) fn run(id: &RunId, session: Option<&SessionId>, model: &str) -> Span {
    info_span!(
        "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = session.map_or(id.as_str(), SessionId::as_str),
        safepoint.run = id.as_str(),
        gen_ai.request.model = model,
        safepoint.ending = Empty,
        otel.status_code = Empty,
    )
}

/// A round's model call: `chat`.
pub(crate) fn model_call(model: &str, round: u32) -> Span {
    info_span!(
        "chat",
        gen_ai.operation.name = "chat",
        gen_ai.request.model = model,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        safepoint.round = round,
        safepoint.ending = Empty,
        otel.status_code = Empty,
    )
}

/// A tool call: `execute_tool`.
pub(crate) fn tool_call(name: &str, id: &str) -> Span {
    info_span!(
        "execute_tool",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = id,
        safepoint.ending = Empty,
        otel.status_code = Empty,
    )
}

/// The status of a span that ended well.
pub(crate) const OK: Option<&str> = Some("OK");
/// The status of a span that failed.
pub(crate) const ERROR: Option<&str> = Some("ERROR");
/// The status of a span that is neither.
pub(crate) const UNSET: Option<&str> = None;

/// Records how the span ended.
pub(crate) fn end(span: &Span, ending: &str, status: Option<&'static str>) {
    span.record("safepoint.ending", ending);
    if let Some(code) = status {
        span.record("otel.status_code", code);
    }
}

/// Ends the span of a model call. After its record: what subscribes to spans is not ours, and may panic.
pub(crate) fn end_model_call(span: &Span, whole: &Completion, report: &ModelReport) {
    let (ending, status) = match whole {
        Completion::Complete => ("completed", OK),
        Completion::Stopped => ("stopped", UNSET),
        Completion::Steered => ("steered", UNSET),
        Completion::Failed(_) => ("failed", ERROR),
    };
    end(span, ending, status);
    span.record("gen_ai.usage.input_tokens", report.usage.input);
    span.record("gen_ai.usage.output_tokens", report.usage.output);
}
