//! A random walk against a real session with gates, beside a reference that says after each step where every item must be.
//! Many short sessions: in the calm ones each step is followed until nothing moves any more, and then all that can be
//! seen is compared; in the hasty ones steps come in bursts, and what must hold in any order is checked at the end.
//!
//! A walk that fails is shrunk by dropping steps, and told with its seed: `SAFEPOINT_SEED` repeats it. 200,000 steps are
//! walked by default; `SAFEPOINT_STEPS=1000000` walks the million, which takes a quarter of an hour unoptimised on two busy
//! cores.

use std::sync::atomic::{AtomicU64, Ordering};

use super::dice::{Dice, seeds};

#[path = "walk/expected.rs"]
mod expected;
#[path = "walk/real.rs"]
mod real;
#[path = "walk/shrink.rs"]
mod shrink;
#[path = "walk/steps.rs"]
mod steps;

use expected::Belief;
use shrink::shrunk;
use steps::{Step, walk_of};

/// How many steps are walked, unless `SAFEPOINT_STEPS` says so.
const STEPS: u64 = 200_000;
/// How many steps a session sees.
const EACH: usize = 100;
/// One session in so many is hasty.
const HASTY: u64 = 8;
const THREADS: u64 = 2;

fn steps_wanted() -> u64 {
    std::env::var("SAFEPOINT_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(STEPS)
}

/// One session; what differs from the reference, if something does.
fn walk(steps: &[Step], pace: real::Pace, belief: Belief) -> Result<(), String> {
    let walked = std::panic::catch_unwind(|| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(real::walk(steps, pace, belief))
    });
    walked.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(text.unwrap_or_else(|| "a panic".to_owned()))
    })
}

fn pace(seed: u64) -> real::Pace {
    if seed % HASTY == HASTY - 1 { real::Pace::Hasty(seed) } else { real::Pace::Calm }
}

/// S6.13, S6.2, S6.3, S6.5, S6.6, S6.7, S6.8, S6.10, S6.11, S6.12: whatever comes in whatever order, the session does what
/// the reference says.
#[test]
fn a_long_random_walk_goes_as_the_reference_says() {
    let seeds = seeds(steps_wanted() / EACH as u64);
    let next = AtomicU64::new(seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let (steps, pace) = (walk_of(&mut Dice(seed), EACH), pace(seed));
                    if let Err(why) = walk(&steps, pace, Belief::Sound) {
                        let few = shrunk(&steps, |steps| walk(steps, pace, Belief::Sound).is_err());
                        let told = walk(&few, pace, Belief::Sound).err().unwrap_or(why);
                        panic!("SAFEPOINT_SEED={seed}, {pace:?}: {told}\nafter {few:#?}");
                    }
                }
            });
        }
    });
}

/// The walk finds a reference that is wrong in one rule, and shrinks what it found to the few steps that show it.
#[test]
fn a_wrong_rule_is_found_and_shrunk() {
    let fails = |steps: &[Step]| walk(steps, real::Pace::Calm, Belief::RejectsAreQueued).is_err();
    let found = (0..100).map(|seed| walk_of(&mut Dice(seed), EACH)).find(|steps| fails(steps)).unwrap();
    let few = shrunk(&found, fails);
    assert!(few.len() <= 2 && few.contains(&Step::Reject), "{few:?}");
}
