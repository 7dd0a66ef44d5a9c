//! What the queue brings, and to whom.

use std::collections::BTreeMap;

use safepoint::store::Store as _;
use safepoint_nodes::TakeResult;
use safepoint_testkit::wait;

use super::world::World;
use crate::nodes::QueueNode;

/// How many of each there are.
fn counted<T: Ord>(all: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counted = BTreeMap::new();
    for one in all {
        *counted.entry(one).or_default() += 1;
    }
    counted
}

/// S7.71: a wake reaches a node by a job, which is gone once the node has the session in hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_reaches_a_node_by_a_job() {
    let world = World::new().await;
    let (one, two) = (world.node(&["helper"], 0).await, world.node(&["helper"], 10).await);
    world.due("", &["a"]).await;
    world.due("helper", &["b"]).await;
    one.wake("", &["a"]).await;
    one.wake("helper", &["b"]).await;
    two.owns(&["a", "b"]).await;
    wait::asked("no job is left", async || match world.jobs().await {
        0 => Ok(()),
        left => Err(left),
    })
    .await;
    assert_eq!((one.owned(), one.failure(), two.failure()), (Vec::new(), None, None));
}

/// S7.61, S7.71: however many nodes wake a session, and however often, it has one owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doubled_wakes_make_one_owner() {
    const SESSIONS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let world = World::new().await;
    let asks = world.node(&[], 0).await;
    world.due("", &SESSIONS).await;
    for _ in 0..2 {
        asks.wake("", &SESSIONS).await;
    }
    assert_eq!(world.jobs().await, 8, "a session has one job that waits");
    let nodes = [world.node(&[], 20).await, world.node(&[], 20).await];
    for _ in 0..5 {
        for node in &nodes {
            node.wake("", &SESSIONS).await;
        }
    }
    let owned = || nodes.iter().flat_map(QueueNode::owned).collect::<Vec<_>>();
    wait::so("each has an owner", || if owned().len() >= SESSIONS.len() { Ok(()) } else { Err(owned()) })
        .await;
    wait::asked("no job is left", async || world.jobs().await == 0).await;
    assert!(counted(owned()).values().all(|times| *times == 1), "{:?}", owned());
    for session in SESSIONS {
        assert_eq!(world.owners(session).await, 1);
    }
}

/// S7.71: a session of a pool is taken by a node that names it, and one in none by any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_to_a_node_of_its_pool() {
    let world = World::new().await;
    let (gpu, disk) = (world.node(&["gpu", "50%"], 10).await, world.node(&["disk"], 10).await);
    world.due("gpu", &["a"]).await;
    world.due("disk", &["b"]).await;
    world.due("50%", &["c"]).await;
    for (pool, session) in [("gpu", "a"), ("disk", "b"), ("50%", "c")] {
        disk.wake(pool, &[session]).await;
    }
    gpu.owns(&["a", "c"]).await;
    disk.owns(&["b"]).await;
}

/// S7.62, S7.71: a node that is full takes no job; one that waits is taken by another one, and by the first once it has room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_full_leaves_jobs_to_others() {
    const SESSIONS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let world = World::new().await;
    let one = world.node(&[], 2).await;
    world.due("", &SESSIONS).await;
    one.wake("", &SESSIONS).await;
    wait::so("it is full", || one.owned().len() == 2).await;
    let free = "SELECT count(*) FROM safepoint_work._private_jobs WHERE locked_at IS NULL AND attempts < max_attempts";
    wait::asked("the others can be taken", async || match world.count(free).await {
        4 => Ok(()),
        other => Err(other),
    })
    .await;
    one.hands.let_go.add_permits(1);
    wait::so("it has room for one more", || one.owned().len() == 3).await;
    let two = world.node(&[], 10).await;
    wait::so("another one takes the rest", || two.owned().len() == 3).await;
    assert_eq!(one.owned().len(), 3);
    wait::asked("no job is left", async || world.jobs().await == 0).await;
}

/// S7.45, S7.71: a node that drains takes nothing, and what waits is for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_drains_leaves_jobs_to_others() {
    let world = World::new().await;
    let (one, asks) = (world.node(&[], 10).await, world.node(&[], 0).await);
    world.due("", &["a", "b", "c"]).await;
    asks.wake("", &["a"]).await;
    one.owns(&["a"]).await;
    let hands = std::sync::Arc::clone(&one.hands);
    one.drains().await;
    asks.wake("", &["b", "c"]).await;
    let two = world.node(&[], 10).await;
    two.owns(&["b", "c"]).await;
    assert_eq!(hands.takes(), [("a".to_owned(), TakeResult::Released)]);
}

/// S7.47, S7.71: what nodes find due is taken by one of them, once, through the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_is_taken_through_the_queue() {
    let world = World::new().await;
    let nodes = [world.node(&[], 50).await.that_looks(), world.node(&[], 50).await.that_looks()];
    let names: Vec<String> = (0..30).map(|at| format!("s{at}")).collect();
    world.due("", &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let owned = || nodes.iter().flat_map(QueueNode::owned).collect::<Vec<_>>();
    wait::so("each has an owner", || if owned().len() >= names.len() { Ok(()) } else { Err(owned().len()) })
        .await;
    assert!(counted(owned()).values().all(|times| *times == 1), "{:?}", owned());
    for node in nodes {
        node.drains().await;
    }
    let left = world.store.due(100, Vec::new()).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}
