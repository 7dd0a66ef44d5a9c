//! A preempt, a stop and the turn's end in the order that chance gives them; and a stop with nothing beside
//! it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use safepoint::{
    Reason, SafePoints, SessionHandle, StopRequest,
    ids::ItemId,
    message::ToolCall,
    model::{Delta, Finish},
    session::{
        ExitReason, ItemOutcome, Policy, Preempt, PreemptOutcome, Push, SessionEvent, SessionStop,
        TurnStopAck,
    },
    stop::StopAck,
};
use safepoint_testkit::script::Reply;
use serde_json::json;

use super::{
    desk::{Desk, Planning, accounted, pays, said, turn},
    dice::{Dice, seeds},
    world::{seen, texts},
};

/// What was done so far, in its order.
type Order = Arc<Mutex<Vec<&'static str>>>;

async fn yields(count: u64) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// Waits until the session has processed all earlier messages: it answers in the order of its mail.
async fn processed(session: &SessionHandle<String>) {
    let none: ItemId = u64::MAX.to_string().parse().unwrap();
    assert_eq!(session.withdraw(none).await, None);
}

/// S6.11, S6.10, S6.13: a preempt, a graceful stop and the end of the turn's call come in separate tasks, in
/// the order of the seed, 300 times. Where the turn ends after both, in either order, the running item is
/// interrupted and the pushed one is unhandled. In every order: the exit is a stop, and each item is in one
/// place.
#[tokio::test]
async fn a_preempt_and_a_graceful_stop_have_one_account_in_every_order() {
    const SEEDS: u64 = 300;
    let seeds = seeds(SEEDS);
    let is_whole = seeds.end - seeds.start == SEEDS;
    let mut orders = BTreeSet::new();
    for seed in seeds {
        let order = one_order(seed).await;
        orders.insert(order);
    }
    assert!(!is_whole || orders.len() == 6, "{orders:?}");
}

async fn one_order(seed: u64) -> Vec<&'static str> {
    const SPREAD: u64 = 12;
    let mut dice = Dice(seed);
    let desk = Desk::new([pays()]);
    let session = desk.chat().start();
    let old = session.push("old".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    let order = Order::default();
    let (pusher, pushed, before) = (session.handle(), Arc::clone(&order), dice.below(SPREAD));
    let new = tokio::spawn(async move {
        yields(before).await;
        let preempt = Push::new("new".to_owned()).policy(Preempt::at(SafePoints::AFTER_ALL_CALLS));
        // The session may be over already.
        let new = pusher.push(preempt).ok();
        if new.is_some() {
            processed(&pusher).await;
        }
        pushed.lock().unwrap().push("push");
        new
    });
    let (stopper, stopped, before) = (session.handle(), Arc::clone(&order), dice.below(SPREAD));
    let asked = tokio::spawn(async move {
        yields(before).await;
        let asked = stopper.stop(SessionStop::graceful().with_cause("enough")).asked().await;
        stopped.lock().unwrap().push("stop");
        asked
    });
    yields(dice.below(2 * SPREAD)).await;
    order.lock().unwrap().push("end");
    desk.tools.gate().open_for_all();
    let (new, asked) = (new.await.unwrap(), asked.await.unwrap());
    assert_eq!(asked, StopAck::First, "seed {seed}");
    let tickets: Vec<_> = [old.clone()].into_iter().chain(new.clone()).collect();
    let exit = accounted(&session, &tickets).await;
    assert_eq!((exit.reason(), exit.cause()), (&ExitReason::Stopped, Some("enough")), "seed {seed}");
    let order = order.lock().unwrap().clone();
    let is_before_the_end =
        |what: &str| order.iter().take_while(|done| **done != "end").any(|done| *done == what);
    if is_before_the_end("stop") {
        assert_eq!(old.fate_now(), Some(ItemOutcome::Interrupted(turn(1))), "seed {seed}, {order:?}");
        assert_eq!(exit.open().unwrap().items, [(old.id(), "old".to_owned())]);
        assert_eq!(said(exit.history()), ["old"], "seed {seed}, {order:?}");
    }
    let Some(new) = new else { return order };
    let preempted = new.preempted().await;
    if is_before_the_end("stop") && is_before_the_end("push") {
        assert_eq!((texts(&exit), preempted), (vec!["new".to_owned()], PreemptOutcome::SupersededByStop));
    }
    let is_preempted = matches!(old.fate_now(), Some(ItemOutcome::Preempted(_)));
    assert_eq!(is_preempted, preempted == PreemptOutcome::StoppedTurn(turn(1)), "seed {seed}, {order:?}");
    order
}

/// S6.7, S6.11: a stop alone: the active turn is interrupted at its safe point, and may be resumed.
#[tokio::test]
async fn a_stop_alone_interrupts_the_running_turn() {
    let desk = Desk::new([pays()]);
    let session = desk.chat().start();
    let item = session.push("old".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    assert_eq!(session.stop(SessionStop::graceful().with_cause("enough")).asked().await, StopAck::First);
    desk.tools.gate().open_for_all();
    let exit = accounted(&session, std::slice::from_ref(&item)).await;
    assert_eq!((exit.reason(), exit.cause()), (&ExitReason::Stopped, Some("enough")));
    assert_eq!((item.fate_now(), texts(&exit).len()), (Some(ItemOutcome::Interrupted(turn(1))), 0));
    assert_eq!((exit.open().unwrap().items.len(), desk.model.requests().len()), (1, 1));
}

/// S6.7, S6.9: `now` while the planner is asked: no turn begins, no model is called, and the item is
/// unhandled.
#[tokio::test]
async fn now_while_planning_begins_no_turn() {
    let desk = Desk::new([]);
    let session = desk.planned(Planning::Hangs).start();
    let item = session.push("a".to_owned()).unwrap();
    seen(&session, |event| matches!(event, SessionEvent::Planning { .. })).await;
    assert_eq!(session.stop(SessionStop::now()).asked().await, StopAck::First);
    let exit = accounted(&session, std::slice::from_ref(&item)).await;
    assert_eq!((exit.reason(), texts(&exit)), (&ExitReason::Stopped, vec!["a".to_owned()]));
    assert_eq!((item.fate_now(), desk.model.requests().len()), (Some(ItemOutcome::Unhandled), 0));
    assert!(exit.open().is_none());
}

/// S3.1, S6.3, S1.4: a person's stop that meets a preempt that waits took effect, and both are in the
/// receipt.
#[tokio::test]
async fn a_stop_that_meets_a_preempt_is_in_the_receipt() {
    let desk = Desk::new([pays(), Reply::text("instead")]);
    let session = desk.chat().start();
    session.push("old".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    let preempt = Preempt::at(SafePoints::AFTER_ALL_CALLS);
    let new = session.push(Push::new("new".to_owned()).policy(preempt)).unwrap();
    let person = StopRequest::now().with_reason(Reason::user("at the terminal"));
    assert!(matches!(session.stop_turn(None, person).asked().await, TurnStopAck::Stopping(_)));
    let ended = seen(&session, |event| matches!(event, SessionEvent::TurnEnded { .. })).await;
    let SessionEvent::TurnEnded { receipt, .. } = ended else { panic!("{ended:?}") };
    let receipt = receipt.to_string();
    assert!(receipt.contains("Stopped by user (person): at the terminal"), "{receipt}");
    assert!(receipt.contains("  also by   preempted"), "{receipt}");
    assert_eq!(new.outcome().await, ItemOutcome::Completed(turn(2)));
}

/// S6.5: steered while the model writes a call: the call is written to its end and runs, nothing is asked
/// twice, and the next request holds the steer.
/// can1357/oh-my-pi#9008: steering aborts a tool call mid-stream and wastes the tokens.
#[tokio::test]
async fn a_steer_while_a_call_is_written_leaves_the_call() {
    let desk = Desk::new([Reply::text("in euros then")]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let item = session.push("pay".to_owned()).unwrap();
    gate.request().await;
    let call = ToolCall { id: "a".into(), name: "pay".into(), args: json!({}).to_string() };
    gate.send(Delta::Text("paying".into()));
    let steer = session.push(Push::new("in euros".to_owned()).policy(Policy::steer())).unwrap();
    processed(&session).await;
    gate.send(Delta::CallReady(call)).send(Delta::Ended(Finish::Natural));
    desk.tools.gate().came(1).await;
    desk.tools.gate().open_for_all();
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(steer.delivered().await.map(|delivered| delivered.round), Some(2));
    let asked = desk.model.requests();
    assert_eq!(asked.len(), 2, "no request was wasted");
    assert!(format!("{:?}", asked[1]).contains("paying"), "nothing of the message is lost");
}
