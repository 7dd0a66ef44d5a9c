//! Spans by the GenAI conventions: a stopped one is neither ok nor error (S11.3, I6).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use safepoint::{StopRequest, receipt::Ending};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

#[path = "engine/world.rs"]
mod world;

use world::{agent, ask, call_started, does, say};

type Seen = Arc<Mutex<BTreeMap<String, BTreeMap<String, String>>>>;

/// Keeps the last value of each field, by span name.
struct Keeps(Seen);

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Keeps {
    fn on_new_span(&self, span: &tracing::span::Attributes<'_>, _: &tracing::span::Id, _: Context<'_, S>) {
        let mut seen = self.0.lock().unwrap();
        span.record(&mut Fields(seen.entry(span.metadata().name().to_owned()).or_default()));
    }
    fn on_record(&self, id: &tracing::span::Id, values: &tracing::span::Record<'_>, cx: Context<'_, S>) {
        let name = cx.span(id).expect("the span is open").name().to_owned();
        values.record(&mut Fields(self.0.lock().unwrap().entry(name).or_default()));
    }
}

/// S11.3, I6: run, model call and tool call have their spans; what a stop ended has no status.
/// open-telemetry/opentelemetry-specification#4677, open-telemetry/semantic-conventions-genai#171: there is no word
/// for a span that was stopped.
#[tokio::test(start_paused = true)]
async fn a_stopped_span_is_neither_ok_nor_error() {
    let seen = Seen::default();
    let subscriber = tracing_subscriber::registry().with(Keeps(seen.clone()));
    let _default = tracing::subscriber::set_default(subscriber);
    let work = does("work", |_| std::future::pending());
    let handle = agent([ask(&["work"])]).tool(work).build().run("go").detach();
    call_started(&handle).await;
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.ending(), Ending::Stopped);
    {
        let seen = seen.lock().unwrap();
        for (span, ending, status) in [
            ("invoke_agent", "stopped", None),
            ("execute_tool", "stopped", None),
            ("chat", "completed", Some("OK")),
        ] {
            let fields = &seen[span];
            assert_eq!(fields.get("safepoint.ending").map(String::as_str), Some(ending), "{span}");
            assert_eq!(fields.get("otel.status_code").map(String::as_str), status, "{span}");
            assert_eq!(fields["gen_ai.operation.name"], span);
        }
    }
    assert_eq!(agent([say("hi")]).build().run("go").await.ending(), Ending::Done);
    assert_eq!(seen.lock().unwrap()["invoke_agent"]["otel.status_code"], "OK");
}
