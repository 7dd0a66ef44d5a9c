//! A run in small, and a steer that its sender wants back as the run ends.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{block_on, explore, thread};
use crate::sync::{
    mailbox::{Mailbox, Received},
    watched::Watched,
};

enum Msg {
    Steer(oneshot::Sender<()>),
    TakeBack(oneshot::Sender<TakenBack>),
}

/// As the engine's: the sender's again, delivered, or the run is over and hands back what it did not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakenBack {
    Back,
    Delivered,
    Over,
}

/// What the run does once it has received this number of letters.
#[derive(Clone, Copy)]
struct Course {
    taken: usize,
    takes: bool,
}

/// A small model of a run: receives, takes its steers or not, ends, says so, and receives for a moment more, as the real one
/// does until it is quiet. Returns whether the steer was delivered.
fn conduct(course: Course, mut mail: Received<Msg>, outcome: &Watched<bool>) {
    let mut waiting = Vec::new();
    let receive = |waiting: &mut Vec<oneshot::Sender<()>>, msg| match msg {
        Msg::Steer(landed) => waiting.push(landed),
        Msg::TakeBack(reply) => {
            let taken = if waiting.pop().is_some() { TakenBack::Back } else { TakenBack::Delivered };
            if reply.send(taken).is_err() {
                // He no longer waits.
            }
        }
    };
    for _ in 0..course.taken {
        receive(&mut waiting, *block_on(mail.next()));
    }
    if course.takes {
        // The request is recorded, and each sender learns it.
        for landed in waiting.drain(..) {
            if landed.send(()).is_err() {
                // He no longer waits.
            }
        }
        while let Some(msg) = mail.now() {
            receive(&mut waiting, *msg);
        }
    }
    // What it did not use goes back, and the outcome is fixed.
    waiting.clear();
    outcome.update(|is_over| *is_over = true);
    // What comes now is late: it is dropped unanswered.
    while mail.now().is_some() {}
}

/// S12.30, S6.5, S6.12: taken back at every moment of the run's end: it is the sender's, or delivered, or comes back with the end; its
/// sender always learns which, and so does the caller that handed it over.
#[test]
fn loom_a_steer_that_is_taken_back_as_the_run_ends_is_in_one_place() {
    for course in [(1, false), (1, true), (2, true)].map(|(taken, takes)| Course { taken, takes }) {
        explore(3, move || {
            let (mailbox, received) = Mailbox::new();
            let outcome = Arc::new(Watched::new(false));
            let (landed, mut lands) = oneshot::channel();
            assert!(mailbox.post(Msg::Steer(landed)), "the run receives");
            let ends = Arc::clone(&outcome);
            let run = thread::spawn(move || conduct(course, received, &ends));
            let (reply, answer) = oneshot::channel();
            let is_posted = mailbox.post(Msg::TakeBack(reply));
            let taken = if is_posted { block_on(answer).unwrap_or(TakenBack::Over) } else { TakenBack::Over };
            block_on(outcome.wait(|is_over| is_over.then_some(())));
            run.join().expect("no panic");
            match (taken, lands.try_recv().is_ok()) {
                (TakenBack::Back, false) | (TakenBack::Delivered, true) | (TakenBack::Over, _) => {}
                wrong => panic!("{wrong:?}"),
            }
        });
    }
}
