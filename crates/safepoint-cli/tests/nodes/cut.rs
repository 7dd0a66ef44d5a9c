//! A node that does not reach the database any more, and one whose clock is wrong.

use safepoint_testkit::wait;

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

/// Where Debian has the library that gives a process another clock.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// S7.12, S7.13: a node whose clock is ten minutes ahead holds what it has for as long as any other, and loses it no later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_wrong_changes_nothing() {
    if !std::path::Path::new(FAKETIME).exists() {
        println!("skipped a_clock_that_is_wrong_changes_nothing: there is no {FAKETIME} (Debian: faketime)");
        return;
    }
    let world = World::new();
    let ahead = [
        ("LD_PRELOAD", FAKETIME),
        ("FAKETIME", "+10m"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("NO_FAKE_STAT", "1"),
    ];
    let (mut one, two) = (world.node_at("one", &world.database, &ahead), world.node("two"));
    let (theirs, ours) = (one.run(&world, 3).await, two.run(&world, 3).await);
    // Longer than a lease by either clock.
    let beats = world.beats();
    wait::asked("the commands have run for longer than a lease", async || world.beats() > beats + 3_000)
        .await;
    let holders = world.holders().await;
    for (session, name) in theirs.iter().map(|id| (id, "one")).chain(ours.iter().map(|id| (id, "two"))) {
        assert_eq!(holders[session], name, "{holders:?}");
    }
    one.kill();
    world.taken_from("one", &theirs).await;
    for session in &theirs {
        two.resumes(session).await;
    }
    world.open();
    for session in &ours {
        assert_eq!(two.outcome(session, 1).await, "completed");
    }
    world.is_sound(6).await;
}
