//! What a snapshot of unchanged files costs: one look at each.

use std::{fs, time::Instant};

use safepoint_testkit::wait;

use super::support::{Node, World, nodes};

fn wait_until_old() {
    let began = Instant::now();
    wait::until("the times of the files are old enough", || began.elapsed().as_millis() > 120);
}

/// S7.30: an unchanged file is not read again; one that changed just before is, whatever its times say.
#[test]
fn an_unchanged_file_is_not_read() {
    let world = World::new();
    world.write("file", "content");
    wait_until_old();
    world.take();
    let state = world.place.path().join("state");
    let blob = || {
        let all = nodes(&state);
        all.into_iter()
            .find(|(_, node)| *node == Node::File(0o600, b"content".to_vec()))
            .map(|(path, _)| path)
    };
    fs::remove_file(state.join(blob().unwrap())).unwrap();
    world.take();
    assert_eq!(blob(), None, "it was read");
    world.write("file", "content");
    world.take();
    assert!(blob().is_some(), "its stamp is another one");
    // The same size, within the grain of the clock.
    let before = world.take();
    world.write("file", "CONTENT");
    let after = world.take();
    assert_eq!(world.snapshots.diff(&before, &after).unwrap().len(), 1);
}

/// S7.30: 10,000 unchanged files cost at most 50 ms in a release build; this bound is for a busy machine without one.
#[test]
fn ten_thousand_unchanged_files_cost_little() {
    const FILES: usize = 10_000;
    let world = World::new();
    for number in 0..FILES {
        let path = world.path(format!("d{}/f{number}.rs", number / 100));
        if number % 100 == 0 {
            fs::create_dir(path.parent().unwrap()).unwrap();
        }
        fs::write(path, format!("{number}")).unwrap();
    }
    world.write(".gitignore", "target\n*.o\n/d7/f7.rs\n");
    wait_until_old();
    let began = Instant::now();
    world.take();
    let first = began.elapsed();
    let took: Vec<_> = (0..5)
        .map(|_| {
            let began = Instant::now();
            world.take();
            began.elapsed()
        })
        .collect();
    let again = Instant::now();
    let opened = super::support::open(world.place.path(), Default::default());
    opened.take("of another process").unwrap();
    println!("first {first:?}, then {took:?}, of another process {:?}", again.elapsed());
    assert!(took.iter().min().unwrap().as_millis() < 2000, "{took:?}");
}
