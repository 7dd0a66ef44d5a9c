//! The mail of a session, as far as it comes through the inbox, and what asks for something back.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::ticket::TicketState;
use crate::sync::mailbox::{self, Received};

pub(crate) enum SessionMessage<T> {
    Push { item: T, ticket: Arc<TicketState<T>> },
    Mark,
    Withdraw(oneshot::Sender<Option<T>>),
}

pub(crate) struct Mailbox<T>(mailbox::Mailbox<SessionMessage<T>>);

impl<T> Mailbox<T> {
    pub(crate) fn new() -> (Self, Received<SessionMessage<T>>) {
        let (mailbox, received) = mailbox::Mailbox::new();
        (Self(mailbox), received)
    }

    pub(crate) fn post(&self, mail: SessionMessage<T>) {
        if !self.0.post(mail) {
            // A caller that waits for a reply sees it dropped.
        }
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
