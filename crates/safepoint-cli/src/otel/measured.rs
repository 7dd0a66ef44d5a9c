//! What is measured, taken of the spans as they end (S11.13): no other code measures anything.

use std::time::{Duration, SystemTime};

use opentelemetry::{
    Array, Context, KeyValue, StringValue, Value,
    metrics::{Histogram, MeterProvider as _},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    metrics::SdkMeterProvider,
    trace::{BatchSpanProcessor, Span, SpanData, SpanProcessor},
};

/// The bounds of what a stop takes, in seconds.
const STOP_SECONDS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];
/// The bounds that the conventions name for what a model call takes, in seconds.
const CALL_SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The same for its tokens.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The span of a stop, and the event of its outcome.
const STOP: &str = "safepoint.stop";
const SETTLED: &str = "settled";
/// What a span is about, and what is a model call.
const OPERATION: &str = "gen_ai.operation.name";
const CHAT: &str = "chat";
/// A list of one, which `tracing` has no field for.
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";

/// The histograms.
#[derive(Debug)]
pub(super) struct Measures {
    settled: Histogram<f64>,
    quiet: Histogram<f64>,
    call: Histogram<f64>,
    tokens: Histogram<u64>,
}

/// Measures spans that end, and hands them on.
#[derive(Debug)]
pub(super) struct MeasuredSpan {
    measures: Option<Measures>,
    next: Option<BatchSpanProcessor>,
}

impl Measures {
    pub(super) fn new(meters: &SdkMeterProvider) -> Self {
        let meter = meters.meter("safepoint");
        let seconds = |name: &'static str, about: &'static str, bounds: &[f64]| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(about);
            histogram.with_boundaries(bounds.to_vec()).build()
        };
        Self {
            settled: seconds(
                "safepoint.stop.settled",
                "From the first request of a stop to the outcome",
                &STOP_SECONDS,
            ),
            quiet: seconds(
                "safepoint.stop.quiet",
                "From the first request of a stop until nothing was alive",
                &STOP_SECONDS,
            ),
            call: seconds("gen_ai.client.operation.duration", "How long a model call took", &CALL_SECONDS),
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_description("What a model call used")
                .with_boundaries(TOKENS.to_vec())
                .build(),
        }
    }

    fn take(&self, span: &SpanData) {
        if span.name == STOP {
            self.take_stop(span);
        } else if text(span, OPERATION) == Some(CHAT) {
            self.take_call(span);
        }
    }

    /// Of a stop that ended the run: a run that was done first is no stop.
    fn take_stop(&self, span: &SpanData) {
        if text(span, "safepoint.ending") != Some("stopped") {
            return;
        }
        let labels = labels(span, &["safepoint.stop.phase", "safepoint.stop.mode"]);
        if let Some(settled) = span.events.iter().find(|event| event.name == SETTLED) {
            self.settled.record(between(span.start_time, settled.timestamp), &labels);
        }
        if value(span, "safepoint.stop.quiet") == Some(&Value::Bool(true)) {
            self.quiet.record(between(span.start_time, span.end_time), &labels);
        }
    }

    fn take_call(&self, span: &SpanData) {
        let of_call = [
            OPERATION,
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
            "error.type",
        ];
        let mut labels = labels(span, &of_call);
        self.call.record(between(span.start_time, span.end_time), &labels);
        for (kind, field) in
            [("input", "gen_ai.usage.input_tokens"), ("output", "gen_ai.usage.output_tokens")]
        {
            if let Some(Value::I64(tokens)) = value(span, field)
                && let Ok(tokens @ 1..) = u64::try_from(*tokens)
            {
                labels.push(KeyValue::new("gen_ai.token.type", kind));
                self.tokens.record(tokens, &labels);
                labels.pop();
            }
        }
    }
}

impl MeasuredSpan {
    pub(super) fn new(measures: Option<Measures>, next: BatchSpanProcessor) -> Self {
        Self { measures, next: Some(next) }
    }

    /// Spans are measured and go nowhere.
    pub(super) fn alone(measures: Measures) -> Self {
        Self { measures: Some(measures), next: None }
    }
}

impl SpanProcessor for MeasuredSpan {
    fn on_start(&self, _span: &mut Span, _above: &Context) {}

    fn on_end(&self, mut span: SpanData) {
        if let Some(measures) = &self.measures {
            measures.take(&span);
        }
        if let Some(next) = &self.next {
            listed(&mut span.attributes);
            next.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.as_ref().map_or(Ok(()), SpanProcessor::force_flush)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.next.as_ref().map_or(Ok(()), |next| next.shutdown_with_timeout(timeout))
    }

    fn set_resource(&mut self, resource: &Resource) {
        if let Some(next) = &mut self.next {
            next.set_resource(resource);
        }
    }
}

/// Makes the list of what is one.
fn listed(attributes: &mut [KeyValue]) {
    for attribute in attributes.iter_mut().filter(|attribute| attribute.key.as_str() == FINISH_REASONS) {
        if let Value::String(reason) = &attribute.value {
            attribute.value = Value::Array(Array::String(vec![StringValue::clone(reason)]));
        }
    }
}

fn value<'a>(span: &'a SpanData, field: &str) -> Option<&'a Value> {
    // What is recorded again comes later.
    let attribute = span.attributes.iter().rev().find(|attribute| attribute.key.as_str() == field)?;
    Some(&attribute.value)
}

fn text<'a>(span: &'a SpanData, field: &str) -> Option<&'a str> {
    match value(span, field)? {
        Value::String(text) => Some(text.as_str()),
        _ => None,
    }
}

fn labels(span: &SpanData, fields: &[&'static str]) -> Vec<KeyValue> {
    let labels = fields.iter().filter_map(|field| Some(KeyValue::new(*field, value(span, field)?.clone())));
    labels.collect()
}

fn between(from: SystemTime, to: SystemTime) -> f64 {
    to.duration_since(from).unwrap_or_default().as_secs_f64()
}
