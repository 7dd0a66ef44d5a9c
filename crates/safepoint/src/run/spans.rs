//! Spans of runs, model calls and tool calls, named by the OpenTelemetry GenAI semantic conventions (S11.3): no other file of
//! the engine has a name of theirs. Nothing that was said is in a span.
//!
//! A span that a stop ended is neither ok nor error: its `otel.status_code` stays unset, it has no `error.type`, and
//! `safepoint.ending` says what became of it.

use std::fmt;

use tracing::{
    Span,
    field::{DisplayValue, Empty, display},
    info_span,
};

use crate::contract::model::Finish;
use crate::value::{
    effect::SideEffect,
    event::{Completion, ErrorReport},
    ids::{CallId, Path, RunId, SessionId},
    receipt::{Ending, ModelReport, Receipt},
};

mod provider;
mod stop;

use provider::{model_name, provider_name};
pub(crate) use stop::StopSpan;

/// What is known of a run as it begins.
pub(crate) struct RunLabels<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) path: &'a Path,
    /// Its conversation is its session; a run without one is a conversation by itself.
    pub(crate) session: Option<&'a SessionId>,
    /// The agent's name, if it has one.
    pub(crate) agent: Option<&'a str>,
    pub(crate) model: &'a str,
    /// The call whose work it is.
    pub(crate) call: Option<&'a CallId>,
}

/// A run: `invoke_agent`. It lasts until the run is quiet.
pub(crate) fn run(of: &RunLabels<'_>) -> Span {
    info_span!(
        "invoke_agent",
        otel.name = named("invoke_agent", of.agent),
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = of.agent,
        gen_ai.conversation.id = of.session.map_or(of.run.as_str(), SessionId::as_str),
        gen_ai.provider.name = provider_name(of.model),
        gen_ai.request.model = model_name(of.model),
        gen_ai.tool.call.id = of.call.map(CallId::as_str),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        safepoint.run = of.run.as_str(),
        safepoint.path = (!of.path.is_root()).then(|| display(of.path)),
        safepoint.attempt = Empty,
        safepoint.ending = Empty,
        otel.status_code = Empty,
        error.r#type = Empty,
    )
}

/// A round's model call: `chat`.
pub(crate) fn model_call(model: &str, round: u32) -> Span {
    info_span!(
        "chat",
        otel.name = named("chat", Some(model_name(model))),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider_name(model),
        gen_ai.request.model = model_name(model),
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        safepoint.round = i64::from(round),
        safepoint.ending = Empty,
        otel.status_code = Empty,
        error.r#type = Empty,
    )
}

/// A tool call: `execute_tool`.
pub(crate) fn tool_call(name: &str, id: &str) -> Span {
    info_span!(
        "execute_tool",
        otel.name = named("execute_tool", Some(name)),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = id,
        gen_ai.tool.r#type = "function",
        safepoint.effect = Empty,
        safepoint.ending = Empty,
        otel.status_code = Empty,
        error.r#type = Empty,
    )
}

/// How something ended, for its span. Exhaustive: well; by a failure of this kind; or neither.
#[derive(Clone, Copy)]
pub(crate) enum SpanEnd<'a> {
    Ok,
    Failed(&'a str),
    Neither,
}

/// Records how the span ended.
fn end(span: &Span, ending: &str, status: SpanEnd<'_>) {
    span.record("safepoint.ending", ending);
    match status {
        SpanEnd::Ok => {
            span.record("otel.status_code", "OK");
        }
        SpanEnd::Failed(kind) => {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", kind);
        }
        SpanEnd::Neither => {}
    }
}

/// Ends the span of a tool call.
pub(crate) fn end_tool_call(span: &Span, ending: &str, status: SpanEnd<'_>, effect: SideEffect) {
    let effect = match effect {
        SideEffect::None => "none",
        SideEffect::Done => "done",
        SideEffect::Unknown => "unknown",
    };
    span.record("safepoint.effect", effect);
    end(span, ending, status);
}

/// Ends the span of a run: its outcome is fixed. `failure` is why it failed.
pub(crate) fn end_run(span: &Span, receipt: &Receipt, failure: Option<&ErrorReport>) {
    span.record("safepoint.attempt", i64::from(receipt.attempt));
    span.record("gen_ai.usage.input_tokens", whole_number(receipt.usage.input));
    span.record("gen_ai.usage.output_tokens", whole_number(receipt.usage.output));
    let status = match receipt.ending {
        Ending::Done => SpanEnd::Ok,
        Ending::Failed => SpanEnd::Failed(failure.map_or("unknown", |error| &error.code)),
        Ending::Stopped | Ending::Suspended => SpanEnd::Neither,
    };
    end(span, receipt.ending.as_str(), status);
}

/// Ends the span of a model call.
pub(crate) fn end_model_call(span: &Span, whole: &Completion, report: &ModelReport, finish: Option<&Finish>) {
    let (ending, status) = match whole {
        Completion::Complete => ("completed", SpanEnd::Ok),
        Completion::Stopped => ("stopped", SpanEnd::Neither),
        Completion::Steered => ("steered", SpanEnd::Neither),
        Completion::Failed(error) => ("failed", SpanEnd::Failed(&error.code)),
    };
    end(span, ending, status);
    span.record("gen_ai.response.model", model_name(&report.model));
    span.record("gen_ai.response.finish_reasons", finish.map(finish_reason));
    let usage = &report.usage;
    span.record("gen_ai.usage.input_tokens", whole_number(usage.input));
    span.record("gen_ai.usage.output_tokens", whole_number(usage.output));
    let some = |tokens: u64| (tokens > 0).then_some(whole_number(tokens));
    span.record("gen_ai.usage.cache_read.input_tokens", some(usage.cached_input));
    span.record("gen_ai.usage.cache_creation.input_tokens", some(usage.cache_write));
}

/// What exporters take for a number: a `u64` they write as text.
fn whole_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn finish_reason(finish: &Finish) -> &str {
    match finish {
        Finish::Natural => "stop",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        Finish::Other(reason) => reason,
    }
}

/// The name of a span: what is done, and with what.
struct SpanName<'a>(&'static str, Option<&'a str>);

fn named<'a>(operation: &'static str, with: Option<&'a str>) -> DisplayValue<SpanName<'a>> {
    display(SpanName(operation, with))
}

impl fmt::Display for SpanName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)?;
        self.1.map_or(Ok(()), |with| write!(f, " {with}"))
    }
}
