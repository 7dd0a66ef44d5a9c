//! Requests in traces: the turns that they begin hang below them, and models are asked in the spans of their calls.

use std::sync::{Mutex, OnceLock};

use safepoint::raw::trace::{self, Propagator, TraceContext};
use safepoint_testkit::{script::Reply, server::ModelServer, wait::InTime as _};
use serde_json::json;
use tracing::{Dispatch, Metadata, Span, subscriber::DefaultGuard};

use super::world::{World, served};

/// What the propagator was asked: what, of which span, and where to.
pub(super) type Asked = (&'static str, &'static str, String);

static ASKED: Mutex<Vec<Asked>> = Mutex::new(Vec::new());
/// Kept for the whole program: beside one subscriber alone, a place that a test without any meets first would be enabled for none.
static BESIDE: OnceLock<Dispatch> = OnceLock::new();

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
        let name = span.metadata().map(Metadata::name)?;
        assert_eq!(name, "chat", "only a model is asked here");
        TraceContext::parse(&context(span.id()?.into_u64()))
    }
}

/// This thread is traced.
pub(super) fn traced() -> DefaultGuard {
    BESIDE.get_or_init(|| {
        assert!(trace::install(Notes));
        Dispatch::new(tracing_subscriber::registry())
    });
    tracing::subscriber::set_default(tracing_subscriber::registry())
}

fn note(what: &'static str, span: &Span, context: &TraceContext) {
    let name = span.metadata().map_or("none", Metadata::name);
    ASKED.lock().unwrap().push((what, name, context.traceparent().to_owned()));
}

pub(super) fn context(number: u64) -> String {
    format!("00-0af7651916cd43dd8448eb211c80319c-{number:016x}-01")
}

/// What was asked about these contexts: other tests of this program bring none.
pub(super) fn asked_about(contexts: &[&str]) -> Vec<Asked> {
    let asked = ASKED.lock().unwrap();
    asked.iter().filter(|(_, _, context)| contexts.contains(&context.as_str())).cloned().collect()
}

/// The contexts that a model was asked in.
fn named(model: &ModelServer) -> Vec<Option<String>> {
    let requests = model.requests();
    requests.iter().map(|request| request.header("traceparent").map(ToOwned::to_owned)).collect()
}

/// S11.14: a turn is below the request that brought its item, with or without a session before it; a steer is a link, and what is
/// no trace context is none. The model is asked in the span of its call.
#[tokio::test]
async fn a_turn_hangs_below_the_request_of_its_item() {
    let _traced = traced();
    let (first, second, steer) = (context(0xb1), context(0xb2), context(0xb3));
    let (model, agent) =
        served([Reply::text("One."), Reply::text("Two."), Reply::text("Three."), Reply::text("Four.")]).await;
    let world = World::of(agent).await;
    let header = [("traceparent", first.as_str())];
    let body = json!({"agent": "helper", "item": {"text": "first"}});
    let made = world.client.send("POST", "/v1/sessions", &header, Some(&body)).await;
    let session = made.body["id"].as_str().unwrap().to_owned();
    world.rest(&session, 1).await;
    let items = format!("/v1/sessions/{session}/items");
    for (number, context, text) in [(2, second.as_str(), "second"), (3, "00-none", "third")] {
        let body = json!({"text": text});
        let pushed = world
            .client
            .send("POST", &items, &[("traceparent", context)], Some(&body))
            .in_time("an item")
            .await;
        assert_eq!(pushed.status, 202, "{pushed:?}");
        world.rest(&session, number).await;
    }
    // Without a turn to steer it begins one.
    let body = json!({"text": "fourth", "policy": "steer"});
    let pushed = world.client.send("POST", &items, &[("traceparent", steer.as_str())], Some(&body)).await;
    assert_eq!(pushed.status, 202, "{pushed:?}");
    world.rest(&session, 4).await;
    let run = "invoke_agent";
    assert_eq!(
        asked_about(&[&first, &second, "00-none", &steer]),
        [("parent", run, first.clone()), ("parent", run, second.clone()), ("parent", run, steer.clone())]
    );
    let named = named(&model);
    assert_eq!(named.len(), 4);
    assert!(
        named.iter().all(|name| name.as_ref().is_some_and(|name| TraceContext::parse(name).is_some())),
        "{named:?}"
    );
    world.end().await;
}

/// S11.14: a turn that an item steers is linked to the request that brought the item.
#[tokio::test]
async fn a_steered_turn_is_linked() {
    let _traced = traced();
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = World::of(agent).await;
    let session = world.session("go").await;
    drop(gate.request().in_time("the model is asked").await);
    let steer = context(0xb4);
    let body = json!({"text": "only the tests", "policy": "steer"});
    let items = format!("/v1/sessions/{session}/items");
    let pushed = world.client.send("POST", &items, &[("traceparent", steer.as_str())], Some(&body)).await;
    assert_eq!(pushed.status, 202, "{pushed:?}");
    assert_eq!(asked_about(&[&steer]), [("link", "invoke_agent", steer.clone())]);
    world.end().await;
}
