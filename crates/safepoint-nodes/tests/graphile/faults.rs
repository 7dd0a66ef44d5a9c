//! What may be wrong with the queue: no session waits for it.

use safepoint::{
    raw::store::{Durability, Liveness, Write},
    store::{NewNode, Store as _},
};
use safepoint_nodes::{GraphileQueue, TakeResult};
use safepoint_stores::postgres::{PostgresOptions, StoreClock};
use safepoint_testkit::{
    store_suite::{self, Population, Time, item, owner},
    wait,
};
use std::time::Duration;

use super::world::World;
use crate::nodes::QueueNode;

/// S7.70, S7.71: a job that died with its node costs the session at most the next look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_died_with_its_node_costs_one_look() {
    let world = World::new().await;
    let asks = world.node(&[], 0).await;
    world.due("", &["a"]).await;
    // It names the session, and so hides it from others for five seconds.
    assert_eq!(world.store.due(10, Vec::new()).await.unwrap().len(), 1);
    asks.wake("", &["a"]).await;
    world
        .sql(
            "UPDATE safepoint_work._private_jobs SET locked_by = 'graphile_worker_that_was_killed', locked_at = now(), attempts = 1",
        )
        .await;
    let one = world.node(&[], 10).await.that_looks();
    one.owns(&["a"]).await;
    assert_eq!(world.owners("a").await, 1);
}

/// S7.70, S7.71: the tables of the queue go while nodes work: what is due is taken all the same, and the tables are made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_are_dropped_delay_nothing_for_long() {
    let world = World::new().await;
    let (role, name) = (world.role("node").await, &world.name);
    world.sql(&format!("GRANT CREATE ON DATABASE {name} TO {role}")).await;
    let queue = GraphileQueue::open(&world.address_of(&role)).await.unwrap();
    let one = QueueNode::of(&world.store(), queue, &[], 50).await.that_looks();
    world.due("", &["a"]).await;
    one.owns(&["a"]).await;
    world
        .sql(&format!("REVOKE CREATE ON DATABASE {name} FROM {role}; DROP SCHEMA safepoint_work CASCADE"))
        .await;
    world.due("", &["b"]).await;
    one.owns(&["a", "b"]).await;
    wait::so("it is known that the queue is away", || one.failure().is_some()).await;
    world.due("", &["c"]).await;
    one.owns(&["a", "b", "c"]).await;
    world.sql(&format!("GRANT CREATE ON DATABASE {name} TO {role}")).await;
    wait::so("the tables are there again", || one.failure().is_none()).await;
    world.due("", &["d"]).await;
    one.owns(&["a", "b", "c", "d"]).await;
    assert_eq!(world.jobs().await, 0);
}

/// S7.71: jobs that no node wrote are taken for none, and end nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_no_node_wrote_do_no_harm() {
    let world = World::new().await;
    let one = world.node(&["gpu"], 10).await;
    let long = "x".repeat(100_000);
    for payload in [
        "{}",
        "[]",
        "null",
        "7",
        r#"{"session": 7}"#,
        r#"{"session": "%ff"}"#,
        r#"{"session": "gone", "pool": "gpu"}"#,
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([format!(r#"{{"session": "{long}", "tries": 4}}"#)])
    {
        world.sql(&format!("SELECT safepoint_work.add_job('safepoint_take', '{payload}')")).await;
    }
    world.sql("SELECT safepoint_work.add_job('of_another_program', '{}')").await;
    world.due("", &["a"]).await;
    one.wake("", &["a"]).await;
    one.owns(&["a"]).await;
    let waiting = "SELECT count(*) FROM safepoint_work._private_jobs j JOIN safepoint_work._private_tasks t ON t.id = j.task_id \
         WHERE t.identifier = 'safepoint_take' AND j.attempts < j.max_attempts AND j.run_at <= now()";
    wait::asked("none of them waits", async || match world.count(waiting).await {
        0 => Ok(()),
        left => Err(left),
    })
    .await;
    assert_eq!(world.count("SELECT count(*) FROM safepoint_work._private_jobs j JOIN safepoint_work._private_tasks t ON t.id = j.task_id WHERE t.identifier = 'of_another_program'").await, 1);
    let takes = one.hands.takes();
    assert!(takes.iter().all(|(_, result)| *result != TakeResult::Released), "{takes:?}");
    assert_eq!(one.failure(), None);
}

/// S7.46, S7.71: a session whose owners died five times in a turn is parked, and a job for it takes nothing and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_kills_its_owners_is_parked_whatever_the_queue_brings() {
    const DEATHS: u32 = 5;
    const LEASE: Duration = Duration::from_secs(60);
    let (time, lives) = (Time::default(), Population::default());
    let mut options = PostgresOptions::default();
    (options.outside, options.clock) = (store_suite::outside(&time, &lives), StoreClock::Environment);
    let world = World::with(options).await;
    world.due("", &["a"]).await;
    let session = "a".into();
    for pid in 1..=DEATHS {
        lives.say(pid, Liveness::Alive);
        let node = world.store.join(NewNode::of(owner(pid), LEASE)).await.unwrap();
        let lease = world.store.acquire(&session, &node).await.unwrap();
        world.store.append(&lease, vec![Write::AtWork], Durability::Durable).await.unwrap();
        lives.say(pid, Liveness::Dead);
        world.store.bury().await.unwrap();
        time.pass(LEASE);
    }
    world.store.push(&session, item("2", "again")).await.unwrap();
    let one = world.node(&[], 10).await.that_looks();
    one.wake("", &["a"]).await;
    let parked = [("a".to_owned(), TakeResult::Parked)];
    wait::so("the wake is refused", || one.hands.takes() == parked).await;
    let said = world.store.acquire(&session, &one.hands.node).await.unwrap_err().to_string();
    assert!(said.contains("parked") && said.contains("five times"), "{said}");
    world.due("", &["b"]).await;
    one.owns(&["b"]).await;
    world.store.unpark(&session).await.unwrap();
    one.owns(&["a", "b"]).await;
}
