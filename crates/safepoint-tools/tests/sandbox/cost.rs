//! What confinement costs a command.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use super::support::{Programs, Site, User};

/// Commands of each kind. The fastest tenth is compared: the others measure what else the machine does.
const COMMANDS: usize = 41;
/// What a confined command may cost more than a free one in a development build, on a machine that is busy with other tests: 5 ms
/// are promised of a quiet one, where 2.3 to 2.6 were measured.
const MORE: Duration = Duration::from_millis(20);
/// How often it is measured before it is too much: a busy machine is slow now and then.
const ROUNDS: usize = 5;

/// S4.30
#[test]
fn a_confined_command_costs_little_more_than_a_free_one() {
    let Some(programs) = Programs::new() else { return };
    let place = Site::new(&programs, User::Own);
    let confinement = place.confinement();
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let (mut free, mut confined) = (Vec::new(), Vec::new());
        for _ in 0..COMMANDS {
            let start = Instant::now();
            assert!(place.free(Path::new("/bin/true"), &[]).status.success());
            free.push(start.elapsed());
            let start = Instant::now();
            assert!(place.confined_by(&confinement, Path::new("/bin/true"), &[]).status.success());
            confined.push(start.elapsed());
        }
        let more = fast(confined).saturating_sub(fast(free));
        least = least.min(more);
        eprintln!("a confined command costs {more:?} more than a free one");
        if least <= MORE {
            return;
        }
    }
    panic!("a confined command costs {least:?} more than a free one, at best");
}

fn fast(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 10]
}
