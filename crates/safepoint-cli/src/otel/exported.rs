//! The exporters, as the `OTEL_*` variables set them: OTLP over HTTP, with protobuf.
//!
//! **Invariants**: nothing is sent unless a variable says where to; an export that fails or hangs delays the end of the program
//! by no more than a bound, and changes no exit code.

use std::{
    env,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    metrics::SdkMeterProvider,
    trace::{BatchSpanProcessor, SdkTracerProvider},
};
use tokio::runtime::{Builder, Runtime};
use tracing::Subscriber;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    registry::LookupSpan,
};

use super::{
    client::Client,
    joined::Joined,
    measured::{MeasuredSpan, Measures},
};
use crate::output;

/// How long the end of the program waits for the last export.
const FLUSH: Duration = Duration::from_secs(3);
/// How long one export may take, unless a variable says it in milliseconds.
const EXPORT: Duration = Duration::from_secs(10);
/// The name of the service, unless a variable has one.
const SERVICE: &str = "safepoint";
/// The one form in which this build exports.
const PROTOCOL: &str = "http/protobuf";

/// What is exported while the program runs.
pub(super) struct Exported {
    /// Of the exports alone: it outlives the program's, whose tasks close the last spans as they end.
    runtime: Runtime,
    traces: Option<SdkTracerProvider>,
    measures: Option<SdkMeterProvider>,
}

/// What is exported.
#[derive(Clone, Copy)]
enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    /// Whether the variables ask for it: they say where to send it, or name the exporter, and none says otherwise.
    fn is_asked_for(self) -> bool {
        let (own, exporter) = match self {
            Self::Traces => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER"),
            Self::Metrics => ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_METRICS_EXPORTER"),
        };
        match said(exporter).as_deref() {
            Some(named) => named.split(',').any(|named| named.trim() == "otlp"),
            None => said(own).or_else(|| said("OTEL_EXPORTER_OTLP_ENDPOINT")).is_some(),
        }
    }
}

/// A variable that is set and not empty.
fn said(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.trim().is_empty())
}

impl Exported {
    /// What the variables ask for; `None` if that is nothing. A mistake in them is one warning, and the program runs without.
    pub(super) fn of_environment() -> Option<Self> {
        if said("OTEL_SDK_DISABLED").is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            return None;
        }
        let (traces, metrics) = (Signal::Traces.is_asked_for(), Signal::Metrics.is_asked_for());
        if !traces && !metrics {
            return None;
        }
        let made = match said("OTEL_EXPORTER_OTLP_PROTOCOL") {
            Some(other) if other.trim() != PROTOCOL => {
                Err(format!("`{other}` is no protocol of this build, which exports by `{PROTOCOL}` alone"))
            }
            _ => Self::new((traces, metrics)),
        };
        match made {
            Ok(made) => Some(made),
            Err(why) => {
                output::tell(format_args!("safepoint: warning: nothing is exported to OpenTelemetry: {why}"));
                None
            }
        }
    }

    fn new((is_traced, is_measured): (bool, bool)) -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let client = Client::new(runtime.handle(), within()?)?;
        let measures = if is_measured { Some(meters(client.clone())?) } else { None };
        let traces = match (is_traced, &measures) {
            (false, None) => None,
            (true, _) => Some(tracers(client, measures.as_ref())?),
            // The measures are taken of spans, which go nowhere then.
            (false, Some(meters)) => {
                let processor = MeasuredSpan::alone(Measures::new(meters));
                Some(SdkTracerProvider::builder().with_span_processor(processor).build())
            }
        };
        let joins = said("OTEL_PROPAGATORS").is_none_or(|named| named.contains("tracecontext"));
        // Spans that are only measured are in no trace that another process could join.
        if joins && is_traced && !safepoint::raw::trace::install(Joined::default()) {
            // Nothing else of this program installs one.
        }
        Ok(Self { runtime, traces, measures })
    }

    /// What turns our spans into those that are exported; of libraries none is.
    pub(super) fn layer<S>(&self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + Send + Sync + for<'span> LookupSpan<'span>,
    {
        let Some(traces) = &self.traces else { return Box::new(LevelFilter::OFF) };
        let spans = tracing_opentelemetry::layer()
            .with_tracer(traces.tracer(SERVICE))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_level(false)
            .with_target(false)
            // A failure is one where its span says so.
            .with_error_events_to_status(false);
        Box::new(spans.with_filter(Targets::new().with_target(SERVICE, LevelFilter::INFO)))
    }

    /// Exports what is left. What is not exported in time is lost, and said nothing of: a program does not end differently
    /// because its collector is away.
    pub(super) fn end(self) {
        let Self { runtime, traces, measures } = self;
        let over = Instant::now() + FLUSH;
        let (done, is_done) = mpsc::channel();
        // Apart: a collector that hangs is not waited for.
        let flush = move || {
            let spans = traces.map(|traces| traces.shutdown_with_timeout(FLUSH));
            let left = over.saturating_duration_since(Instant::now());
            let numbers = measures.map(|measures| measures.shutdown_with_timeout(left));
            for failed in [spans, numbers].into_iter().flatten().filter_map(Result::err) {
                tracing::debug!(%failed, "the last export to OpenTelemetry failed");
            }
            if done.send(()).is_err() {
                // The time is over.
            }
        };
        let flushing = thread::Builder::new().name("otel flush".into()).spawn(flush);
        if flushing.is_err() || is_done.recv_timeout(FLUSH).is_err() {
            tracing::debug!("the last export to OpenTelemetry took too long");
        }
        runtime.shutdown_background();
    }
}

/// How long one export may take.
fn within() -> Result<Duration, String> {
    const VARIABLE: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
    let Some(text) = said(VARIABLE) else { return Ok(EXPORT) };
    let ms = text.trim().parse().ok().filter(|ms| *ms > 0);
    ms.map(Duration::from_millis).ok_or_else(|| format!("{VARIABLE} is no number of milliseconds: `{text}`"))
}

/// Who exports.
fn resource() -> Resource {
    let is_named = said("OTEL_SERVICE_NAME").is_some()
        || said("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|named| named.contains("service.name="));
    let builder =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if is_named { builder.build() } else { builder.with_service_name(SERVICE).build() }
}

fn meters(client: Client) -> Result<SdkMeterProvider, String> {
    let exporter = MetricExporter::builder().with_http().with_http_client(client).build();
    let exporter = exporter.map_err(|error| error.to_string())?;
    Ok(SdkMeterProvider::builder().with_resource(resource()).with_periodic_exporter(exporter).build())
}

fn tracers(client: Client, meters: Option<&SdkMeterProvider>) -> Result<SdkTracerProvider, String> {
    let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
    let exporter = exporter.map_err(|error| error.to_string())?;
    let batch = BatchSpanProcessor::builder(exporter).build();
    let processor = MeasuredSpan::new(meters.map(Measures::new), batch);
    Ok(SdkTracerProvider::builder().with_resource(resource()).with_span_processor(processor).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11.13, S11.14: where only measures are asked for, no request and no run is put into a trace.
    #[test]
    fn measures_alone_join_no_trace() {
        let measured = Exported::new((false, true)).unwrap();
        assert!(measured.traces.is_some() && !safepoint::raw::trace::is_installed());
        let traced = Exported::new((true, false)).unwrap();
        assert!(safepoint::raw::trace::is_installed());
        measured.end();
        traced.end();
    }
}
