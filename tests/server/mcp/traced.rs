//! Calls in traces: the turn that a call begins hangs below the span that the call names.

use safepoint_testkit::script::Reply;
use serde_json::{Value, json};

use super::{call, peer::Peer, rpc, text, world};
use crate::{
    traces::{asked_about, context, traced},
    world::says,
};

/// A call that names this span.
fn within(span: &str) -> Value {
    let mut params = call("Go.");
    params["_meta"] = json!({"traceparent": span, "tracestate": "theirs=1"});
    params
}

/// S13.40: the turn of a call hangs below the span that its `_meta` names, over both transports, and also where the header of its request
/// names another one; below that one where the call names none that is one.
#[tokio::test]
async fn a_turn_hangs_below_the_span_of_its_call() {
    let _traced = traced();
    let world = world(says((0..4).map(|_| Reply::text("Hi.")))).await;
    let (piped, posted, outer, alone) = (context(0xc1), context(0xc2), context(0xc3), context(0xc4));
    let mut peer = Peer::of(&world, json!({})).await;
    assert_eq!(text(&peer.call(within(&piped)).await), "Hi.");
    peer.end().await;
    let session = world.client.mcp_session(json!({})).await;
    for (header, call) in [(&outer, within(&posted)), (&alone, within("00-none"))] {
        let headers = [rpc::ACCEPT, ("mcp-session-id", &*session), ("traceparent", &**header)];
        let message = rpc::request(1, "tools/call", call);
        let reply = world.client.send("POST", rpc::DOOR, &headers, Some(&message)).await;
        let answer = rpc::messages(&reply).into_iter().find(|said| said["id"] == 1).unwrap();
        assert_eq!(text(&answer["result"]), "Hi.", "{answer}");
    }
    let run = "invoke_agent";
    assert_eq!(
        asked_about(&[&piped, &posted, &outer, "00-none", &alone]),
        [("parent", run, piped.clone()), ("parent", run, posted.clone()), ("parent", run, alone.clone())]
    );
    world.end().await;
}
