//! The driver's time: it sleeps until a message arrives, or until the next moment at which time alone changes
//! something.

use std::{collections::VecDeque, future::Future, pin::Pin, task::Poll, time::Duration};

use futures_util::future::poll_fn;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Driver, Item, Moment, Received, SessionMessage};

/// The messages of a session, and when the driver next looks at the time.
pub(super) struct Queue<T> {
    pub(super) received: Received<T>,
    /// Messages received while a push strategy ran.
    pub(super) ahead: VecDeque<Box<SessionMessage<T>>>,
    pub(super) sleep: Option<Pin<Box<Sleep>>>,
    pub(super) began: Instant,
}

impl<T> Queue<T> {
    pub(super) fn new(received: Received<T>) -> Self {
        Self { received, ahead: VecDeque::new(), sleep: None, began: Instant::now() }
    }
}

impl<T: Item> Driver<T> {
    /// The next message; `None` when only time has passed.
    pub(super) async fn next(&mut self) -> Option<Box<SessionMessage<T>>> {
        let wake = self.wake();
        match (&mut self.queue.sleep, wake) {
            (sleep, None) => *sleep = None,
            (Some(sleep), Some(at)) if sleep.deadline() == at => {}
            (Some(sleep), Some(at)) => sleep.as_mut().reset(at),
            (sleep, Some(at)) => *sleep = Some(Box::pin(sleep_until(at))),
        }
        if let Some(message) = self.queue.ahead.pop_front() {
            return Some(message);
        }
        let Queue { received, sleep, .. } = &mut self.queue;
        poll_fn(|cx| {
            if let Poll::Ready(message) = received.poll_next(cx) {
                return Poll::Ready(Some(message));
            }
            match sleep.as_mut().map(|sleep| sleep.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(None),
                Some(Poll::Pending) | None => Poll::Pending,
            }
        })
        .await
    }

    pub(super) fn now(&self) -> Moment {
        Moment(crate::session::item::micros(self.queue.began.elapsed()))
    }

    /// When the driver must wake without a message.
    pub(super) fn wake(&self) -> Option<Instant> {
        let at = |Moment(micros)| self.queue.began + Duration::from_micros(micros);
        let overdue = self.approvals.overdue.map(|(_, look)| look);
        self.machine.deadline().map(at).into_iter().chain(overdue).min()
    }
}
