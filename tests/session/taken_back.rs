//! Items that their senders take back: a steer that is on its way, and an item whose preempt is out.

use std::sync::Arc;

use futures_util::FutureExt as _;
use safepoint::{
    SafePoints,
    ids::SessionId,
    model::Delta,
    session::{
        IfUndelivered, ItemOutcome, Policy, Preempt, PreemptOutcome, Push, RejectReason, SessionEvent,
        SessionStop,
    },
    steer::SteerTiming,
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::wait::InTime as _;

use super::{
    desk::{Desk, accounted, answers, one_after_the_other, said, turn},
    dice::Dice,
    world::seen,
};

/// S6.3, S6.12: a preempt is answered when its turn ends, also if the item that it came with was taken back
/// meanwhile.
#[tokio::test]
async fn the_preempt_of_an_item_that_was_taken_back_is_answered() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let old = session.push("old".to_owned()).unwrap();
    gate.request().await;
    let at = Preempt::at(SafePoints::AFTER_MODEL);
    let new = session.push(Push::new("new".to_owned()).policy(at)).unwrap();
    assert_eq!(session.withdraw(new.id()).await.as_deref(), Some("new"));
    assert_eq!(
        (new.fate_now(), new.preempted().now_or_never()),
        (Some(ItemOutcome::Withdrawn), None),
        "it is out"
    );
    answers(&gate, "done");
    assert_eq!(new.preempted().await, PreemptOutcome::TurnEndedFirst);
    assert_eq!(old.outcome().await, ItemOutcome::Completed(turn(1)));
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[old, new]).await;
}

/// S6.12, S6.5: a steer that was not delivered yet is its sender's again, and the turn never sees it.
#[tokio::test]
async fn a_steer_on_its_way_can_be_taken_back() {
    for or in [IfUndelivered::Queue, IfUndelivered::Return] {
        let desk = Desk::new([]);
        let mut gate = desk.model.gate();
        let session = desk.chat().start();
        let item = session.push("a".to_owned()).unwrap();
        gate.request().await;
        let steers = |text: &str| {
            session
                .push(Push::new(text.to_owned()).policy(Policy::Steer(SteerTiming::NextRequest, or)))
                .unwrap()
        };
        let (back, kept) = (steers("back"), steers("kept"));
        assert_eq!(session.withdraw(back.id()).await.as_deref(), Some("back"));
        assert_eq!((back.outcome().await, back.delivered().await), (ItemOutcome::Withdrawn, None));
        assert_eq!(session.withdraw(back.id()).await, None, "once");
        answers(&gate, "first");
        assert_eq!(kept.delivered().await.unwrap().round, 2);
        assert_eq!(kept.outcome().await, ItemOutcome::Completed(turn(1)));
        session.stop(SessionStop::at_turn_end());
        let exit = accounted(&session, &[item, back, kept]).await;
        assert_eq!(said(exit.history()), ["a", "kept"]);
    }
}

/// S6.12, S6.5: it is too late for one that was delivered; the turn keeps it.
#[tokio::test]
async fn a_delivered_steer_is_not_taken_back() {
    let desk = Desk::new([]);
    let (mut one, mut two) = (desk.model.gate(), desk.model.gate());
    let session = desk.chat().start();
    let item = session.push("a".to_owned()).unwrap();
    one.request().await;
    let steer = session.push(Push::new("steer".to_owned()).policy(Policy::steer())).unwrap();
    answers(&one, "first");
    assert!(said(&two.request().await.unwrap()).contains(&"steer".to_owned()));
    assert_eq!(session.withdraw(steer.id()).await, None);
    answers(&two, "and to that");
    assert_eq!(steer.outcome().await, ItemOutcome::Completed(turn(1)));
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[item, steer]).await;
}

/// S12.30, S6.12, S6.5: taken back at every moment of the turn's end: the sender has it, or the turn, or it
/// waits; never two of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_steer_that_is_taken_back_as_the_turn_ends_is_in_one_place() {
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let desk = Desk::new([]);
        let mut gate = desk.model.gate();
        let session = desk.chat().start();
        let item = session.push("a".to_owned()).unwrap();
        gate.request().in_time(format_args!("seed {seed}: the model is asked")).await;
        let or = if dice.below(2) == 0 { IfUndelivered::Queue } else { IfUndelivered::Return };
        let policy = Policy::Steer(SteerTiming::NextRequest, or);
        let steer = session.push(Push::new("steer".to_owned()).policy(policy)).unwrap();
        let (handle, id, spins) = (session.handle(), steer.id(), dice.below(400));
        let wanted = tokio::spawn(async move {
            (0..spins).for_each(|_| std::hint::spin_loop());
            handle.withdraw(id).await
        });
        if dice.below(3) == 0 {
            session.stop_turn(None, safepoint::StopRequest::now());
        } else {
            answers(&gate, "done");
        }
        let named = |what: &str| format!("seed {seed}: {what}");
        let back = wanted.in_time(named("the steer is back, or it is too late")).await.unwrap();
        item.outcome().in_time(named("the item's fate")).await;
        session.stop(SessionStop::at_turn_end());
        let exit = session.done().in_time(named("the session's end")).await;
        let times = said(exit.history()).iter().filter(|text| *text == "steer").count();
        match steer.fate_now().unwrap() {
            ItemOutcome::Withdrawn => assert_eq!((back.as_deref(), times), (Some("steer"), 0), "seed {seed}"),
            ItemOutcome::Returned(RejectReason::NotDelivered) | ItemOutcome::Unhandled => {
                assert_eq!((back, times), (None, 0), "seed {seed}");
            }
            ItemOutcome::Completed(_) | ItemOutcome::Interrupted(_) => {
                assert_eq!((back, times), (None, 1), "seed {seed}");
            }
            other => panic!("seed {seed}: {other:?}"),
        }
        accounted(&session, &[item, steer]).await;
        one_after_the_other(&session).await;
    }
}

/// S6.12, S7.1: in a store it is gone too, also if another process took it out there, and the turn continues
/// without it.
#[tokio::test]
async fn a_steer_that_was_taken_back_is_gone_from_the_store() {
    for from_elsewhere in [false, true] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (id, desk) = (SessionId::from("s"), Desk::new([]));
        let mut gate = desk.model.gate();
        let session = desk.chat().open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
        let item = session.push("a".to_owned()).unwrap();
        gate.request().await;
        let steer = session.push(Push::new("steer".to_owned()).policy(Policy::steer())).unwrap();
        let number = steer.recorded().await.unwrap();
        // It is known here as an item of the store before it is missed there.
        let is_accepted =
            move |event: &SessionEvent| matches!(event, SessionEvent::Accepted(id) if id.number() == 1);
        seen(&session, is_accepted).await;
        if from_elsewhere {
            store.withdraw(&id, number).await.unwrap();
            session.check_store();
            assert_eq!(steer.outcome().await, ItemOutcome::Withdrawn);
        } else {
            assert_eq!(session.withdraw(steer.id()).await.as_deref(), Some("steer"));
        }
        gate.send(Delta::Text("one".into()));
        answers(&gate, " two");
        assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
        assert!(store.inbox(&id).await.unwrap().is_empty());
        session.stop(SessionStop::at_turn_end());
        let exit = session.done().await;
        assert_eq!(said(exit.history()), ["a"]);
    }
}

/// S6.12, S7.1: taken out of the store in the moment in which the run takes it, before its session has
/// looked: the run continues without it, and with the one beside it.
#[tokio::test]
async fn a_steer_that_is_gone_as_it_is_taken_fails_nothing() {
    for beside in [false, true] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (id, desk) = (SessionId::from("s"), Desk::new([]));
        let mut gate = desk.model.gate();
        let session = desk.chat().open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
        let item = session.push("a".to_owned()).unwrap();
        gate.request().await;
        let steers = |text: &str| session.push(Push::new(text.to_owned()).policy(Policy::steer())).unwrap();
        let steer = steers("steer");
        let kept = beside.then(|| steers("kept"));
        let number = steer.recorded().await.unwrap();
        if let Some(kept) = &kept {
            kept.recorded().await;
        }
        store.withdraw(&id, number).await.unwrap();
        answers(&gate, "one");
        assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
        assert_eq!(steer.outcome().await, ItemOutcome::Withdrawn);
        if let Some(kept) = &kept {
            assert_eq!(kept.outcome().await, ItemOutcome::Completed(turn(1)));
        }
        session.stop(SessionStop::at_turn_end());
        let tickets: Vec<_> = [item, steer].into_iter().chain(kept).collect();
        let exit = accounted(&session, &tickets).await;
        let said = said(exit.history());
        assert_eq!(said, if beside { vec!["a", "kept"] } else { vec!["a"] });
    }
}

/// S6.10, S6.12: the item leaves the store just before the run's end would return it. It is with the client
/// that took it, and in no other place, and the session lives.
#[tokio::test]
async fn a_steer_that_is_gone_as_it_comes_back_is_in_one_place() {
    for or in [IfUndelivered::Queue, IfUndelivered::Return] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (id, desk) = (SessionId::from("s"), Desk::new([]));
        let mut gate = desk.model.gate();
        let session = desk.chat().open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
        let item = session.push("a".to_owned()).unwrap();
        gate.request().await;
        let policy = Policy::Steer(SteerTiming::NextRequest, or);
        let steer = session.push(Push::new("steer".to_owned()).policy(policy)).unwrap();
        let number = steer.recorded().await.unwrap();
        store.withdraw(&id, number).await.unwrap();
        session.stop_turn(None, safepoint::StopRequest::now());
        assert_eq!(steer.outcome().await, ItemOutcome::Withdrawn, "{or:?}");
        assert_eq!(item.outcome().await, ItemOutcome::Interrupted(turn(1)));
        let next = session.push("b".to_owned()).unwrap();
        assert_eq!(next.outcome().await, ItemOutcome::Completed(turn(2)), "{or:?}: the session lives");
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[item, steer, next]).await;
    }
}

/// S6.10, S6.12, S7.1: the same where its session looks, and sees that it is gone, at every moment of the
/// run's end.
#[tokio::test]
async fn a_steer_that_is_seen_to_be_gone_as_it_comes_back_is_in_one_place() {
    for (or, moments) in
        [IfUndelivered::Queue, IfUndelivered::Return].into_iter().flat_map(|or| (0..24).map(move |n| (or, n)))
    {
        let named = |what: &str| format!("{or:?}, {moments}: {what}");
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (id, desk) = (SessionId::from("s"), Desk::new([]));
        let mut gate = desk.model.gate();
        let session = desk.chat().open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
        let item = session.push("a".to_owned()).unwrap();
        gate.request().in_time(named("the model is asked")).await;
        let policy = Policy::Steer(SteerTiming::NextRequest, or);
        let steer = session.push(Push::new("steer".to_owned()).policy(policy)).unwrap();
        let number = steer.recorded().in_time(named("it is recorded")).await.unwrap();
        store.withdraw(&id, number).await.unwrap();
        session.check_store();
        for _ in 0..moments {
            tokio::task::yield_now().await;
        }
        session.stop_turn(None, safepoint::StopRequest::now());
        assert_eq!(
            steer.outcome().in_time(named("its fate")).await,
            ItemOutcome::Withdrawn,
            "{or:?}, {moments}"
        );
        assert_eq!(item.outcome().in_time(named("the item's")).await, ItemOutcome::Interrupted(turn(1)));
        let next = session.push("b".to_owned()).unwrap();
        assert_eq!(next.outcome().in_time(named("the next one's")).await, ItemOutcome::Completed(turn(2)));
        session.stop(SessionStop::at_turn_end());
        let exit = accounted(&session, &[item, steer, next]).await;
        assert!(!said(exit.history()).contains(&"steer".to_owned()), "{or:?}, {moments}");
    }
}

/// S6.1, S6.3, S6.6: what came with a preempt or a rollback goes before the queue, in its order.
#[tokio::test]
async fn what_preempts_goes_before_the_queue() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let push = |text: &str, policy: Policy| session.push(Push::new(text.to_owned()).policy(policy)).unwrap();
    let old = push("old", Policy::Enqueue);
    gate.request().await;
    let (one, two) = (push("one", Policy::Enqueue), push("two", Policy::Enqueue));
    let first = push("first", Preempt::at(SafePoints::AFTER_MODEL).into());
    let second = push("second", Policy::Rollback);
    let fates = [second.outcome().await, first.outcome().await, one.outcome().await, two.outcome().await];
    assert_eq!(fates, [3, 2, 4, 5].map(|number| ItemOutcome::Completed(turn(number))));
    session.stop(SessionStop::at_turn_end());
    let exit = accounted(&session, &[old, one, two, first, second]).await;
    assert_eq!(said(exit.history()), ["first", "second", "one", "two"]);
}
