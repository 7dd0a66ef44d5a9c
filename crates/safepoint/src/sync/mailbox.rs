//! A mailbox: many post, one task hears. The way into a run's driver and to a session's owner.
//!
//! **Invariants**: mail is heard in the order in which it was taken; a receiver that parks is woken by the next mail; and
//! what was taken is heard, or has been dropped once the drop of the receiver is over, after which nothing is taken any
//! more. So whoever posted something that holds the way back to him does not wait for ever, though he keeps a mailbox of
//! his own all the time.
//!
//! The last one is why this is a lock and a queue: a channel that counts a message before it puts it there may leave it
//! there, unheard and not dropped, when its receiver is dropped in between, until the last of its senders has gone.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use tokio::task::coop::poll_proceed;

use super::mutex::Mutex;

/// Where mail is put. Clones are the same. Mail is boxed, so that a mailbox that was full once is small.
pub(crate) struct Mailbox<M>(Arc<Mutex<State<M>>>);

/// Where it is found, by one task alone.
pub(crate) struct Received<M>(Arc<Mutex<State<M>>>);

struct State<M> {
    mail: VecDeque<Box<M>>,
    hearer: Hearer,
}

/// Who hears. Exhaustive: somebody who is awake, who has parked, or nobody any more.
enum Hearer {
    Awake,
    Parked(Waker),
    Gone,
}

/// Nobody hears any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "whoever waits for an answer has it by now: there is none"]
pub(crate) struct Gone;

/// For how much mail there is room in a mailbox that is empty.
const KEPT: usize = 64;

impl<M> Mailbox<M> {
    pub(crate) fn new() -> (Self, Received<M>) {
        let state = State { mail: VecDeque::new(), hearer: Hearer::Awake };
        let state = Arc::new(Mutex::new(state));
        (Self(Arc::clone(&state)), Received(state))
    }

    /// Puts it there, or drops it: then nobody hears any more. Never blocks for long.
    pub(crate) fn post(&self, mail: M) -> Result<(), Gone> {
        // Made before the lock, and what is refused is dropped after it: no foreign code runs under it.
        let mail = Box::new(mail);
        let mut state = self.0.lock();
        let hearer = match &mut state.hearer {
            Hearer::Gone => return Err(Gone),
            hearer => std::mem::replace(hearer, Hearer::Awake),
        };
        state.mail.push_back(mail);
        drop(state);
        if let Hearer::Parked(waker) = hearer {
            waker.wake();
        }
        Ok(())
    }

    /// Whether nobody hears any more.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.0.lock().hearer, Hearer::Gone)
    }
}

impl<M> Received<M> {
    /// The next mail, if there is any.
    pub(crate) fn now(&mut self) -> Option<Box<M>> {
        self.0.lock().next()
    }

    /// The next mail, or the task is woken when there is one. A task that hears much gives way now and then.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Box<M>> {
        let progress = ready!(poll_proceed(cx));
        let mut state = self.0.lock();
        if let Some(mail) = state.next() {
            progress.made_progress();
            return Poll::Ready(mail);
        }
        if matches!(&state.hearer, Hearer::Parked(waker) if waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        let before = std::mem::replace(&mut state.hearer, Hearer::Parked(cx.waker().clone()));
        drop(state);
        drop(before);
        Poll::Pending
    }

    /// The next mail.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> Box<M> {
        poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl<M> State<M> {
    fn next(&mut self) -> Option<Box<M>> {
        let mail = self.mail.pop_front();
        if self.mail.is_empty() && self.mail.capacity() > KEPT {
            self.mail = VecDeque::new();
        }
        mail
    }
}

impl<M> Drop for Received<M> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let hearer = std::mem::replace(&mut state.hearer, Hearer::Gone);
        let unheard = std::mem::take(&mut state.mail);
        drop(state);
        drop((hearer, unheard));
    }
}

impl<M> Clone for Mailbox<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}
