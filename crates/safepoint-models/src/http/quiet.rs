//! How long nothing has arrived.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// Watches for how long nothing arrives. Its one timer is set at the first wait, and set again only when it is due: most
/// waits end long before.
pub(super) struct Quiet {
    most: Duration,
    /// When the wait began, while there is one.
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Quiet {
    pub(super) fn new(most: Duration) -> Self {
        Self { most, since: None, timer: None }
    }

    /// Something has arrived.
    pub(super) fn ended(&mut self) {
        self.since = None;
    }

    /// Waits on: ready when it has been too long.
    pub(super) fn poll_too_long(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let since = *self.since.get_or_insert_with(Instant::now);
        // A wait without an end is one.
        let Some(end) = since.checked_add(self.most) else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        loop {
            // It may be due for an earlier wait.
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= end {
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::{advance, timeout};

    use super::*;

    /// S2.8: a wait is too long by itself, however long the waits before it were.
    #[tokio::test(start_paused = true)]
    async fn each_wait_has_its_whole_time() {
        const MOST: Duration = Duration::from_secs(10);
        let mut quiet = Quiet::new(MOST);
        for _ in 0..3 {
            let begun = Instant::now();
            assert!(timeout(MOST * 9 / 10, poll_fn(|cx| quiet.poll_too_long(cx))).await.is_err());
            assert_eq!(begun.elapsed(), MOST * 9 / 10);
            quiet.ended();
            // What lies between two waits does not count.
            advance(MOST).await;
        }
        let begun = Instant::now();
        poll_fn(|cx| quiet.poll_too_long(cx)).await;
        assert_eq!(begun.elapsed(), MOST);
    }
}
