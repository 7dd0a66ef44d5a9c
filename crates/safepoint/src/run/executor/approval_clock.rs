//! The questions of a running call, and the time during which they are open, which is no call time (S4.6).

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, timeout_at},
};

use super::CallBoard;
use crate::{
    sync::Mutex,
    value::{approval::Decision, limits::after},
};

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

/// Where the answer to a question of a running call goes. While it exists the call's time stands.
pub(crate) struct CallReply {
    to: Option<oneshot::Sender<Decision>>,
    board: Arc<CallBoard>,
}

impl CallReply {
    pub(crate) fn new(to: oneshot::Sender<Decision>, board: &Arc<CallBoard>) -> Self {
        board.waits.begin();
        Self { to: Some(to), board: Arc::clone(board) }
    }

    /// Whether the call no longer waits for the answer.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.to.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    pub(crate) fn give(mut self, decision: Decision) {
        if self.to.take().is_some_and(|to| to.send(decision).is_err()) {
            // The call has ended, or withdrew its question: the decision has no effect.
        }
    }
}

impl Drop for CallReply {
    fn drop(&mut self) {
        self.board.waits.end();
    }
}

impl ApprovalClock {
    fn begin(&self) {
        let mut state = self.state.lock();
        state.open += 1;
        state.since.get_or_insert_with(Instant::now);
    }

    fn end(&self) {
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
