//! A node that is killed, and one that is paused for longer than its lease.

use std::time::{Duration, Instant};

use super::world::World;

/// How many sessions a node has when it ends.
const SESSIONS: usize = 12;

/// How many one has that is killed: more by hand, for the figure.
fn killed_with() -> usize {
    std::env::var("SAFEPOINT_KILLED_WITH").ok().and_then(|sessions| sessions.parse().ok()).unwrap_or(SESSIONS)
}

/// A lease of four seconds, a margin, and a look. It is measured on a quiet machine; here it only must not be much more.
const SOON: Duration = Duration::from_secs(6);

/// S7.9, S7.13, S7.47, I4: the sessions of a node that is killed are taken up by the others, though its death cannot be seen; no command
/// of it lives then, and none begins twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sessions_of_a_killed_node_are_taken_up_elsewhere() {
    let world = World::new();
    let mut one = world.node("one");
    let count = killed_with();
    let sessions = one.run(&world, count).await;
    // What one is busy with when it gets many sessions is taken by others, if there are any.
    let (two, three) = (world.node("two"), world.node("three"));
    let killed = Instant::now();
    one.kill();
    world.taken_from("one", &sessions).await;
    println!("{count} sessions of a killed node were taken up after {:?} (goal {SOON:?})", killed.elapsed());
    let beats = world.beats();
    let holders = world.holders().await;
    for session in &sessions {
        // Any node says what became of it; the one that has it goes on with it.
        assert_eq!(two.outcome(session, 1).await, "crashed");
        let by = if holders[session] == "two" { &two } else { &three };
        by.resumes(session).await;
    }
    assert_eq!(world.beats(), beats, "a command of the dead node lived when its session was taken");
    world.is_sound(count).await;
}

/// S7.13, S7.14, I4: a node that is paused for longer than its lease has no command that lives when its sessions are taken, writes nothing
/// when it goes on, and joins again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_paused_for_too_long_has_done_nothing_more() {
    let world = World::new();
    let (one, two) = (world.node("one"), world.node("two"));
    let sessions = one.run(&world, SESSIONS).await;
    one.pause();
    world.taken_from("one", &sessions).await;
    let beats = world.beats();
    for session in &sessions {
        two.resumes(session).await;
    }
    let before = world.journals().await;
    one.go_on();
    world.is_back("one").await;
    assert_eq!(world.beats(), beats, "a command of the paused node lived when its session was taken");
    assert_eq!(world.journals().await, before, "the paused node wrote something");
    let new = one.run(&world, 1).await;
    world.open();
    assert_eq!(one.outcome(&new[0], 1).await, "completed");
    assert_eq!(world.counted("end").len(), 1);
    world.is_sound(SESSIONS + 1).await;
}
