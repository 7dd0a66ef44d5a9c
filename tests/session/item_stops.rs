//! One item is stopped, wherever it is.

use safepoint::{
    StopRequest,
    session::{
        IfUndelivered, ItemOutcome, ItemStopAck, Policy, Push, QueueAfterStop, SessionStop, StopPersistence,
    },
    steer::SteerTiming,
};
use safepoint_testkit::wait::InTime as _;

use super::{
    desk::{Desk, accounted, answers, one_after_the_other, said, turn},
    dice::Dice,
    world::{mortals, open_here},
};

const CONTINUES: QueueAfterStop = QueueAfterStop::Continues;

/// S6.19: right behind its push, in a queue, in a turn, and when it is over: a caller that knows the item alone reaches it, and the
/// items of other callers are answered.
#[tokio::test]
async fn an_item_is_stopped_where_it_is_and_the_others_are_answered() {
    let desk = Desk::new([]);
    let (mut one, mut two) = (desk.model.gate(), desk.model.gate());
    let session = desk.chat().start();
    let first = session.push("a".to_owned()).unwrap();
    one.request().await;
    let (waits, other) = (session.push("b".to_owned()).unwrap(), session.push("c".to_owned()).unwrap());
    let now = StopRequest::now;
    assert_eq!(session.stop_item(waits.id(), now(), CONTINUES).asked().await, ItemStopAck::Withdrawn);
    assert_eq!(waits.outcome().await, ItemOutcome::Withdrawn);
    assert_eq!(session.stop_item(first.id(), now(), CONTINUES).asked().await, ItemStopAck::Stopping(turn(1)));
    assert_eq!(first.outcome().await, ItemOutcome::Interrupted(turn(1)));
    assert_eq!(session.stop_item(first.id(), now(), CONTINUES).asked().await, ItemStopAck::TooLate);
    two.request().in_time("what waited behind it is asked").await;
    answers(&two, "here");
    assert_eq!(other.outcome().await, ItemOutcome::Completed(turn(2)));
    let behind = session.push("d".to_owned()).unwrap();
    let stop = session.stop_item(behind.id(), now(), CONTINUES);
    assert_ne!(stop.asked().await, ItemStopAck::TooLate, "a stop right behind its push");
    let outcome = behind.outcome().in_time("its outcome").await;
    assert!(matches!(outcome, ItemOutcome::Withdrawn | ItemOutcome::Interrupted(_)), "{outcome:?}");
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[first, waits, other, behind]).await;
    one_after_the_other(&session).await;
}

/// S6.19, S5.3: where the caller wants it so, what waits behind a stopped item waits on for something newer.
#[tokio::test]
async fn a_stop_of_an_item_can_hold_the_queue() {
    let desk = Desk::new([]);
    let (mut one, mut two) = (desk.model.gate(), desk.model.gate());
    let session = desk.chat().start();
    let first = session.push("a".to_owned()).unwrap();
    one.request().await;
    let behind = session.push("b".to_owned()).unwrap();
    let stop = session.stop_item(first.id(), StopRequest::now(), QueueAfterStop::Holds);
    assert_eq!(stop.asked().await, ItemStopAck::Stopping(turn(1)));
    assert_eq!(first.outcome().await, ItemOutcome::Interrupted(turn(1)));
    assert_eq!(session.queued().await.len(), 1, "nothing begins");
    let newer = session.push("c".to_owned()).unwrap();
    two.request().in_time("a newer item begins a turn").await;
    answers(&two, "here");
    behind.outcome().in_time("its turn").await;
    session.stop(SessionStop::now());
    accounted(&session, &[first, behind, newer]).await;
}

/// S6.19, S6.5: a steer is stopped at every moment of its way: the sender has it back, or the turn that has it is stopped, or it is
/// over; it never runs in a later turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_steer_is_stopped_at_every_moment_of_its_way() {
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let desk = Desk::new([]);
        let mut gate = desk.model.gate();
        let session = desk.chat().start();
        let item = session.push("a".to_owned()).unwrap();
        gate.request().in_time(format_args!("seed {seed}: the model is asked")).await;
        let policy = Policy::Steer(SteerTiming::NextRequest, IfUndelivered::Queue);
        let steer = session.push(Push::new("steer".to_owned()).policy(policy)).unwrap();
        let (handle, id, spins) = (session.handle(), steer.id(), dice.below(400));
        let asked = tokio::spawn(async move {
            (0..spins).for_each(|_| std::hint::spin_loop());
            handle.stop_item(id, StopRequest::now(), CONTINUES).asked().await
        });
        answers(&gate, "done");
        let named = |what: &str| format!("seed {seed}: {what}");
        let ack = asked.in_time(named("the stop is answered")).await.unwrap();
        let outcome = steer.outcome().in_time(named("the steer's outcome")).await;
        match ack {
            ItemStopAck::Withdrawn => assert_eq!(outcome, ItemOutcome::Withdrawn, "seed {seed}"),
            ItemStopAck::Stopping(_) | ItemStopAck::TooLate => {
                let fits = matches!(outcome, ItemOutcome::Completed(_) | ItemOutcome::Interrupted(_));
                assert!(fits, "seed {seed}: {ack:?}, {outcome:?}");
            }
        }
        session.stop(SessionStop::now());
        let exit = session.done().in_time(named("the session's end")).await;
        let times = said(exit.history()).iter().filter(|text| *text == "steer").count();
        assert_eq!(times, usize::from(outcome != ItemOutcome::Withdrawn), "seed {seed}: {outcome:?}");
        accounted(&session, &[item, steer]).await;
    }
}

/// S6.19, S1.9: in a store the withdrawal is there for the next owner, and the stop of a turn can be waited for.
#[tokio::test]
async fn a_stopped_item_stays_stopped_for_the_next_owner() {
    let (store, lives) = mortals();
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = open_here(desk.chat(), &store).await.unwrap();
    let first = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let behind = session.push("b".to_owned()).unwrap();
    behind.recorded().await;
    let withdrawn = session.stop_item(behind.id(), StopRequest::now(), CONTINUES);
    assert_eq!(withdrawn.recorded().await, StopPersistence::Ended, "there is no stop of a turn to store");
    assert_eq!(withdrawn.asked().await, ItemStopAck::Withdrawn);
    let stop = session.stop_item(first.id(), StopRequest::now(), CONTINUES);
    stop.recorded().in_time("it is stored, or its turn is over").await;
    assert_eq!(stop.asked().await, ItemStopAck::Stopping(turn(1)));
    assert_eq!(first.outcome().await, ItemOutcome::Interrupted(turn(1)));
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[first, behind]).await;
    drop((session, lives));
    let again = open_here(Desk::new([]).chat(), &store).await.unwrap();
    assert!(again.queued().await.is_empty(), "nothing waits");
    again.stop(SessionStop::now());
    again.done().in_time("the end").await;
}

/// S6.19: what waits behind a stopped item runs in a stored session too, also where the caller waits for the stop to be stored.
#[tokio::test]
async fn what_waits_behind_a_stopped_item_runs_in_a_stored_session() {
    let (store, _lives) = mortals();
    let desk = Desk::new([]);
    let (mut one, mut two) = (desk.model.gate(), desk.model.gate());
    let session = open_here(desk.chat(), &store).await.unwrap();
    let first = session.push("a".to_owned()).unwrap();
    one.request().await;
    let behind = session.push("b".to_owned()).unwrap();
    behind.recorded().await;
    let stop = session.stop_item(first.id(), StopRequest::now(), CONTINUES);
    stop.recorded().in_time("it is stored, or its turn is over").await;
    assert_eq!(stop.asked().await, ItemStopAck::Stopping(turn(1)));
    assert_eq!(first.outcome().await, ItemOutcome::Interrupted(turn(1)));
    two.request().in_time("what waits behind it is asked").await;
    answers(&two, "here");
    assert_eq!(behind.outcome().await, ItemOutcome::Completed(turn(2)));
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[first, behind]).await;
}
