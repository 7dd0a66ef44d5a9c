//! What a node asks of its database while nothing happens.

use std::time::{Duration, Instant};

use safepoint_testkit::wait;
use serde_json::json;

use super::world::World;
use crate::cluster::Cluster;

/// How many statements a second a node may ask at rest.
const MOST: f64 = 8.0;
/// How many sessions it has open: with a statement of each in ten seconds there would be twice as many.
const SESSIONS: usize = 60;
/// How long they are counted.
const WINDOW: Duration = Duration::from_secs(8);

/// S7.66: a node at rest asks the database at most eight statements a second, however many sessions it has open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_at_rest_asks_little() {
    const COUNT: &str =
        "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'";
    const EACH: &str = "SELECT calls, left(query, 90) FROM pg_stat_statements ORDER BY calls DESC LIMIT 8";
    let world = World::on(Cluster::start(&["shared_preload_libraries = 'pg_stat_statements'"]));
    let one = world.node("one");
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        let (status, made) = one.post("/v1/sessions", json!({"item": {"text": "hello"}})).await;
        assert_eq!(status, 201, "{made}");
        sessions.push(made["id"].as_str().unwrap().to_owned());
    }
    for session in &sessions {
        assert_eq!(one.outcome(session, 1).await, "completed");
    }
    assert_eq!(world.holders().await.len(), SESSIONS, "it has all of them open");
    asked(&world, "CREATE EXTENSION pg_stat_statements");
    let counted = || asked(&world, COUNT).trim().parse::<f64>().unwrap();
    // What the turns have still to write is not counted: it is waited until a second has none of it.
    let second = async || {
        let before = counted();
        passed(Duration::from_secs(1)).await;
        let asked = counted() - before;
        if asked <= MOST + 1.0 { Ok(()) } else { Err(asked) }
    };
    wait::asked("the node is at rest", second).await;
    let (before, began) = (counted(), Instant::now());
    passed(WINDOW).await;
    let rate = (counted() - before) / began.elapsed().as_secs_f64();
    assert_eq!(world.holders().await.len(), SESSIONS, "it still has all of them open");
    println!("a node at rest asks {rate:.1} statements a second");
    assert!(rate <= MOST, "{rate:.1} statements a second: {}", asked(&world, EACH));
}

async fn passed(time: Duration) {
    let began = Instant::now();
    wait::so("a time has passed", || began.elapsed() >= time).await;
}

/// What the database says to this.
fn asked(world: &World, sql: &str) -> String {
    let mut command = world.cluster.command("psql");
    command.args([&world.database, "-Atqc", sql]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
