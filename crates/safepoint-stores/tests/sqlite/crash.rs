//! `kill -9` at every moment of the writer's work, enumerated: S7.1, S7.2 as far as the store goes, S7.6, S7.7.

use std::sync::Arc;

use safepoint::store::Store;
use safepoint_testkit::store_suite::play::{Picture, Player, alike, script};

use super::{
    roles::{Process, command, reported, say, this_program},
    support::{course, model, open, probed, runtime, world},
};

/// Plays the script, reports its progress, and is killed at the moment that its environment names.
#[test]
fn crash_role() {
    let Some((path, at)) = reported("crash") else { return };
    let at: usize = at.parse().unwrap();
    let (time, lives, outside) = world();
    let store = probed(&path, &outside, move |moment, _| {
        if moment == at {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
        }
        Ok(())
    });
    let mut player = Player::of(Arc::new(store), &time, &lives);
    runtime().block_on(async {
        for step in script() {
            // What is refused is an answer too.
            drop(player.play(&step).await);
            say("answered");
        }
    });
    say("all");
}

/// S7.1, S7.2: an acknowledged write is there after `kill -9`, any other is there entirely or not at all. The
/// next owner continues from there to the same end.
#[test]
fn what_was_answered_survives_a_kill_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let course = runtime.block_on(course());
    let (mut lost, mut kept) = (0, 0);
    for at in 0.. {
        let path = folder.path().join(format!("{at}.db"));
        let mut child = Process::start(command(&this_program(), "crash", "crash", &path, at.to_string()));
        let mut answered = 0;
        let ended = loop {
            match child.hear().as_deref() {
                Some("answered") => answered += 1,
                other => break other.map(str::to_owned),
            }
        };
        if ended.as_deref() == Some("all") {
            assert!(lost > 50 && kept > 20, "of {at} kills, {lost} before and {kept} after the commit");
            return;
        }
        child.kill();
        runtime.block_on(async {
            let (mut model, outside) = model();
            let mut steps = script().into_iter();
            for step in steps.by_ref().take(answered) {
                drop(model.play(&step).await);
            }
            let store: Arc<dyn Store> = Arc::new(open(&path, &outside));
            let found = Picture::of(&*store).await.unwrap();
            assert!(found.iter().all(Picture::is_sound), "killed at moment {at}");
            if found == course[answered] {
                lost += 1;
            } else {
                alike(&format!("killed at moment {at}"), &found, &course[answered + 1]).unwrap();
                drop(model.play(&steps.next().unwrap()).await);
                kept += 1;
            }
            // The world is the model's: each step is played to the store only.
            let mut player = model.on(Arc::clone(&store));
            for step in steps {
                drop(player.play(&step).await);
            }
            alike("at the end", &Picture::of(&*store).await.unwrap(), course.last().unwrap()).unwrap();
        });
    }
}
