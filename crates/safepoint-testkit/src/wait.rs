//! PendingWaits of tests: each has a name and an end. A test that waits without end says nothing. One that gives up
//! says what it waited for, for how long, and what it saw last.
//!
//! All waits have one limit, on the real clock and far beyond what a loaded machine needs, so no test proves
//! speed by it. [`until`] looks again and again, with a short pause. [`so`] does it in a task; neither moves
//! a paused clock nor keeps a core busy. [`Bounded`] is for a future that is woken by itself. A seed belongs
//! into the name: `wait::so(format_args!("seed {seed}: it is back"), …)`.

use std::{
    collections::BTreeMap,
    fmt::{Debug, Display},
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard, Once},
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use crate::sync::lock;

/// How long anything may take. `SAFEPOINT_PATIENCE`, in seconds, sets another.
#[must_use]
pub fn patience() -> Duration {
    let set = std::env::var("SAFEPOINT_PATIENCE").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(set.unwrap_or(60))
}

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(2);
/// How often a task gives way before it pauses: what happens within the runtime has mostly happened by then.
const GIVES_WAY: u32 = 64;

/// What a look came to: a truth, something or nothing, or something and what was there instead.
pub trait Look {
    /// What is there at last.
    type Found;

    /// It, or what was seen in its place.
    ///
    /// # Errors
    /// What was seen, in words.
    fn found(self) -> Result<Self::Found, String>;
}

impl Look for bool {
    type Found = ();
    fn found(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("no".to_owned()) }
    }
}

impl<T> Look for Option<T> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T, S: Debug> Look for Result<T, S> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.map_err(|seen| format!("{seen:#?}"))
    }
}

/// Looks until it is so; blocks.
///
/// # Panics
/// If it is not so in time.
#[track_caller]
pub fn until<L: Look>(stage: impl Display, mut look: impl FnMut() -> L) -> L::Found {
    let began = Instant::now();
    loop {
        match look().found() {
            Ok(found) => return found,
            Err(seen) => end_in_time(&stage, began, &seen),
        }
        thread::sleep(PAUSE);
    }
}

/// Looks until it is so; gives way in between. A paused clock stands still meanwhile.
///
/// # Panics
/// If it is not so in time; outside a tokio runtime.
pub fn so<L: Look>(stage: impl Display, mut look: impl FnMut() -> L) -> impl Future<Output = L::Found> {
    asked(stage, move || std::future::ready(look()))
}

/// The same, where a look takes a while itself.
///
/// # Panics
/// If it is not so in time; outside a tokio runtime.
pub fn asked<L: Look, F>(stage: impl Display, mut look: impl FnMut() -> F) -> impl Future<Output = L::Found>
where
    F: Future<Output = L>,
{
    let (stage, began) = (stage.to_string(), Instant::now());
    async move {
        let mut looks = 0_u32;
        loop {
            match bounded(&stage, look()).await.found() {
                Ok(found) => return found,
                Err(seen) => end_in_time(&stage, began, &seen),
            }
            looks += 1;
            if looks <= GIVES_WAY {
                tokio::task::yield_now().await;
            } else {
                // Not by the clock of the runtime, which a test may have stopped.
                drop(tokio::task::spawn_blocking(|| thread::sleep(PAUSE)).await);
            }
        }
    }
}

#[track_caller]
fn end_in_time(stage: &impl Display, began: Instant, seen: &str) {
    assert!(began.elapsed() < patience(), "not so after {:?}: {stage}; last seen: {seen}", began.elapsed());
}

/// A future that is over in time, or panics with its name.
#[derive(Debug)]
#[must_use = "it waits for nothing before it is awaited"]
pub struct Bounded<F> {
    future: Pin<Box<F>>,
    stage: String,
    began: Instant,
    number: Option<u64>,
}

/// PendingWaits, within a limit, for a future that is woken by itself. A paused clock stands still for it.
pub fn bounded<F: Future>(stage: impl Display, future: F) -> Bounded<F> {
    Bounded { future: Box::pin(future), stage: stage.to_string(), began: Instant::now(), number: None }
}

/// Gives a future its name and its end: `ticket.fate().in_time("its fate").await`.
pub trait InTime: Future + Sized {
    /// See [`bounded`].
    fn in_time(self, stage: impl Display) -> Bounded<Self> {
        bounded(stage, self)
    }
}

impl<F: Future> InTime for F {}

impl<F: Future> Future for Bounded<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if let Poll::Ready(output) = self.future.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        end_in_time(&self.stage, self.began, "it is still pending, and nothing wakes it");
        let deadline = self.began + patience();
        let number = self.number;
        self.number = Some(wake_at(number, deadline, cx.waker()));
        Poll::Pending
    }
}

impl<F> Drop for Bounded<F> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            waits().pending.remove(&number);
        }
    }
}

/// What is to be woken when its time is over.
struct Pending {
    deadline: Instant,
    waker: Waker,
}

struct PendingWaits {
    pending: BTreeMap<u64, Pending>,
    next: u64,
}

/// Held to enter, to remove, or to copy the wakers that are due; they are called after it is released. A
/// waker that is replaced or removed frees no task that waits here: the future of such a task goes first.
static WAITS: Mutex<PendingWaits> = Mutex::new(PendingWaits { pending: BTreeMap::new(), next: 0 });
/// The thread begins with the first wait, and never ends.
static ALARM: Once = Once::new();

fn waits() -> MutexGuard<'static, PendingWaits> {
    lock(&WAITS)
}

fn wake_at(number: Option<u64>, deadline: Instant, waker: &Waker) -> u64 {
    ALARM.call_once(|| drop(thread::spawn(wake_those_whose_time_is_over)));
    let mut waits = waits();
    let number = number.unwrap_or_else(|| {
        waits.next += 1;
        waits.next
    });
    waits.pending.insert(number, Pending { deadline, waker: waker.clone() });
    number
}

/// A separate thread: the runtime of a test may have no timer, a paused clock, or no free worker.
fn wake_those_whose_time_is_over() {
    loop {
        thread::sleep(Duration::from_millis(200));
        let now = Instant::now();
        let is_due = |wait: &Pending| (wait.deadline <= now).then(|| wait.waker.clone());
        let over: Vec<Waker> = waits().pending.values().filter_map(is_due).collect();
        over.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(panic: &(dyn std::any::Any + Send)) -> &str {
        panic.downcast_ref::<String>().map_or("", String::as_str)
    }

    fn long_ago() -> Instant {
        Instant::now()
            .checked_sub(patience() + Duration::from_secs(1))
            .expect("the machine has run for longer")
    }

    #[test]
    fn a_wait_that_gives_up_says_for_what_and_what_it_saw() {
        let gives_up = || end_in_time(&format_args!("seed {}: it is gone", 7), long_ago(), "3 processes");
        let panic = std::panic::catch_unwind(gives_up).expect_err("its time is over");
        assert!(said(&*panic).ends_with("seed 7: it is gone; last seen: 3 processes"), "{}", said(&*panic));
        end_in_time(&"in time", Instant::now(), "nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_leaves_a_paused_clock_alone() {
        let (began, mut looks) = (tokio::time::Instant::now(), 0);
        let found = so("enough looks", || {
            looks += 1;
            (looks > 2 * GIVES_WAY).then_some(looks)
        });
        assert_eq!(found.await, 2 * GIVES_WAY + 1);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    /// A hang: no waker fires, and the runtime has nothing else to do.
    #[tokio::test]
    async fn a_future_that_nothing_wakes_is_ended_in_time() {
        let began = Instant::now().checked_sub(patience()).expect("the machine has run for longer");
        let hangs = async move {
            let mut hangs = std::future::pending::<()>().in_time("what never comes");
            hangs.began = began + Duration::from_millis(300);
            hangs.await;
        };
        let panicked = tokio::spawn(hangs).await.expect_err("its time is over").into_panic();
        assert!(said(&*panicked).contains("what never comes; last seen: it is still pending"));
    }
}
