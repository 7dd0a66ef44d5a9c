//! When a session's stop has returned nothing begins any more, although the owner has not processed it yet.

use std::{future::poll_fn, task::Poll};

use futures_util::FutureExt as _;
use safepoint::{
    Session,
    event::{EventKind, Fact},
    session::{SessionEvent, SessionStop},
};

use super::desk::{Desk, accounted};

/// How many model calls and turns have begun, as far as anybody can see now.
fn begun(session: &Session<String>) -> (usize, usize) {
    let (mut turns, mut calls) = (0, 0);
    let mut events = session.events();
    while let Some(Some(event)) = events.next().now_or_never() {
        let SessionEvent::TurnStarted { run, .. } = event.kind else { continue };
        turns += 1;
        let mut facts = run.events();
        while let Some(Some(event)) = facts.next().now_or_never() {
            let is_call = |fact: &Fact| matches!(fact, Fact::ModelStarted { .. });
            calls += usize::from(matches!(&event.kind, EventKind::Fact(fact) if is_call(fact)));
        }
    }
    (turns, calls)
}

/// Everything that is ready is polled once. What tokio offers lets everything run until nothing is ready.
async fn one_turn_of_the_queue() {
    let mut polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// One session, stopped at one moment of its two turns; asked at the turn's end, at a safe point, or now.
async fn stopped_at(moment: usize, stop: SessionStop, at_turn_end: bool) {
    let desk = Desk::new([]);
    let session = desk.chat().start();
    let items = ["a", "b"].map(|text| session.push(text.to_owned()).unwrap());
    for _ in 0..moment {
        one_turn_of_the_queue().await;
    }
    session.stop(stop);
    let (turns, calls) = begun(&session);
    accounted(&session, &items).await;
    let after = begun(&session);
    assert_eq!(after.0, turns, "a turn began after the stop, asked at {moment}");
    assert!(at_turn_end || after.1 == calls, "a model call began after the stop, asked at {moment}");
}

/// S6.13, S2.1: at each moment of two turns: after a stop has returned no turn begins, and unless it waits
/// for the turn's end no model call does. Everything is on one thread, so nothing happens between the stop
/// and the look.
#[tokio::test]
async fn nothing_begins_once_a_stop_has_returned() {
    let stops: [(fn() -> SessionStop, bool); 3] =
        [(SessionStop::at_turn_end, true), (SessionStop::graceful, false), (SessionStop::now, false)];
    for (stop, at_turn_end) in stops {
        for moment in 0..80 {
            // A task among the others: what the runtime runs first is polled between whole batches of them.
            tokio::spawn(stopped_at(moment, stop(), at_turn_end)).await.unwrap();
        }
    }
}
