//! The owner's time: it sleeps until its mail or the next moment at which time alone changes something.

use std::{future::Future, task::Poll};

use futures_util::future::poll_fn;
use tokio::time::sleep_until;

use super::{Driver, Item, Moment, SessionMessage};

impl<T: Item> Driver<T> {
    /// The next message; none when only time has passed.
    pub(super) async fn next(&mut self) -> Option<Box<SessionMessage<T>>> {
        let wake = self.wake();
        match (&mut self.sleep, wake) {
            (sleep, None) => *sleep = None,
            (Some(sleep), Some(at)) if sleep.deadline() == at => {}
            (Some(sleep), Some(at)) => sleep.as_mut().reset(at),
            (sleep, Some(at)) => *sleep = Some(Box::pin(sleep_until(at))),
        }
        if let Some(mail) = self.ahead.pop_front() {
            return Some(mail);
        }
        let Self { mail, sleep, .. } = self;
        poll_fn(|cx| {
            if let Poll::Ready(mail) = mail.poll_next(cx) {
                return Poll::Ready(Some(mail));
            }
            match sleep.as_mut().map(|sleep| sleep.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(None),
                Some(Poll::Pending) | None => Poll::Pending,
            }
        })
        .await
    }

    pub(super) fn now(&self) -> Moment {
        Moment(crate::session::item::micros(self.began.elapsed()))
    }
}
