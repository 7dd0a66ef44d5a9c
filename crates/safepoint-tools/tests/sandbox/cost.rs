//! What confinement costs a command.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use super::support::{Programs, Site, User};

/// What a confined command may cost more than a free one.
const MORE: Duration = Duration::from_millis(5);
/// How many commands of each kind are run, at most. The fastest are compared: the others measure what else the machine does.
const COMMANDS: usize = 400;
/// And at least.
const FIRST: usize = 20;

/// S4.30
#[test]
fn a_confined_command_costs_little_more_than_a_free_one() {
    let Some(programs) = Programs::new() else { return };
    let place = Site::new(&programs, User::Own);
    let confinement = place.confinement();
    let (mut free, mut confined) = (Duration::MAX, Duration::MAX);
    for number in 1..=COMMANDS {
        let start = Instant::now();
        assert!(place.free(Path::new("/bin/true"), &[]).status.success());
        free = free.min(start.elapsed());
        let start = Instant::now();
        assert!(place.confined_by(&confinement, Path::new("/bin/true"), &[]).status.success());
        confined = confined.min(start.elapsed());
        if number >= FIRST && confined.saturating_sub(free) <= MORE {
            return;
        }
    }
    panic!("a free command takes {free:?} at best, a confined one {confined:?}");
}
