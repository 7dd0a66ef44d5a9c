//! Runs in the traces of others: what hangs where, and what a request takes along.

use std::sync::{Arc, Mutex, Once};

use safepoint::{
    raw::trace::{self, Propagator, RunTrace, TraceContext},
    receipt::Ending,
};
use serde_json::json;
use tracing::Span;

use super::{
    collected::Spans,
    world::{agent, ask, ask_with, does, say},
};

/// A context whose span has this number.
fn context(number: u64) -> TraceContext {
    let text = format!("00-0af7651916cd43dd8448eb211c80319c-{number:016x}-01");
    TraceContext::parse(&text).expect("it is a context")
}

/// What the propagator was asked: what, of which span, and where to.
type Asked = (&'static str, &'static str, TraceContext);

static ASKED: Mutex<Vec<Asked>> = Mutex::new(Vec::new());
static INSTALLED: Once = Once::new();

/// Notes what it is asked, and names each span by its number.
struct Notes;

impl Propagator for Notes {
    fn set_parent(&self, span: &Span, parent: &TraceContext) {
        note("parent", span, parent);
    }
    fn link(&self, span: &Span, to: &TraceContext) {
        note("link", span, to);
    }
    fn context(&self, span: &Span) -> Option<TraceContext> {
        Some(context(span.id()?.into_u64()))
    }
}

fn note(what: &'static str, span: &Span, context: &TraceContext) {
    let name = span.metadata().map_or("none", tracing::Metadata::name);
    ASKED.lock().unwrap().push((what, name, context.clone()));
}

/// What was asked about these contexts. Other tests of this program are asked about others.
fn asked_about(contexts: &[TraceContext]) -> Vec<Asked> {
    let asked = ASKED.lock().unwrap();
    asked.iter().filter(|(_, _, context)| contexts.contains(context)).cloned().collect()
}

/// S11.14: the root run of a tree hangs below the span that it was given, once; the runs below it hang below it; links that
/// came before it and while it ran are its own.
#[tokio::test(start_paused = true)]
async fn a_run_hangs_below_what_it_was_given() {
    INSTALLED.call_once(|| assert!(trace::install(Notes)));
    let (_spans, _guard) = Spans::collect();
    let (above, early, late) = (context(0xa1), context(0xa2), context(0xa3));
    let joint = RunTrace::below(above.clone());
    joint.link(early.clone());
    let linked = (joint.clone(), late.clone());
    let work = does("work", move |_| {
        linked.0.link(linked.1.clone());
        async { Ok("done".into()) }
    });
    let child = agent([ask(&["work"]), say("one")]).tool(work).build().as_subagent("helper", "for a test");
    let run = agent([ask_with(&[("helper", json!({"task": "do it"}))]), say("two")])
        .child(child)
        .build()
        .run("go")
        .with(joint.clone());
    let handle = run.detach();
    assert_eq!(handle.done().await.ending(), Ending::Done);
    handle.quiet().await;
    let run = "invoke_agent";
    assert_eq!(
        asked_about(&[above.clone(), early.clone(), late.clone()]),
        [("parent", run, above), ("link", run, early), ("link", run, late)]
    );
    tokio::task::yield_now().await;
    let over = context(0xa4);
    joint.link(over.clone());
    assert_eq!(asked_about(&[over]), [], "the run is over");
}

/// S11.14: what a tool's body sends takes the context of its call's span along, and nothing where nothing is traced.
#[tokio::test(start_paused = true)]
async fn a_body_is_in_the_span_of_its_call() {
    INSTALLED.call_once(|| assert!(trace::install(Notes)));
    for is_traced in [true, false] {
        let guard = is_traced.then(Spans::collect);
        let seen = Arc::new(Mutex::new(None));
        let sees = Arc::clone(&seen);
        let work = does("work", move |_| {
            let sees = Arc::clone(&sees);
            async move {
                tokio::task::yield_now().await;
                let name = Span::current().metadata().map(tracing::Metadata::name);
                *sees.lock().unwrap() = Some((name, trace::current()));
                Ok("done".into())
            }
        });
        let outcome = agent([ask(&["work"]), say("end")]).tool(work).build().run("go").await;
        assert_eq!(outcome.ending(), Ending::Done);
        let (name, context) = seen.lock().unwrap().clone().expect("the body ran");
        assert_eq!((name, context.is_some()), (is_traced.then_some("execute_tool"), is_traced));
        drop(guard);
    }
}
