//! What the user gave the session fails: planners, readers, strategies. Every item is accounted for all the
//! same.

use std::{sync::mpsc, time::Duration};

use safepoint::{
    Grace, SafePoints,
    event::Fact,
    message::ToolCall,
    model::{Delta, Finish},
    receipt::Escalation,
    session::{ExitReason, ItemOutcome, Policy, Preempt, PreemptOutcome, Push, SessionEvent, SessionStop},
};

use super::{
    desk::{Desk, Planning, Reading, accounted, answers, is_fact, one_after_the_other, turn},
    world::seen,
};

/// S6.9: a planner that panics, before its first await or after it, or that errors, ends the session with an
/// error; what waits is unhandled.
#[tokio::test]
async fn a_planner_that_fails_ends_the_session_and_loses_nothing() {
    for how in [Planning::PanicsAtOnce, Planning::PanicsLater, Planning::Fails] {
        let session = Desk::new([]).planned(how).start();
        let tickets = [session.push("a".to_owned()).unwrap(), session.push("b".to_owned()).unwrap()];
        let exit = accounted(&session, &tickets).await;
        assert!(matches!(exit.reason(), ExitReason::Failed(_)), "{how:?}: {exit:?}");
        assert_eq!(exit.unhandled().len(), 2);
    }
}

/// S6.9: a stop interrupts a planner too, and so does a preempt; what it saw is planned again.
#[tokio::test]
async fn a_stop_interrupts_a_planner_that_hangs() {
    let session = Desk::new([]).planned(Planning::Hangs).start();
    let first = session.push("a".to_owned()).unwrap();
    seen(&session, |event| matches!(event, SessionEvent::Planning { .. })).await;
    let second = session.push(Push::new("b".to_owned()).policy(Preempt::now())).unwrap();
    assert_eq!(second.preempted().await, PreemptOutcome::NoTurn);
    session.stop(SessionStop::at_turn_end());
    let exit = accounted(&session, &[first, second]).await;
    assert_eq!((exit.reason(), exit.unhandled().len()), (&ExitReason::Stopped, 2));
}

/// S6.9: a planner that panics when it is asked what becomes of preempted items: an error, and nothing is
/// lost.
#[tokio::test]
async fn a_planner_that_panics_over_a_preempted_turn_ends_the_session() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.planned(Planning::PanicsWhenPreempted).start();
    let old = session.push("old".to_owned()).unwrap();
    gate.request().await;
    let new = session.push(Push::new("new".to_owned()).policy(Preempt::now())).unwrap();
    let exit = accounted(&session, &[old.clone(), new.clone()]).await;
    assert!(matches!(exit.reason(), ExitReason::Failed(_)), "{exit:?}");
    assert_eq!(
        (old.fate_now(), new.fate_now()),
        (Some(ItemOutcome::Preempted(turn(1))), Some(ItemOutcome::Unhandled))
    );
    assert_eq!(one_after_the_other(&session).await, 1, "no turn after it broke");
}

/// S6.9, S6.11: only the items of a preempted turn are asked about, not those of one that was stopped.
#[tokio::test]
async fn a_planner_is_not_asked_about_a_turn_that_was_interrupted() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.planned(Planning::PanicsWhenPreempted).start();
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    session.stop(SessionStop::now());
    let exit = accounted(&session, std::slice::from_ref(&item)).await;
    assert_eq!(
        (exit.reason(), item.fate_now()),
        (&ExitReason::Stopped, Some(ItemOutcome::Interrupted(turn(1))))
    );
}

/// S6.9, S6.5: a planner that panics when it is asked what a steer says: the session ends with an error, it
/// does not hang.
/// NousResearch/hermes-agent#79196: the session is wedged, and what is said later queues without end.
#[tokio::test]
async fn a_planner_that_panics_over_a_steer_ends_the_session() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.planned(Planning::PanicsAtASteer).start();
    let first = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let steer = session.push(Push::new("b".to_owned()).policy(Policy::steer())).unwrap();
    let exit = accounted(&session, &[first.clone(), steer.clone()]).await;
    assert!(matches!(exit.reason(), ExitReason::Failed(_)), "{exit:?}");
    assert_eq!(first.fate_now(), Some(ItemOutcome::Interrupted(turn(1))));
    assert_eq!(steer.fate_now(), Some(ItemOutcome::Unhandled));
}

/// S6.9, S5.3: a reader that returns after the first event stops its turn; the next one begins when it is
/// quiet, for an item pushed after that.
#[tokio::test]
async fn a_reader_that_returns_early_stops_its_turn() {
    let desk = Desk::new([]);
    let mut gates = [desk.model.gate(), desk.model.gate()];
    let session = desk.chat().reader(Reading::One).start();
    let first = session.push("a".to_owned()).unwrap();
    assert_eq!(first.outcome().await, ItemOutcome::Interrupted(turn(1)));
    let second = session.push("b".to_owned()).unwrap();
    assert_eq!(second.outcome().await, ItemOutcome::Interrupted(turn(2)));
    session.stop(SessionStop::at_turn_end());
    let exit = accounted(&session, &[first, second]).await;
    assert_eq!((exit.reason(), one_after_the_other(&session).await), (&ExitReason::Stopped, 2));
    let receipt = exit.open().unwrap().outcome.as_ref().unwrap().receipt();
    assert_eq!(receipt.stop.as_ref().unwrap().reason.code, "disconnect");
    gates.iter_mut().for_each(|gate| answers(gate, "too late"));
}

/// S6.9: a reader that panics or errors ends the session, whatever gentler stop was asked before.
#[tokio::test]
async fn a_reader_that_fails_ends_the_session_and_its_turn() {
    for how in [Reading::PanicsAtOnce, Reading::Panics, Reading::Fails] {
        for stop in [None, Some(SessionStop::at_turn_end()), Some(SessionStop::graceful())] {
            let desk = Desk::new([]);
            let _silent = desk.model.gate();
            let session = desk.chat().reader(how).start();
            let first = session.push("a".to_owned()).unwrap();
            let second = session.push("b".to_owned()).unwrap();
            if let Some(stop) = stop {
                seen(&session, |event| matches!(event, SessionEvent::TurnStarted { .. })).await;
                session.stop(stop);
            }
            let exit = accounted(&session, &[first.clone(), second]).await;
            assert!(matches!(exit.reason(), ExitReason::Failed(_)), "{how:?}: {exit:?}");
            assert_eq!(
                (first.fate_now(), exit.unhandled().len()),
                (Some(ItemOutcome::Interrupted(turn(1))), 1)
            );
        }
    }
}

/// S6.9, S11.1: a reader that never returns delays only the next turn, and that no longer than the limit.
#[tokio::test(start_paused = true)]
async fn a_reader_that_never_returns_has_its_time() {
    let session = Desk::new([]).chat().reader(Reading::Never).callback(Duration::from_secs(5)).start();
    let first = session.push("a".to_owned()).unwrap();
    let second = session.push("b".to_owned()).unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(first.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!((began.elapsed(), second.fate_now()), (Duration::ZERO, None));
    assert_eq!(second.outcome().await, ItemOutcome::Completed(turn(2)));
    assert_eq!(began.elapsed().as_secs(), 5);
    session.stop(SessionStop::now());
    accounted(&session, &[first, second]).await;
}

/// S6.4: a strategy sees the active turn, its items and its run, and chooses by it.
#[tokio::test]
async fn a_strategy_sees_the_running_turn() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let idle = session.push_with("a".to_owned(), |turn| {
        assert!(turn.is_none(), "nothing is running");
        Policy::Reject
    });
    let first = idle.unwrap();
    gate.request().await;
    let saw = first.id();
    let second = session.push_with("b".to_owned(), move |running| {
        let running = running.expect("a turn is running");
        assert_eq!((running.turn, &running.items[..], running.run.is_done()), (turn(1), &[saw][..], false));
        Preempt::now().of(running.turn).into()
    });
    let second = second.unwrap();
    assert_eq!(second.preempted().await, PreemptOutcome::StoppedTurn(turn(1)));
    assert_eq!(second.outcome().await, ItemOutcome::Completed(turn(2)));
    session.stop(SessionStop::now());
    accounted(&session, &[first, second]).await;
}

/// S6.4, S6.9: a strategy that panics ends the session; its item is accounted for.
#[tokio::test]
async fn a_strategy_that_panics_ends_the_session() {
    let desk = Desk::new([]);
    let _silent = desk.model.gate();
    let session = desk.chat().strategy(Duration::from_secs(3600)).start();
    let first = session.push("a".to_owned()).unwrap();
    seen(&session, |event| matches!(event, SessionEvent::TurnStarted { .. })).await;
    let second = session.push_with("b".to_owned(), |_| panic!("no idea")).unwrap();
    let exit = accounted(&session, &[first, second]).await;
    assert!(
        matches!(exit.reason(), ExitReason::Failed(error) if error.message.contains("no idea")),
        "{exit:?}"
    );
}

/// S6.4: past its bound the item is simply enqueued; what came meanwhile comes after it, in its order.
#[tokio::test]
async fn a_strategy_that_overruns_enqueues() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().strategy(Duration::from_millis(20)).start();
    let first = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let (resume, waits) = mpsc::channel::<()>();
    let slow = session.push_with("b".to_owned(), move |_| {
        assert!(waits.recv().is_err(), "it ends with the test");
        Policy::Reject
    });
    let slow = slow.unwrap();
    let third = session.push("c".to_owned()).unwrap();
    let is_accepted =
        move |event: &SessionEvent| matches!(event, SessionEvent::Accepted(id) if id.number() == 2);
    seen(&session, is_accepted).await;
    assert_eq!(slow.fate_now(), None, "it waits, although its strategy has not chosen");
    answers(&gate, "done");
    assert_eq!(
        (slow.outcome().await, third.outcome().await),
        (ItemOutcome::Completed(turn(2)), ItemOutcome::Completed(turn(3)))
    );
    drop(resume);
    session.stop(SessionStop::now());
    accounted(&session, &[first, slow, third]).await;
}

/// S2.8, S6.4, S6.7: a stop does not wait for a strategy.
#[tokio::test]
async fn a_stop_does_not_wait_for_a_strategy() {
    let desk = Desk::new([]);
    let _silent = desk.model.gate();
    let session = desk.chat().strategy(Duration::from_secs(3600)).start();
    let first = session.push("a".to_owned()).unwrap();
    let (resume, waits) = mpsc::channel::<()>();
    let (begins, begun) = tokio::sync::oneshot::channel();
    let slow = session.push_with("b".to_owned(), move |_| {
        assert!(begins.send(()).is_ok());
        assert!(waits.recv().is_err(), "it ends with the test");
        Policy::Enqueue
    });
    begun.await.unwrap();
    session.stop(SessionStop::now());
    let exit = accounted(&session, &[first, slow.unwrap()]).await;
    assert_eq!(exit.reason(), &ExitReason::Stopped);
    drop(resume);
}

/// S6.1, S6.9: what the planner wants back waits again, behind the item that it was preempted for, and before
/// what came later.
#[tokio::test]
async fn preempted_items_wait_again_if_the_planner_says_so() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.planned(Planning::Requeues).start();
    let old = session.push("old".to_owned()).unwrap();
    gate.request().await;
    let new = session.push(Push::new("new".to_owned()).policy(Preempt::now())).unwrap();
    let last = session.push("last".to_owned()).unwrap();
    assert_eq!(
        (new.outcome().await, old.outcome().await),
        (ItemOutcome::Completed(turn(2)), ItemOutcome::Completed(turn(3)))
    );
    assert_eq!(last.outcome().await, ItemOutcome::Completed(turn(4)));
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[old, new, last]).await;
}

/// S6.12, S6.17: however often turns are preempted, after three in a row one of two rounds comes to its end:
/// preempts wait for it, graces too. A stop does not wait.
#[tokio::test]
async fn after_three_preempted_turns_one_comes_to_its_end() {
    for stops in [false, true] {
        let desk = Desk::new([]);
        desk.tools.gate().open_for_all();
        let session = desk.chat().start();
        let mut gates: Vec<_> = (0..5).map(|_| desk.model.gate()).collect();
        let mut tickets = vec![session.push("0".to_owned()).unwrap()];
        for (number, gate) in (1_u64..).zip(&mut gates[..4]) {
            gate.request().await;
            if number == 4 {
                break;
            }
            let next = session.push(Push::new(number.to_string()).policy(Preempt::now())).unwrap();
            assert_eq!(next.preempted().await, PreemptOutcome::StoppedTurn(turn(number)));
            tickets.push(next);
        }
        let within = Preempt::at_within(SafePoints::ANY, Grace::from_millis(1));
        for preempt in [Preempt::now(), within] {
            tickets.push(session.push(Push::new("patience".to_owned()).policy(preempt)).unwrap());
        }
        let call = ToolCall { id: "c1".into(), name: "pay".into(), args: "{}".into() };
        gates[3].send(Delta::CallReady(call)).send(Delta::Ended(Finish::Natural));
        gates[4].request().await.expect("its second round");
        if stops {
            session.stop(SessionStop::now());
            assert_eq!(tickets[3].outcome().await, ItemOutcome::Interrupted(turn(4)));
            assert_eq!(tickets[4].preempted().await, PreemptOutcome::SupersededByStop);
            accounted(&session, &tickets).await;
            continue;
        }
        answers(&gates[4], "the protected answer");
        assert_eq!(tickets[3].outcome().await, ItemOutcome::Completed(turn(4)));
        assert_eq!(tickets[4].preempted().await, PreemptOutcome::TurnEndedFirst);
        assert_eq!(tickets[5].outcome().await, ItemOutcome::Completed(turn(6)));
        session.stop(SessionStop::at_turn_end());
        let exit = accounted(&session, &tickets).await;
        assert!(exit.unhandled().is_empty());
    }
}

/// S1.7, S6.3: a preempt whose grace ends took effect by deadline, for its own reason, and not by a further
/// request.
#[tokio::test(start_paused = true)]
async fn a_preempt_whose_grace_ends_is_reported_as_by_deadline() {
    let desk = Desk::new([]);
    let _silent = desk.model.gate();
    let session = desk.chat().start();
    let first = session.push("a".to_owned()).unwrap();
    seen(&session, |event| is_fact(event, |fact| matches!(fact, Fact::ModelStarted { .. }))).await;
    let within = Preempt::at_within(SafePoints::AFTER_ALL_CALLS, Grace::from_secs(2));
    let second = session.push(Push::new("b".to_owned()).policy(within)).unwrap();
    assert_eq!(second.preempted().await, PreemptOutcome::StoppedTurn(turn(1)));
    let ended = seen(&session, |event| matches!(event, SessionEvent::TurnEnded { .. })).await;
    let SessionEvent::TurnEnded { receipt, .. } = ended else { unreachable!() };
    let stop = receipt.stop.as_ref().unwrap();
    assert_eq!((&*stop.reason.code, stop.escalated), ("preempted", Escalation::ByDeadline));
    session.stop(SessionStop::now());
    accounted(&session, &[first, second]).await;
}
