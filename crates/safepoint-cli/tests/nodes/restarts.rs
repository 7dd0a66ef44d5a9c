//! The database restarts while turns run, and nodes do.

use super::world::World;
use serde_json::json;

/// S7.51, S7.53, S7.54: the database crashes and restarts while commands run: they go on, each ends once, and no node is declared dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_database_ends_no_turn() {
    let world = World::new();
    let (one, two) = (world.node("one"), world.node("two"));
    let (first, second) = (one.run(&world, 4).await, two.run(&world, 4).await);
    world.cluster.crash();
    world.open();
    for (sessions, by) in [(&first, &one), (&second, &two)] {
        for session in sessions {
            assert_eq!(by.outcome(session, 1).await, "completed");
        }
    }
    let nodes = world.says(&["nodes", "ls"]).await;
    assert!(nodes.iter().all(|line| line["state"] == "serving"), "{nodes:?}");
    let ended = world.counted("end");
    assert!(ended.len() == 8 && ended.values().all(|times| *times == 1), "{ended:?}");
    world.is_sound(8).await;
}

/// S7.21, S7.45, S7.61, I4: three nodes are replaced one after the other while sessions work: each item ends once, and no command begins twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_nothing_and_repeats_nothing() {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    const SESSIONS: usize = 8;
    let world = World::whose_turns_resume();
    // Commands that end by themselves: what is under way as a node drains may end within its time.
    world.open();
    let mut nodes: Vec<_> = NAMES.iter().map(|name| world.node(name)).collect();
    let mut sessions = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        sessions.extend(node.run(&world, SESSIONS / 2 + at).await);
    }
    let mut items = 1;
    for at in 0..NAMES.len() {
        items += 1;
        let by = &nodes[(at + 1) % NAMES.len()];
        for (of, session) in sessions.iter().enumerate() {
            let text = format!("run: sh effect again{at}-{of}");
            let (status, said) =
                by.post(&format!("/v1/sessions/{session}/items"), json!({"text": text})).await;
            assert_eq!(status, 202, "{said}");
        }
        nodes.remove(at).drained().await;
        nodes.insert(at, world.node(NAMES[at]));
    }
    for session in &sessions {
        for item in 1..=items {
            assert_eq!(nodes[0].outcome(session, item).await, "completed", "{session} item-{item}");
        }
    }
    let commands = sessions.len() * usize::try_from(items).unwrap();
    assert_eq!(world.counted("end").len(), commands);
    world.is_sound(commands).await;
}

/// S7.61, S7.47, I4: what a command pushes into sessions that no node has begins once, on whichever of three nodes is first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_are_woken_for_the_same_sessions_run_each_item_once() {
    const SESSIONS: usize = 12;
    let world = World::new();
    world.open();
    let first = world.node("one");
    let sessions = first.run(&world, SESSIONS).await;
    for session in &sessions {
        assert_eq!(first.outcome(session, 1).await, "completed");
    }
    first.drained().await;
    for (at, session) in sessions.iter().enumerate() {
        let text = format!("run: sh effect pushed{at}");
        world.says(&["push", session, &text]).await;
    }
    let nodes = ["two", "three", "four"].map(|name| world.node(name));
    for (session, by) in sessions.iter().zip(nodes.iter().cycle()) {
        assert_eq!(by.outcome(session, 2).await, "completed");
    }
    assert_eq!(world.counted("end").len(), 2 * SESSIONS);
    world.is_sound(2 * SESSIONS).await;
}
