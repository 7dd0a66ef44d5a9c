//! Our own A2A backend against our own server: a stop outside ends the work inside, and both receipts say so.

use safepoint::{
    Agent, Outcome, StopRequest,
    receipt::{RemoteStopState, StopSupport},
};
use safepoint_remote::a2a::A2a;
use safepoint_testkit::{script::Reply, wait::InTime as _};
use secrecy::SecretString;
use serde_json::json;

use super::{ours, over, state};
use crate::world::{World, says, served};

/// The agent of this world, as an agent of another program.
async fn remote(world: &World) -> A2a {
    let url = format!("http://{}/a2a/helper/", world.client.address);
    let token = SecretString::from(world.client.token.clone());
    // It ends its work before it says so.
    let peer = A2a::at(&url).unwrap().bearer(&token).unwrap().grade(StopSupport::Hard);
    peer.discover().in_time("the card").await.unwrap()
}

/// S13.5, S13.19: the turn outside is stopped, the socket of the model inside closes, and each receipt has its stop.
#[tokio::test]
async fn a_stop_outside_ends_the_work_inside() {
    let (model, agent) = served([]).await;
    let mut gate = model.gate();
    let world = over(agent).await;
    let run = Agent::remote(remote(&world).await).build().run("Go.").detach();
    let request = gate.request().await;
    run.stop(StopRequest::now());
    let outcome = run.done().in_time("the end outside").await;
    assert!(matches!(outcome, Outcome::Stopped(..)), "{outcome:?}");
    request.peer_closed().in_time("the end of the model's connection").await;
    drop(run.quiet().in_time("quiet outside").await);
    let receipt = serde_json::to_value(outcome.receipt()).unwrap();
    let remote = receipt["calls"][0]["remote"].clone();
    assert_eq!(remote["stop"], json!(RemoteStopState::Confirmed), "{receipt}");
    let task = world.client.task(remote["task"].as_str().unwrap()).await;
    assert_eq!((state(&task), &ours(&task)["quiet"]), ("TASK_STATE_CANCELED", &json!(true)), "{task}");
    let inside = world.client.get(ours(&task)["receipt"].as_str().unwrap()).await.body;
    assert_eq!(inside["receipt"]["ending"], "stopped", "{inside}");
    world.end().await;
}

/// S13.19: what the agent says is the answer, streamed as it comes.
#[tokio::test]
async fn our_backend_has_the_answer_of_our_server() {
    let world = over(says([Reply::pieces(["Lis", "bon."])]).build()).await;
    let outcome = Agent::remote(remote(&world).await).build().run("Portugal?").in_time("the answer").await;
    assert_eq!(outcome.answer(), Some("Lisbon."), "{outcome:?}");
    world.end().await;
}
