//! What a check costs, and what a scope adds to a poll.

use std::{
    future::poll_fn,
    hint::black_box,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use safepoint_scope::{Effect, SafePoints, Scope};

use crate::{figures::median, table::Table};

struct PassedStep;
impl Effect for PassedStep {
    type Announcement = ();
}

const TIMES: u32 = 1_000_000;
const REPEATS: usize = 7;

pub(crate) fn measure(table: &mut Table) {
    let (root, _handle) = Scope::root();
    let (call, _) = root.child();
    let pass = repeat(|| {
        for _ in 0..TIMES {
            drop(black_box(black_box(&call).pass::<PassedStep>(SafePoints::ANY, &())));
        }
    });
    table.alone("`pass()` with nothing asked, one level deep", "ns", pass, 10.0);
    let shared = Arc::new(());
    let clone = repeat(|| {
        for _ in 0..TIMES {
            drop(black_box(Arc::clone(black_box(&shared))));
        }
    });
    let share = "of that, the share that a permit has in its scope: an `Arc` cloned and dropped";
    table.beside(share, "ns", clone);
    let (mut scoped, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        bare.push(polls(pin!(never_ready())));
        scoped.push(polls(pin!(call.run(never_ready()))));
    }
    table.alone("polling work through a scope, added a poll", "ns", median(scoped) - median(bare), 40.0);
}

/// Work that is never ready, and opaque to the optimiser.
async fn never_ready() {
    poll_fn(|cx| {
        black_box(cx);
        Poll::<()>::Pending
    })
    .await;
}

/// Nanoseconds of one poll, by hand and without a runtime.
fn polls<F: Future>(mut work: Pin<&mut F>) -> f64 {
    let mut cx = Context::from_waker(Waker::noop());
    let began = Instant::now();
    for _ in 0..TIMES {
        if black_box(work.as_mut()).poll(&mut cx).is_ready() {
            unreachable!("it pends");
        }
    }
    per(began.elapsed())
}

fn repeat(work: impl Fn()) -> f64 {
    let one = || {
        let began = Instant::now();
        work();
        per(began.elapsed())
    };
    median((0..REPEATS).map(|_| one()).collect())
}

fn per(took: Duration) -> f64 {
    took.as_nanos() as f64 / f64::from(TIMES)
}
