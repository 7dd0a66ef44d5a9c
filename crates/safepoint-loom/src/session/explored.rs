//! The inbox of a session, and its owner's exit.

use std::sync::Arc;

use loom::{sync::Mutex, thread};
use tokio::sync::oneshot;

use super::{
    inbox::Inbox,
    item::PushError,
    message::{Mailbox, SessionMessage},
    ticket::TicketState,
};
use crate::{
    explored::{block_on, explore},
    sync::mailbox::Received,
    value::ids::ItemId,
};

/// A small model of the owner: it receives what came, and once it is over what was accepted a moment before; then its mail
/// goes. All that it received goes back, and nothing is there to be withdrawn.
fn owner(inbox: &Inbox<u32>, mut received: Received<SessionMessage<u32>>, before: usize) -> Vec<ItemId> {
    let mut taken = Vec::new();
    let mut receive = |mail: Box<SessionMessage<u32>>| match *mail {
        SessionMessage::Push { item, ticket } => {
            taken.push(ticket.id());
            ticket.give_back(item);
        }
        SessionMessage::Mark => {}
        SessionMessage::Withdraw(reply) => {
            if reply.send(None).is_err() {
                // He no longer waits.
            }
        }
    };
    for _ in 0..before {
        receive(block_on(received.next()));
    }
    inbox.shut();
    while let Some(mail) = received.now() {
        receive(mail);
    }
    taken
}

fn message(item: u32, ticket: Arc<TicketState<u32>>, _id: Option<String>) -> SessionMessage<u32> {
    SessionMessage::Push { item, ticket }
}

/// S6.1, S6.2, S6.10: two push as the owner leaves: each item arrives in the order of its position and its ticket says
/// so, or it is with its sender; none is in two places, and none in no place.
#[test]
fn loom_what_is_pushed_as_the_owner_leaves_is_in_one_place() {
    for before in 0..2 {
        explore(2, move || {
            let (mailbox, received) = Mailbox::new();
            let inbox = Arc::new(Inbox::new(mailbox, 8, false));
            let refused = Arc::new(Mutex::new(0));
            let pushers: Vec<_> = (0..2)
                .map(|item| {
                    let (inbox, refused) = (Arc::clone(&inbox), Arc::clone(&refused));
                    thread::spawn(move || match inbox.push(item, None, message) {
                        Ok(ticket) => assert_eq!(block_on(ticket.fate()), item),
                        Err(PushError::Closed(back)) => {
                            assert_eq!(back, item);
                            *refused.lock().expect("no panic") += 1;
                        }
                        Err(other) => panic!("{other:?}"),
                    })
                })
                .collect();
            let taken = owner(&inbox, received, before);
            pushers.into_iter().for_each(|pusher| pusher.join().expect("no panic"));
            assert!(taken.is_sorted(), "positions are the order of the mailbox: {taken:?}");
            assert_eq!(taken.len() + *refused.lock().expect("no panic"), 2);
        });
    }
}

/// S12.30, S6.12, S6.10: a caller wants an item back as the owner leaves: it has an answer, or learns that there is no owner.
#[test]
fn loom_a_caller_that_withdraws_as_the_owner_leaves_is_answered() {
    explore(3, || {
        let (mailbox, received) = Mailbox::new();
        let inbox = Arc::new(Inbox::new(mailbox.clone(), 8, false));
        let ticket = inbox.push(7, None, message).ok().expect("it is open");
        let sender = thread::spawn(move || {
            let (reply, answer) = oneshot::channel();
            mailbox.post(SessionMessage::Withdraw(reply));
            assert_eq!(block_on(answer).ok().flatten(), None);
            mailbox
        });
        assert_eq!(owner(&inbox, received, 1).len(), 1);
        drop(sender.join().expect("no panic"));
        assert_eq!(block_on(ticket.fate()), 7);
    });
}
