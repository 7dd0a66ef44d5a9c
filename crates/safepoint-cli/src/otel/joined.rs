//! Our spans in the traces of other processes, as W3C Trace Context writes them.

use std::collections::HashMap;

use opentelemetry::{Context, propagation::TextMapPropagator as _, trace::TraceContextExt as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use safepoint::raw::trace::{Propagator, TraceContext};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Joins the spans of `tracing` with those of OpenTelemetry.
#[derive(Debug, Default)]
pub(super) struct Joined(TraceContextPropagator);

impl Joined {
    fn read(&self, context: &TraceContext) -> Context {
        let headers: HashMap<String, String> =
            context.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        // Not under what is current here: the other process's span is above.
        self.0.extract_with_context(&Context::new(), &headers)
    }
}

impl Propagator for Joined {
    fn set_parent(&self, span: &Span, parent: &TraceContext) {
        if span.set_parent(self.read(parent)).is_err() {
            // It is not exported.
        }
    }

    fn link(&self, span: &Span, to: &TraceContext) {
        span.add_link(self.read(to).span().span_context().clone());
    }

    fn context(&self, span: &Span) -> Option<TraceContext> {
        let mut headers: HashMap<String, String> = HashMap::new();
        self.0.inject_context(&span.context(), &mut headers);
        let context = TraceContext::parse(headers.get("traceparent")?)?;
        Some(match headers.get("tracestate") {
            Some(state) => context.with_state(state),
            None => context,
        })
    }
}
