//! Servers whose sessions come by the job queue in their database.

use std::{fs, time::Instant};

use safepoint_testkit::wait;
use serde_json::Value;

use super::{
    servers::{asked, begun, row, runs},
    world::{Server, World, said},
};

const GRAPHILE: [&str; 2] = ["--placement", "graphile"];

fn serve(world: &World, node: &str) -> Server {
    world.serving(&[&["--node", node][..], &GRAPHILE].concat(), node)
}

/// Waits until another node has it; which.
async fn taken_from(world: &World, session: &str, node: &str) -> String {
    let look = async || {
        let row = row(world, session).await;
        let holder = row["owner"]["node_name"].as_str().filter(|holder| *holder != node).map(str::to_owned);
        holder.ok_or(row)
    };
    wait::asked(format_args!("{session} is taken from {node}"), look).await
}

/// Waits until the turn of this item is over.
async fn is_done(world: &World, session: &str, turns: usize) {
    let look = || async {
        let traced = world.does(&["trace", session, "--json"]).await.lines();
        let is_done = |line: &&Value| line["type"] == "turn" && line["state"] == "completed";
        let done = traced.iter().filter(is_done).count();
        if done == turns { Ok(()) } else { Err(traced) }
    };
    wait::asked(format_args!("{turns} turns of {session} are done"), look).await;
}

fn log(world: &World, node: &str) -> String {
    fs::read_to_string(world.file(&format!("{node}.log"))).unwrap()
}

/// S7.47, S7.71: a server that is killed loses its sessions to another one, and what a command pushes is taken by the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_a_killed_server_come_by_the_queue() {
    let world = World::new();
    let (one, two) = (serve(&world, "one"), serve(&world, "two"));
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(begun(&one).await);
    }
    for session in &sessions {
        runs(&world, session).await;
    }
    let killed = Instant::now();
    one.kill();
    for session in &sessions {
        assert_eq!(taken_from(&world, session, "one").await, "two");
    }
    println!("sessions of a killed server were taken by the queue after {:?}", killed.elapsed());
    two.end();
    world.has_no_password();
}

/// S7.70, S7.71: the tables of the queue are dropped under servers: what is due is taken all the same, and the operator learns of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_take_what_is_due_without_the_queue() {
    let world = World::new();
    let first = serve(&world, "one");
    let session = asked(&first, "hello").await;
    is_done(&world, &session, 1).await;
    first.end();
    world.does(&["push", &session, "again"]).await;
    let two = serve(&world, "two");
    is_done(&world, &session, 2).await;
    two.end();
    let three = serve(&world, "three");
    world.drop_schema("safepoint_work").await;
    wait::so("the operator learns of it", || log(&world, "three").contains("warning: the placement is away"))
        .await;
    world.does(&["push", &session, "and again"]).await;
    is_done(&world, &session, 3).await;
    wait::so("and of its end", || log(&world, "three").contains("The placement is back")).await;
    three.end();
    world.has_no_password();
}

/// S7.71: a file has no queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_needs_a_database() {
    let world = World::new();
    let (file, tokens) = (world.file("store.db"), world.file("own.toml"));
    let serve = ["serve", "--listen", "127.0.0.1:0", "--no-project", "--tokens", &tokens, "--store", &file];
    let refused = said(world.binary(&[&serve[..], &GRAPHILE].concat())).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("--store postgres://"), "{refused:?}");
    fs::write(world.file("config.toml"), "[server]\nplacement = \"graphile\"\n").unwrap();
    let config = world.file("config.toml");
    let refused = said(world.binary(&[&serve[..], &["--config", &config]].concat())).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("`graphile`"), "{refused:?}");
}

/// S7.70, S7.72: an engine that is not there delays nothing, and one that others could use is refused.
#[cfg(feature = "restate")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_works_without_its_engine() {
    let world = World::new();
    let settings = |listen: &str| {
        format!(
            "[server]\nplacement = \"restate=http://127.0.0.1:1\"\n[server.restate]\nlisten = \"{listen}\"\n"
        )
    };
    let config = world.file("config.toml");
    fs::write(&config, settings("127.0.0.1:0")).unwrap();
    let first = world.serving(&["--node", "one", "--config", &config], "one");
    let session = asked(&first, "hello").await;
    is_done(&world, &session, 1).await;
    first.end();
    world.does(&["push", &session, "again"]).await;
    let two = world.serving(&["--node", "two", "--config", &config], "two");
    is_done(&world, &session, 2).await;
    assert!(
        log(&world, "two").contains("Listening for Restate at http://127.0.0.1:"),
        "{}",
        log(&world, "two")
    );
    assert!(
        log(&world, "two").contains("cannot reach the ingress http://127.0.0.1:1/"),
        "{}",
        log(&world, "two")
    );
    two.end();
    fs::write(&config, settings("0.0.0.0:0")).unwrap();
    let tokens = world.file("own.toml");
    let serve =
        ["serve", "--listen", "127.0.0.1:0", "--no-project", "--tokens", &tokens, "--config", &config];
    let refused = world.says(&serve).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("identity_key"), "{refused:?}");
}
