//! The database restarts while turns run, and nodes do.

use super::world::World;

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
