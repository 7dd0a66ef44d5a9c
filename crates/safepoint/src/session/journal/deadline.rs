//! The deadline of a write, with a timer that outlasts it.
//!
//! A timer that is the next to elapse wakes the thread that waits for timers, as it is set. So a write does not set one of its
//! own: the one of an earlier write stays, elapses before this one's time is over, if ever, and is only then set anew.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

use crate::{sync::Mutex, value::limits::after};

/// The time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeOver;

/// The timer of the last write, for the next one.
#[derive(Default)]
pub(super) struct Deadline {
    /// Held to take the timer or to put it back. Two writes at a time: the second one sets another timer.
    kept: Mutex<Option<Pin<Box<Sleep>>>>,
}

impl Deadline {
    /// Waits for the work, no longer than `limit`.
    pub(super) async fn within<F: Future + Unpin>(
        &self,
        limit: Duration,
        mut work: F,
    ) -> Result<F::Output, TimeOver> {
        let mut waits: Option<(Instant, Pin<Box<Sleep>>)> = None;
        let worked = poll_fn(|cx| {
            if let Poll::Ready(done) = Pin::new(&mut work).poll(cx) {
                return Poll::Ready(Ok(done));
            }
            let (ends, timer) = waits.get_or_insert_with(|| {
                let ends = after(Instant::now(), limit);
                let kept = self.kept.lock().take().filter(|kept| kept.deadline() <= ends);
                (ends, kept.unwrap_or_else(|| Box::pin(sleep_until(ends))))
            });
            while timer.as_mut().poll(cx).is_ready() {
                if Instant::now() >= *ends {
                    return Poll::Ready(Err(TimeOver));
                }
                timer.as_mut().reset(*ends);
            }
            Poll::Pending
        })
        .await;
        *self.kept.lock() = waits.map(|(_, timer)| timer).filter(|timer| !timer.is_elapsed());
        worked
    }

    /// Gives up the timer: no write is expected soon.
    pub(super) fn rest(&self) {
        let kept = self.kept.lock().take();
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::sleep;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    /// S3.4: each write has its own time, whatever is left of the timer of the one before.
    #[tokio::test(start_paused = true)]
    async fn each_write_has_the_whole_of_its_time() {
        let deadline = Deadline::default();
        assert_eq!(deadline.within(LIMIT, ready(1)).await, Ok(1));
        for passed in [0, 1, 3, 4, 6, 0] {
            let short = Box::pin(sleep(Duration::from_secs(passed).min(LIMIT / 2)));
            assert_eq!(deadline.within(LIMIT, short).await, Ok(()));
            let began = Instant::now();
            assert_eq!(deadline.within(LIMIT, pending::<()>()).await, Err(TimeOver));
            let took = began.elapsed();
            assert!(took >= LIMIT && took < LIMIT + Duration::from_millis(10), "{took:?}");
        }
        let (one, other) = tokio::join!(
            deadline.within(LIMIT, pending::<()>()),
            deadline.within(LIMIT / 5, pending::<()>())
        );
        assert_eq!((one, other), (Err(TimeOver), Err(TimeOver)));
    }

    /// A second write sets no timer: that of the first is there.
    #[tokio::test(start_paused = true)]
    async fn the_timer_of_a_write_is_kept_for_the_next() {
        let deadline = Deadline::default();
        let write = || deadline.within(LIMIT, Box::pin(sleep(Duration::from_millis(1))));
        write().await.unwrap();
        let first = deadline.kept.lock().as_ref().map(|kept| kept.deadline());
        write().await.unwrap();
        assert!(first.is_some() && deadline.kept.lock().as_ref().map(|kept| kept.deadline()) == first);
        deadline.rest();
        assert!(deadline.kept.lock().is_none());
    }
}
