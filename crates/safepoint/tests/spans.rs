//! Spans by the GenAI conventions: a stopped one is neither ok nor error (S11.3, I6).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use safepoint::{
    Outcome, Session, StopRequest,
    receipt::{Ending, QuietReport},
    session::{ChatPlanner, ItemOutcome},
};
use tokio::time::timeout;
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

#[path = "spans/collected.rs"]
mod collected;
#[path = "spans/joined.rs"]
mod joined;
#[path = "spans/stops.rs"]
mod stops;
#[path = "engine/world.rs"]
mod world;

use world::{agent, ask, call_started, does, say};

/// Longer than any wait of these runs; the clock is a controlled one.
const NEVER: Duration = Duration::from_secs(3600);

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

/// S11.3: the conversation of a turn's run is its session; a run without a session is a conversation by itself.
#[tokio::test(start_paused = true)]
async fn the_conversation_of_a_turn_is_its_session() {
    let seen = Seen::default();
    let _default = tracing::subscriber::set_default(tracing_subscriber::registry().with(Keeps(seen.clone())));
    let session: Session<String> = Session::builder(ChatPlanner::new(agent([say("hi")]).build())).start();
    let ticket = session.push("go".to_owned()).unwrap();
    assert!(matches!(ticket.outcome().await, ItemOutcome::Completed(_)));
    let of_turn = seen.lock().unwrap()["invoke_agent"].clone();
    assert_eq!(of_turn["gen_ai.conversation.id"], session.id().as_str());
    assert_ne!(of_turn["safepoint.run"], session.id().as_str());
    let run = agent([say("hi")]).build().run("go");
    let id = run.handle().id().clone();
    assert_eq!(run.await.ending(), Ending::Done);
    let of_run = seen.lock().unwrap()["invoke_agent"].clone();
    assert_eq!((&*of_run["gen_ai.conversation.id"], &*of_run["safepoint.run"]), (id.as_str(), id.as_str()));
}

/// Panics once, where a span of this name begins or is given its end.
struct Bursts {
    span: &'static str,
    at_end: bool,
    is_over: AtomicBool,
}

impl Bursts {
    fn burst(&self, at_end: bool, name: &str) {
        let is_here = (self.span, self.at_end) == (name, at_end);
        assert!(!is_here || self.is_over.swap(true, Ordering::SeqCst), "the subscriber panics");
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Bursts {
    fn on_new_span(&self, span: &tracing::span::Attributes<'_>, _: &tracing::span::Id, _: Context<'_, S>) {
        self.burst(false, span.metadata().name());
    }
    fn on_record(&self, id: &tracing::span::Id, _: &tracing::span::Record<'_>, cx: Context<'_, S>) {
        self.burst(true, cx.span(id).expect("the span is open").name());
    }
}

/// S2.16, S12.30: what subscribes to spans may panic between the record of a start and what begins by it. The run then fails
/// with an account, and nothing waits for what never began.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_leaves_no_run_behind() {
    for (span, at_end) in [("chat", true), ("chat", false), ("execute_tool", false)] {
        let bursts = Bursts { span, at_end, is_over: AtomicBool::new(false) };
        let _default = tracing::subscriber::set_default(tracing_subscriber::registry().with(bursts));
        let work = does("work", |_| async { Ok("done".into()) });
        let handle = agent([ask(&["work", "work"]), say("end")]).tool(work).build().run("go").detach();
        let done = timeout(NEVER, handle.done()).await;
        let outcome = done.unwrap_or_else(|_| panic!("{span}, {at_end}: the run never settled"));
        let Outcome::Failed(failed) = &outcome else { panic!("{span}, {at_end}: {outcome:?}") };
        assert_eq!(failed.code(), "callback", "{span}, {at_end}");
        let quiet = timeout(NEVER, handle.quiet()).await.expect("no word on its quiet");
        assert!(matches!(quiet, QuietReport::Quiet(_)), "{span}, {at_end}: {quiet:?}");
    }
}
