//! The mailbox alone.

use tokio::sync::oneshot;

use super::{block_on, explore, thread};
use crate::sync::mailbox::Mailbox;

/// S12.30, S6.12: a caller asks as the receiver goes, and holds a mailbox itself all the while: it gets an answer, or learns that
/// there is none. It never waits without end.
#[test]
fn loom_a_caller_that_asks_as_the_receiver_goes_is_not_left_waiting() {
    explore(4, || {
        let (mailbox, mut received) = Mailbox::<oneshot::Sender<()>>::new();
        let asks = mailbox.clone();
        let asker = thread::spawn(move || {
            let (reply, answer) = oneshot::channel();
            let posted = asks.post(reply);
            let answered = block_on(answer).is_ok();
            assert!(posted || !answered, "what was refused was answered");
            answered
        });
        let taken = received.now().map(|reply| reply.send(()).expect("he waits"));
        drop(received);
        assert_eq!(asker.join().expect("no panic"), taken.is_some());
        let (reply, _answer) = oneshot::channel();
        assert!(mailbox.is_gone());
        assert!(!mailbox.post(reply));
    });
}

/// S6.1: a receiver that parks is woken by the next mail, and gets what each poster sent in the order of that poster.
#[test]
fn loom_a_receiver_that_parks_is_woken_and_gets_all() {
    explore(3, || {
        let (mailbox, mut received) = Mailbox::<(u32, u32)>::new();
        let posters: Vec<_> = (0..2)
            .map(|who| {
                let mailbox = mailbox.clone();
                thread::spawn(move || {
                    for count in 0..=who {
                        assert!(mailbox.post((who, count)), "the receiver is there");
                    }
                })
            })
            .collect();
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(*block_on(received.next()));
        }
        posters.into_iter().for_each(|poster| poster.join().expect("no panic"));
        assert!(received.now().is_none());
        let of_one: Vec<u32> = taken.iter().filter(|(who, _)| *who == 1).map(|(_, count)| *count).collect();
        assert_eq!((taken.len(), of_one), (3, vec![0, 1]));
    });
}
