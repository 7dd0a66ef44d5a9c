//! What servers want of a request: what they may answer with, an id of its own, and what their version has.

use std::collections::HashSet;

use futures_util::future::join;
use safepoint::Agent;
use safepoint_testkit::{
    a2a::{A2aManners, A2aSeen, A2aWire, Tells},
    invariants::Invariants,
    wait::InTime as _,
};

use super::world::{peer, server};

/// S10.41: a server that answers a message with JSON refuses who takes only streams (406), as Spring's does.
#[tokio::test]
async fn a_message_may_be_answered_with_json() {
    for wire in [A2aWire::V1, A2aWire::V03, A2aWire::V02] {
        let server = server(A2aManners::honest(wire).tells(Tells::Looks));
        server.let_all_on();
        let handle = Agent::remote(peer(&server)).build().run("do it").detach();
        let closed = Invariants::of(&handle).check().await.unwrap();
        assert_eq!(closed.outcome.answer(), Some("half done"), "{wire:?}");
    }
}

/// S10.41: a server that knows its streams by the ids of their requests, as Embabel's does, has two runs at a time, each of
/// which ends; and no two requests have the same id.
#[tokio::test]
async fn no_two_requests_have_the_same_id() {
    let server = server(A2aManners::like_embabel());
    let run = || Agent::remote(peer(&server)).build().run("do it").detach();
    let (one, two) = (run(), run());
    server.came(2).await;
    server.let_all_on();
    let (one, two) = join(one.done(), two.done()).in_time("each of them ends").await;
    assert_eq!([one.answer(), two.answer()], [Some("half done"); 2]);
    let ids = server.ids();
    let different: HashSet<String> = ids.iter().map(ToString::to_string).collect();
    assert_eq!((ids.len(), different.len()), (2, 2), "{ids:?}");
}

/// S10.41: a server of 0.2.5 has its card at the older place, and takes no message that does not say what may be answered.
#[tokio::test]
async fn a_server_of_0_2_5_is_spoken_to_as_it_is() {
    let server = server(A2aManners::honest(A2aWire::V02));
    server.let_all_on();
    let handle = Agent::remote(peer(&server)).build().run("do it").detach();
    let closed = Invariants::of(&handle).check().await.unwrap();
    assert_eq!(closed.outcome.answer(), Some("half done"));
    let seen = server.seen();
    let message = seen.iter().find_map(|seen| match seen {
        A2aSeen::Asked(method, params) if method == "SendStreamingMessage" => Some(params),
        _ => None,
    });
    assert!(message.unwrap()["configuration"]["acceptedOutputModes"][0].is_string());
}
