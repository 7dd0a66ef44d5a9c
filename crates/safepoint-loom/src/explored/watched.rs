//! What a ticket reports.

use std::sync::Arc;

use super::{block_on, explore, thread};
use crate::sync::watched::Watched;

/// S6.2: a change made as a task begins to wait is seen, by every waiter.
#[test]
fn loom_what_changes_as_a_task_begins_to_wait_is_seen() {
    explore(4, || {
        let value = Arc::new(Watched::new((false, 0)));
        let other = Arc::clone(&value);
        let waiter = thread::spawn(move || block_on(other.wait(|value| (value.1 == 2).then_some(value.0))));
        let writer = Arc::clone(&value);
        let writer = thread::spawn(move || {
            writer.update(|value| *value = (true, 1));
            writer.update(|value| value.1 = 2);
        });
        let seen = block_on(value.wait(|value| value.0.then_some(value.1)));
        assert!((1..=2).contains(&seen));
        assert!(waiter.join().expect("no panic"), "the latest, whole");
        writer.join().expect("no panic");
    });
}
