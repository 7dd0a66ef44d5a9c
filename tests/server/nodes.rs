//! A server as a node of its store: it comes back after its node was declared dead, and drains when its node is to.

use std::sync::Arc;

use safepoint::{
    approval::ApprovalMode,
    raw::store::{Environment, Leaving, Liveness, NodeState},
    store::{MemoryStore, Store},
};
use safepoint_server::Host;
use safepoint_testkit::{
    script::Reply,
    store_suite::{Population, Time, outside},
    tools::GateTools,
    wait::{self, InTime as _},
};
use serde_json::json;

use super::world::{World, says};

/// A store for which this process can be dead; time passes.
fn mortal() -> (Arc<dyn Store>, Population) {
    let lives = Population::default();
    let Environment { clock, uptime, .. } = Environment::default();
    let outside = Environment { clock, uptime, ..outside(&Time::default(), &lives) };
    (Arc::new(MemoryStore::new(outside)), lives)
}

/// Declares every node dead that is there.
async fn bury_all(store: &Arc<dyn Store>, lives: &Population) {
    lives.say(std::process::id(), Liveness::Dead);
    assert_eq!(store.bury().await.unwrap().len(), 1);
    lives.say(std::process::id(), Liveness::Alive);
}

/// S13.58, S7.13, S7.14: a server whose node was declared dead ends what ran, with the code `lease`, comes back under its name, takes that
/// up and serves as before.
#[tokio::test]
async fn a_server_whose_node_was_declared_dead_joins_again() {
    let (store, lives) = mortal();
    let tools = GateTools::new();
    let replies = [Reply::call("pay", json!({})), Reply::text("here again"), Reply::text("and new")];
    let agent = says(replies).approvals(ApprovalMode::Auto).tool(tools.gated("pay")).build();
    let host =
        Host::builder(Arc::clone(&store)).name("worker-1").agent("helper", agent).start().await.unwrap();
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let world = World::at(host, Arc::clone(&store), folder, |access| access).await;
    let session = world.session("go").await;
    tools.gate().came(1).in_time("the call").await;
    bury_all(&store, &lives).await;
    let is_back = async || {
        let nodes = store.nodes().await.unwrap();
        let names: Vec<(&str, NodeState)> =
            nodes.iter().map(|row| (row.node.name.as_str(), row.state)).collect();
        names == [("worker-1", NodeState::Buried), ("worker-1", NodeState::Serving)]
    };
    wait::asked("the server has joined again", is_back).await;
    let cut = world.rest(&session, 1).in_time("the end of what was cut").await;
    assert_eq!(cut["outcome"], "crashed", "{cut:?}");
    let new = world.session("new").await;
    assert_eq!(world.rest(&new, 1).in_time("what a new session answers").await["outcome"], "completed");
    world.end().await;
}

/// S13.58, S7.45: any process may ask a node to drain; its server does.
#[tokio::test]
async fn a_server_whose_node_is_asked_to_drain_drains() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let host = Host::builder(Arc::clone(&store)).agent("helper", says([]).build()).start().await.unwrap();
    let node = store.nodes().await.unwrap().remove(0).node.id;
    store.leave(&node, Leaving::Draining).await.unwrap();
    host.drain_asked().in_time("the host learns that it is to drain").await;
}
