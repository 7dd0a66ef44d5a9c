//! What a ticket tells.

use std::sync::Arc;

use super::{block_on, explore, thread};
use crate::sync::told::Told;

/// S6.2: whatever is told as somebody begins to wait is seen, by each of those who wait.
#[test]
fn loom_what_is_told_as_somebody_begins_to_wait_is_seen() {
    explore(4, || {
        let told = Arc::new(Told::new((false, 0)));
        let other = Arc::clone(&told);
        let waiter = thread::spawn(move || block_on(other.wait(|told| (told.1 == 2).then_some(told.0))));
        let teller = Arc::clone(&told);
        let teller = thread::spawn(move || {
            teller.tell(|told| *told = (true, 1));
            teller.tell(|told| told.1 = 2);
        });
        let seen = block_on(told.wait(|told| told.0.then_some(told.1)));
        assert!((1..=2).contains(&seen));
        assert!(waiter.join().expect("no panic"), "the latest, whole");
        teller.join().expect("no panic");
    });
}
