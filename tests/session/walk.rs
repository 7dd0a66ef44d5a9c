//! A random walk against a real session with gates, beside a reference that says after each step where every
//! item must be. Many short sessions: in the calm ones each step is followed until nothing moves any more,
//! and then all that can be seen is compared; in the hasty ones steps come in bursts, and what must hold in
//! any order is checked at the end.
//!
//! A walk that fails is shrunk to the steps that show it, and reported with its seed: `SAFEPOINT_SEED`
//! repeats it. 200,000 steps are walked by default; `SAFEPOINT_STEPS=1000000` walks the million, which takes
//! a quarter of an hour unoptimised on two busy cores.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::{
    strategy::{BoxedStrategy, Just, Strategy as _},
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use super::dice::seeds;

#[path = "walk/expected.rs"]
mod expected;
#[path = "walk/real.rs"]
mod real;
#[path = "walk/steps.rs"]
mod steps;

use expected::{Belief, Expected, HOUR};
use real::{Pace, Walk};
use steps::{Step, drawn};

/// How many steps are walked, unless `SAFEPOINT_STEPS` says so.
const STEPS: u64 = 200_000;
/// How many steps a session sees.
const EACH: usize = 100;
/// One session of this many is hasty.
const HASTY: u64 = 8;
const THREADS: u64 = 2;
/// How often a walk that fails is tried with less.
const SHRINKS: u32 = 10_000;
/// What the clock shows when the first step comes, and by how much each moves it, in milliseconds.
const SETTLING: u64 = 1;

fn steps_wanted() -> u64 {
    std::env::var("SAFEPOINT_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(STEPS)
}

/// How far a walk is, by the reference.
#[derive(Clone, Debug)]
struct Course {
    pace: Pace,
    expected: Expected,
    steps: usize,
    now: u64,
}

impl Course {
    fn new(pace: Pace, belief: Belief) -> Self {
        Self { pace, expected: Expected::new(belief), steps: 0, now: SETTLING }
    }

    /// Time passes before the step that says so; nothing else does in it.
    fn take(&mut self, step: Step) {
        if step == Step::Wait {
            self.now += 2 * HOUR;
        }
        self.expected.take(step, self.now);
        self.now += SETTLING;
        self.steps += 1;
    }
}

/// The reference, as sound as it is, or wrong in one rule.
struct Reference<const IS_SOUND: bool>;

impl<const IS_SOUND: bool> ReferenceStateMachine for Reference<IS_SOUND> {
    type State = Course;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Course> {
        if !IS_SOUND {
            return Just(Course::new(Pace::Calm, Belief::RejectsAreQueued)).boxed();
        }
        let pace = |(one, seed)| if one == HASTY - 1 { Pace::Hasty(seed) } else { Pace::Calm };
        let paces = (0..HASTY, proptest::num::u64::ANY).prop_map(pace).no_shrink();
        paces.prop_map(|pace| Course::new(pace, Belief::Sound)).boxed()
    }

    fn transitions(course: &Course) -> BoxedStrategy<Step> {
        drawn(course.steps, EACH)
    }

    fn apply(mut course: Course, step: &Step) -> Course {
        course.take(*step);
        course
    }
}

impl<const IS_SOUND: bool> StateMachineTest for Reference<IS_SOUND> {
    type SystemUnderTest = Walk;
    type Reference = Self;

    fn init_test(course: &Course) -> Walk {
        Walk::new(course.pace)
    }

    fn apply(mut walk: Walk, course: &Course, step: Step) -> Walk {
        if let Err(why) = walk.step(step, &course.expected) {
            panic!("step {}, {step:?}: {why}", course.steps - 1);
        }
        walk
    }

    fn teardown(walk: Walk, mut course: Course) {
        course.take(Step::StopNow);
        if let Err(why) = walk.close(&course.expected) {
            panic!("at the end: {why}");
        }
    }
}

/// A walk that differs from the reference: how, and the steps that show it.
struct Found {
    why: String,
    pace: Pace,
    few: Vec<Step>,
}

/// The walk of this seed.
fn walk<const IS_SOUND: bool>(seed: u64) -> Result<(), Found> {
    let config =
        Config { cases: 1, failure_persistence: None, max_shrink_iters: SHRINKS, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config.clone(), rng);
    let walks = Reference::<IS_SOUND>::sequential_strategy(EACH);
    let walked = runner.run(&walks, |(course, steps, seen)| {
        Reference::<IS_SOUND>::test_sequential(config.clone(), course, steps, seen);
        Ok(())
    });
    match walked {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, (course, few, _))) => {
            Err(Found { why: why.to_string(), pace: course.pace, few })
        }
        Err(TestError::Abort(why)) => panic!("no walk of seed {seed}: {why}"),
    }
}

/// S6.13, S6.2, S6.3, S6.5, S6.6, S6.7, S6.8, S6.10, S6.11, S6.12: whatever comes in whatever order, the
/// session does what the reference says.
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
                    if let Err(Found { why, pace, few }) = walk::<true>(seed) {
                        panic!("SAFEPOINT_SEED={seed}, {pace:?}: {why}\nafter {few:#?}");
                    }
                }
            });
        }
    });
}

/// The walk finds a reference that is wrong in one rule, and shrinks what it found to the few steps that show
/// it.
#[test]
fn a_wrong_rule_is_found_and_shrunk() {
    let found = (0..100).find_map(|seed| walk::<false>(seed).err()).unwrap();
    assert!(found.few.len() <= 2 && found.few.contains(&Step::Reject), "{:?}", found.few);
}
