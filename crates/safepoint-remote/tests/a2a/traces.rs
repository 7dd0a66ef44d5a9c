//! What a peer is told of the trace that it works in.

use safepoint::{
    Agent,
    raw::trace::{self, Propagator, TraceContext},
};
use safepoint_testkit::{
    a2a::{A2aManners, A2aWire, WorkStep},
    invariants::Invariants,
};
use tracing::{Span, subscriber::NoSubscriber};

use super::world::{peer, server};

/// Names the spans of calls by their numbers.
struct Numbers;

impl Propagator for Numbers {
    fn set_parent(&self, _span: &Span, _parent: &TraceContext) {}
    fn link(&self, _span: &Span, _to: &TraceContext) {}
    fn context(&self, span: &Span) -> Option<TraceContext> {
        span.metadata().filter(|span| span.name() == "execute_tool")?;
        let text = format!("00-0af7651916cd43dd8448eb211c80319c-{:016x}-01", span.id()?.into_u64());
        TraceContext::parse(&text).map(|context| context.with_state("ours=1"))
    }
}

/// S11.14: each request to an agent names the span of the call, and none where nothing is traced.
#[tokio::test]
async fn a_peer_is_asked_in_the_span_of_the_call() {
    assert!(trace::install(Numbers));
    // For all threads: a place that another test's thread meets first is enabled as that thread has it. The second
    // subscriber, which comes first here, makes `tracing` ask again about places that were met before the first.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
    for is_traced in [false, true] {
        let guard = (!is_traced).then(|| tracing::subscriber::set_default(NoSubscriber::new()));
        let server = server(A2aManners::honest(A2aWire::V1).plan([WorkStep::Say("done".into())]));
        let handle = Agent::remote(peer(&server)).build().run("go").detach();
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("done"));
        let named = server.traces();
        assert_eq!(!named.is_empty(), is_traced, "{named:?}");
        assert!(
            named.iter().all(|name| *name == named[0] && TraceContext::parse(name).is_some()),
            "{named:?}"
        );
        drop(guard);
    }
}
