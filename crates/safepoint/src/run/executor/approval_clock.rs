//! The time during which questions of a running call are open, which is no call time (S4.6).

use std::{pin::pin, time::Duration};

use futures_util::future::{Either, select};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::{sync::Mutex, value::limits::after};

/// How long questions have been open.
#[derive(Default)]
pub(super) struct ApprovalClock {
    /// Held to count one question in or out, or to read the time. No other lock is taken under it, and
    /// waiters are woken after it is released.
    state: Mutex<QuestionTimes>,
    answered: Notify,
}

#[derive(Default)]
struct QuestionTimes {
    open: usize,
    since: Option<Instant>,
    before: Duration,
}

impl ApprovalClock {
    pub(super) fn begin(&self) {
        let mut state = self.state.lock();
        state.open += 1;
        state.since.get_or_insert_with(Instant::now);
    }

    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.open -= 1;
        if state.open == 0
            && let Some(since) = state.since.take()
        {
            state.before += since.elapsed();
            drop(state);
            self.answered.notify_waiters();
        }
    }

    fn so_far(&self) -> Duration {
        let state = self.state.lock();
        state.before + state.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn is_open(&self) -> bool {
        self.state.lock().open > 0
    }

    /// Registers, then checks, so that the last answer in between is not missed.
    async fn answered(&self) {
        loop {
            let answered = self.answered.notified();
            if !self.is_open() {
                return;
            }
            answered.await;
        }
    }

    /// Waits for `work` as long as `limit` allows, not counting the time during which questions are open.
    pub(super) async fn within<F: Future>(&self, limit: Duration, work: F) -> Option<F::Output> {
        let began = Instant::now();
        let mut work = pin!(work);
        loop {
            let over = after(began, limit.saturating_add(self.so_far()));
            if let Ok(output) = timeout_at(over, work.as_mut()).await {
                return Some(output);
            }
            if self.is_open() {
                let answered = pin!(self.answered());
                // The work is polled first: an output that is ready wins over the answer. The work itself is not dropped when the
                // answer wins, and the loop goes back to the limit.
                if let Either::Left((output, _)) = select(work.as_mut(), answered).await {
                    return Some(output);
                }
            } else if after(began, limit.saturating_add(self.so_far())) <= Instant::now() {
                return None;
            }
        }
    }
}
