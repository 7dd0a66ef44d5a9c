//! Two servers over one database.

use std::fs;

use safepoint_testkit::wait::{self, InTime as _};
use serde_json::{Value, json};

use super::world::{Server, World, said};

/// A session of this server in which a command runs, by its id.
pub(super) async fn begun(server: &Server) -> String {
    asked(server, "run: sleep 600").await
}

/// A new session of this server with this text, by its id.
pub(super) async fn asked(server: &Server, text: &str) -> String {
    let url = format!("{}/v1/sessions", server.url).parse().unwrap();
    let token = fs::read_to_string(&server.token).unwrap();
    let asked = safepoint_http::shared().unwrap().post(&url);
    let asked =
        asked.header(http::header::AUTHORIZATION, format!("Bearer {}", token.trim()).parse().unwrap());
    let asked = asked.header(http::header::CONTENT_TYPE, "application/json".parse().unwrap());
    let body = json!({"item": {"text": text}});
    let made = asked.body(body.to_string()).send().in_time("a session").await.unwrap();
    assert_eq!(made.status(), 201);
    let made: Value = serde_json::from_slice(&made.bytes().await.unwrap()).unwrap();
    made["id"].as_str().unwrap().to_owned()
}

/// What `sessions ls` says of it.
pub(super) async fn row(world: &World, session: &str) -> Value {
    let listed = world.does(&["sessions", "ls", "--json"]).await.lines();
    listed.into_iter().find(|line| line["session"] == session).unwrap_or_default()
}

/// Waits until its command runs.
pub(super) async fn runs(world: &World, session: &str) {
    let look = || async {
        let traced = world.does(&["trace", session, "--json"]).await.lines();
        let is_call = |line: &Value| line["type"] == "call" && line["ended_at"].is_null();
        if traced.iter().any(is_call) { Ok(()) } else { Err(traced.len()) }
    };
    wait::asked(format_args!("a command of {session} runs"), look).await;
}

/// Waits until its turn was stopped.
async fn is_stopped(world: &World, session: &str) {
    let look = || async {
        let traced = world.does(&["trace", session, "--json"]).await.lines();
        let last = traced.iter().rfind(|line| line["type"] == "turn").cloned().unwrap_or_default();
        if last["state"] == "stopped" { Ok(()) } else { Err(last) }
    };
    wait::asked(format_args!("{session} is stopped"), look).await;
}

/// S7.59: a session of one node is seen and stopped through another one and from the command line; a node drains because it is asked
/// to, whoever asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_a_database() {
    let world = World::new();
    let (one, two) = (world.serve("one"), world.serve("two"));
    let nodes = world.does(&["nodes", "ls", "--json"]).await.lines();
    let named: Vec<_> = nodes.iter().map(|line| (line["name"].as_str(), line["state"].as_str())).collect();
    assert_eq!(named, [(Some("one"), Some("serving")), (Some("two"), Some("serving"))]);
    assert_eq!(nodes[0]["lease_ms"], 4000);

    let (first, second, third) = (begun(&one).await, begun(&one).await, begun(&two).await);
    for session in [&first, &second, &third] {
        runs(&world, session).await;
    }
    assert_eq!(row(&world, &first).await["owner"]["node_name"], "one");
    assert_eq!(row(&world, &third).await["owner"]["node_name"], "two");

    let stopped = said(world.binary(&["stop", &first, "--now", "--server", &two.url])).await;
    assert_eq!(stopped.code, 0, "{stopped:?}");
    is_stopped(&world, &first).await;
    let all = world.does(&["stop", "--all", "--node", "one", "--now", "--json"]).await.lines();
    assert!(all[0]["detail"]["asked"].as_u64() >= Some(1), "{all:?}");
    is_stopped(&world, &second).await;
    world.does(&["stop", &third, "--now"]).await;
    is_stopped(&world, &third).await;

    let traced = world.does(&["trace", &second]).await;
    assert!(traced.out.contains("\n  on one\n"), "{traced:?}");
    let traced = world.does(&["trace", &third, "--json"]).await.lines();
    assert!(traced.iter().any(|line| line["node"]["name"] == "two"), "{traced:?}");

    world.does(&["nodes", "drain", "one"]).await;
    one.ended().await;
    let drained = world.says(&["nodes", "drain", "one"]).await;
    assert_eq!(drained.code, 4, "{drained:?}");
    let none = world.says(&["nodes", "drain", "three"]).await;
    assert_eq!(none.code, 3, "{none:?}");
    two.end();
    world.has_no_password();
}

/// S7.59: a name that is given is had by one; two servers of one machine that are given none have two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_two_servers_have_one_name() {
    let world = World::new();
    let one = world.serve("one");
    let tokens = world.file("own.toml");
    let again = ["serve", "--listen", "127.0.0.1:0", "--tokens", &tokens, "--no-project", "--node", "one"];
    let refused = world.says(&again).await;
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("a node called one is there already"), "{refused:?}");
    let unnamed = ["first", "second"].map(|log| world.serving(&[], log));
    let nodes = world.does(&["nodes", "ls", "--json"]).await.lines();
    let names: Vec<&str> = nodes.iter().map(|line| line["name"].as_str().unwrap()).collect();
    let host = nodes[0]["owner"]["host"].as_str().unwrap();
    assert_eq!(&names[..2], ["one", host]);
    assert!(names[2].starts_with(&format!("{host}-")), "{names:?}");
    unnamed.into_iter().for_each(Server::end);
    one.end();
    world.has_no_password();
}

/// S7.59: a lease that could not be renewed in time is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_neither_too_short_nor_too_long() {
    let world = World::new();
    for lease in ["1s", "2h"] {
        let refused =
            world.says(&["serve", "--listen", "127.0.0.1:0", "--no-project", "--lease", lease]).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains("from 2s to 1h"), "{refused:?}");
    }
}
