//! A node that does not reach the database any more, and one whose clock is wrong.

use super::{link::Link, world::World};

/// S7.14, S7.18, I4: a node that is cut off from the database ends its commands with its lease, before another node has its sessions; what it
/// had sent and what comes late changes nothing, and it joins again once it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_ends_what_it_runs_before_another_has_it() {
    let world = World::new();
    let link = Link::to(world.cluster.port);
    let through = world.database.replace(&format!(":{}/", world.cluster.port), &format!(":{}/", link.port));
    let (one, two) = (world.node_at("one", &through, &[]), world.node("two"));
    let sessions = one.run(&world, 6).await;
    link.cut();
    world.taken_from("one", &sessions).await;
    let beats = world.beats();
    for session in &sessions {
        two.resumes(session).await;
    }
    assert_eq!(
        world.beats(),
        beats,
        "a command of the node that is cut off lived when its session was taken"
    );
    let before = world.journals().await;
    link.heal();
    world.is_back("one").await;
    assert_eq!(world.journals().await, before, "what came late was written");
    world.is_sound(6).await;
    let new = one.run(&world, 1).await;
    world.open();
    assert_eq!(one.outcome(&new[0], 1).await, "completed");
    world.is_sound(7).await;
}
