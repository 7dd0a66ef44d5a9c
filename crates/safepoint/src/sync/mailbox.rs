//! A mailbox: many senders, one receiving task. The way into a run's driver and a session's driver.
//!
//! **Invariants**: messages are received in the order in which they were accepted, and a parked receiver is
//! woken by the next one. An accepted message is either received, or dropped by the time the receiver's drop
//! has returned; after that nothing is accepted. So a sender whose message contains its own reply channel
//! never waits indefinitely, even if it keeps a sender of the mailbox all the time.
//!
//! The last invariant is why this is a lock and a queue. A channel that counts a message before it stores it
//! may leave it there, neither received nor dropped, if its receiver is dropped in between, until the last of
//! its senders is gone.
//!
//! The lock is held to move one message or to change who is woken. No other lock is taken under it. Messages are
//! made before it and dropped after it, and the receiver is woken after it: no foreign code runs under it but the clone of a waker.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use tokio::task::coop::poll_proceed;

use super::mutex::Mutex;

/// The sending side. Clones are the same mailbox. Messages are boxed, so that a mailbox that was full once is
/// small.
pub(crate) struct Mailbox<M>(Arc<Mutex<MailboxState<M>>>);

/// The receiving side, for one task alone.
pub(crate) struct Received<M>(Arc<Mutex<MailboxState<M>>>);

struct MailboxState<M> {
    mail: VecDeque<Box<M>>,
    receiver: Receiving,
}

/// The receiver's state. Exhaustive: awake, parked, or gone.
enum Receiving {
    Awake,
    Parked(Waker),
    Gone,
}

/// The capacity that an empty mailbox keeps.
const KEPT: usize = 64;

impl<M> Mailbox<M> {
    pub(crate) fn new() -> (Self, Received<M>) {
        let state = MailboxState { mail: VecDeque::new(), receiver: Receiving::Awake };
        let state = Arc::new(Mutex::new(state));
        (Self(Arc::clone(&state)), Received(state))
    }

    /// Adds a message and returns true, or drops it if the receiver is gone. Never blocks for long.
    #[must_use = "if the receiver is gone, there is no answer"]
    pub(crate) fn post(&self, mail: M) -> bool {
        // Boxed before the lock, and a refused message is dropped after it: no foreign code runs under the
        // lock.
        let mail = Box::new(mail);
        let mut state = self.0.lock();
        let receiver = match &mut state.receiver {
            Receiving::Gone => return false,
            receiver => std::mem::replace(receiver, Receiving::Awake),
        };
        state.mail.push_back(mail);
        drop(state);
        if let Receiving::Parked(waker) = receiver {
            waker.wake();
        }
        true
    }

    /// Whether the receiver is gone.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.0.lock().receiver, Receiving::Gone)
    }
}

impl<M> Received<M> {
    /// The next message, if there is one.
    pub(crate) fn now(&mut self) -> Option<Box<M>> {
        self.0.lock().next()
    }

    /// Whether no message waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().mail.is_empty()
    }

    /// The next message; otherwise the task is woken when there is one. A task that receives many messages
    /// yields now and then.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Box<M>> {
        let progress = ready!(poll_proceed(cx));
        let mut state = self.0.lock();
        if let Some(mail) = state.next() {
            progress.made_progress();
            return Poll::Ready(mail);
        }
        if matches!(&state.receiver, Receiving::Parked(waker) if waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        let before = std::mem::replace(&mut state.receiver, Receiving::Parked(cx.waker().clone()));
        drop(state);
        drop(before);
        Poll::Pending
    }

    /// The next message.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> Box<M> {
        poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl<M> MailboxState<M> {
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
        let receiver = std::mem::replace(&mut state.receiver, Receiving::Gone);
        let unread = std::mem::take(&mut state.mail);
        drop(state);
        drop((receiver, unread));
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
