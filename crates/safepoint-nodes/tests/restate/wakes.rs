//! What the engine brings, and what becomes of sessions without it.

use safepoint_testkit::wait;

use super::{address::NodesAddress, world::World};

/// S7.61, S7.72: a wake reaches a node by the engine, one that comes twice makes one owner, and a node takes none of another pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_reaches_a_node_by_the_engine() {
    let world = World::new().await;
    let (one, address) = world.node(&["helper"], 20).await;
    let (asks, _) = world.node(&["helper"], 0).await;
    world.engine.register(address).await;
    world.due("", &["a", "a/b?c", "ü"]).await;
    world.due("helper", &["h"]).await;
    world.due("gpu", &["g"]).await;
    for _ in 0..3 {
        asks.wake("", &["a", "a/b?c", "ü"]).await;
    }
    asks.wake("gpu", &["g"]).await;
    asks.wake("helper", &["h"]).await;
    one.owns(&["a", "a/b?c", "h", "ü"]).await;
    for session in ["a", "a/b?c", "h", "ü"] {
        assert_eq!(world.owners(session).await, 1, "{session}");
    }
    assert_eq!((world.owners("g").await, one.failure(), asks.failure()), (0, None, None));
}

/// S7.62, S7.45, S7.72: what a full node cannot take is named again and taken by another one, and one that drains takes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_cannot_take_is_taken_by_another_one() {
    let world = World::new().await;
    let (one, first) = world.node(&[], 1).await;
    let (two, second) = world.node(&[], 20).await;
    let nodes = NodesAddress::of(&[first, second]).await;
    world.engine.register(nodes.address).await;
    world.due("", &["a"]).await;
    one.wake("", &["a"]).await;
    one.owns(&["a"]).await;
    world.due("", &["b"]).await;
    let two = two.that_looks();
    two.owns(&["b"]).await;
    assert_eq!(one.owned(), ["a"]);
    one.drains().await;
    world.due("", &["c", "d"]).await;
    two.owns(&["b", "c", "d"]).await;
}

/// S7.72: a node that dies takes its connections along, and the engine brings what comes then to another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_turns_to_a_node_that_lives() {
    let world = World::new().await;
    let (one, first) = world.node(&[], 20).await;
    let (two, second) = world.node(&[], 20).await;
    let (asks, _) = world.node(&[], 0).await;
    let nodes = NodesAddress::of(&[first, second]).await;
    world.engine.register(nodes.address).await;
    world.due("", &["a", "b"]).await;
    asks.wake("", &["a"]).await;
    one.owns(&["a"]).await;
    nodes.without(first);
    asks.wake("", &["b"]).await;
    two.owns(&["b"]).await;
    assert_eq!((one.owned(), world.owners("b").await), (vec!["a".to_owned()], 1));
}

/// S7.70, S7.72: no session waits for an engine that is not there, or that knows no nodes; the operator learns why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_waits_for_the_engine() {
    let mut world = World::new().await;
    let (one, address) = world.node(&[], 20).await;
    let one = one.that_looks();
    world.due("", &["a"]).await;
    one.owns(&["a"]).await;
    assert!(one.failure().unwrap().contains("/deployments"), "{:?}", one.failure());
    world.engine.register(address).await;
    world.due("", &["b"]).await;
    one.owns(&["a", "b"]).await;
    let used = async || {
        one.wake("", &["b"]).await;
        one.failure().is_none()
    };
    wait::asked("the engine is used", used).await;
    world.engine.kill();
    world.due("", &["c", "d"]).await;
    one.owns(&["a", "b", "c", "d"]).await;
    assert!(one.failure().unwrap().contains("cannot reach the ingress"), "{:?}", one.failure());
}
