//! Turn after turn: what a session does without haste.

use std::time::Duration;

use safepoint::{
    SafePoints, Steer, StopRequest,
    ids::TurnId,
    session::{
        Delivery, ExitReason, ItemOutcome, Policy, Preempt, PreemptOutcome, Push, PushError, RejectReason,
        SessionEvent, SessionStop, TurnStopAck,
    },
    steer::SteerOutcome,
    stop::StopAck,
};
use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::json;

use super::world::{agent, chat, round, seen, server, texts};

fn turn(number: u64) -> TurnId {
    number.to_string().parse().unwrap()
}

/// S6.1, S6.2, S6.7, S6.10: messages are taken one turn at a time, and the session ends at the turn boundary.
#[tokio::test]
async fn messages_are_taken_one_turn_at_a_time() {
    let server = server([Reply::text("one"), Reply::text("two")]).await;
    let session = chat(agent(&server).build()).start();
    let first = session.push("a".to_owned()).unwrap();
    let second = session.push("b".to_owned()).unwrap();
    assert_eq!((first.id().number(), second.id().number()), (0, 1));
    assert_eq!(first.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(second.outcome().await, ItemOutcome::Completed(turn(2)));
    assert_eq!(session.stop(SessionStop::at_turn_end()).asked().await, StopAck::First);
    let exit = session.done().await;
    assert_eq!((exit.reason(), exit.unhandled().len()), (&ExitReason::Stopped, 0));
    assert_eq!(exit.history().last_text().as_deref(), Some("two"));
    let sent = server.requests()[1].body.to_string();
    assert!(sent.contains("one"), "the second turn knows the first: {sent}");
    assert!(matches!(session.push("c".to_owned()), Err(PushError::Closed(item)) if item == "c"));
}

/// S6.3, S5.5, S6.11: a preempt stops the active turn; the next one answers the new item, and knows the old
/// one.
#[tokio::test]
async fn a_preempt_stops_the_turn_and_the_next_one_answers() {
    let server = server([Reply::text("done")]).await;
    let mut gate = server.gate();
    let session = chat(agent(&server).build()).start();
    let old = session.push("old".to_owned()).unwrap();
    let exchange = gate.request().await;
    let new = session.push(Push::new("new".to_owned()).policy(Preempt::now())).unwrap();
    exchange.peer_closed().await;
    assert_eq!(new.preempted().await, PreemptOutcome::StoppedTurn(turn(1)));
    assert_eq!(old.outcome().await, ItemOutcome::Preempted(turn(1)));
    assert_eq!(new.outcome().await, ItemOutcome::Completed(turn(2)));
    let sent = server.requests()[1].body.to_string();
    assert!(sent.contains("old") && sent.contains("new"), "{sent}");
}

/// S6.5: a steer goes to the active turn, and its ticket says where it was delivered.
/// getpaseo/paseo#4061: a message that is sent at once ends and discards the turn instead of steering it.
#[tokio::test]
async fn a_steer_is_delivered_to_the_running_turn() {
    let server = server([Reply::text("and that")]).await;
    let mut gate = server.gate();
    let session = chat(agent(&server).build()).start();
    let first = session.push("this".to_owned()).unwrap();
    gate.request().await;
    let steer = session.push(Push::new("that".to_owned()).policy(Policy::steer())).unwrap();
    gate.headers();
    gate.script(&Reply::text("this it is"));
    gate.finish();
    assert_eq!(steer.delivered().await, Some(Delivery { turn: turn(1), round: 2 }));
    assert_eq!(first.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(steer.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(server.requests().len(), 2);
}

/// S6.5: without an active turn a steer waits, or comes back, as asked.
#[tokio::test]
async fn a_steer_with_nothing_running_waits_or_comes_back() {
    let server = server([Reply::text("ok")]).await;
    let session = chat(agent(&server).build()).start();
    let policy =
        Policy::Steer(safepoint::steer::SteerTiming::NextRequest, safepoint::session::IfUndelivered::Return);
    let steer = session.push(Push::new("x".to_owned()).policy(policy)).unwrap();
    assert_eq!(steer.outcome().await, ItemOutcome::Returned(RejectReason::NoActiveTurn));
    assert_eq!(steer.take_back().as_deref(), Some("x"));
    let queued = session.push(Push::new("y".to_owned()).policy(Policy::steer())).unwrap();
    assert_eq!(queued.outcome().await, ItemOutcome::Completed(turn(1)));
}

/// S5.3: a turn that was stopped alone waits for a resume, or for an item pushed after the stop.
#[tokio::test]
async fn a_stopped_turn_waits_for_a_resume_or_a_newer_item() {
    let server = server([Reply::text("resumed"), Reply::text("b"), Reply::text("c")]).await;
    let mut gate = server.gate();
    let session = chat(agent(&server).build()).start();
    let a = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let b = session.push("b".to_owned()).unwrap();
    let asked = session.stop_turn(None, StopRequest::now()).asked().await;
    assert_eq!(asked, TurnStopAck::Stopping(turn(1)));
    assert_eq!(a.outcome().await, ItemOutcome::Interrupted(turn(1)));
    seen(&session, |event| matches!(event, SessionEvent::TurnQuiet { .. })).await;
    assert_eq!((server.requests().len(), b.fate_now()), (1, None), "an older item begins no turn");
    assert!(session.resume().await);
    seen(&session, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
    assert_eq!(a.fate_now(), Some(ItemOutcome::Completed(turn(1))));
    assert_eq!(b.outcome().await, ItemOutcome::Completed(turn(2)));
}

/// S11.15: what is planned is named: a new turn by the number that it gets, also behind one that ended early, and one that is resumed.
#[tokio::test]
async fn what_is_planned_is_named() {
    let server = server([Reply::text("resumed"), Reply::text("b")]).await;
    let (mut one, mut two) = (server.gate(), server.gate());
    let session = chat(agent(&server).build()).start();
    let mut events = session.events();
    let mut planned = async |wanted: fn(&SessionEvent) -> bool| {
        let mut planned = Vec::new();
        loop {
            match events.next().in_time("an event of the session").await.unwrap().kind {
                SessionEvent::Planning { turn } => planned.push(turn),
                event if wanted(&event) => return planned,
                _ => {}
            }
        }
    };
    let starts = |event: &SessionEvent| matches!(event, SessionEvent::TurnStarted { .. });
    let rests = |event: &SessionEvent| matches!(event, SessionEvent::TurnQuiet { .. });
    session.push("a".to_owned()).unwrap();
    assert_eq!(planned(starts).await, [turn(1)]);
    one.request().await;
    session.stop_turn(None, StopRequest::now()).asked().await;
    assert_eq!(planned(rests).await, []);
    session.push("b".to_owned()).unwrap();
    assert_eq!(planned(starts).await, [turn(2)]);
    two.request().await;
    session.stop_turn(None, StopRequest::now()).asked().await;
    assert_eq!(planned(rests).await, []);
    assert!(session.resume().await);
    assert_eq!(planned(starts).await, [turn(2)]);
}

/// S6.7, S6.11, S6.10: now: the turn is cut, its item interrupted, what waited unhandled, the open turn
/// handed out.
#[tokio::test]
async fn now_ends_the_turn_and_the_session() {
    let server = server([]).await;
    let mut gate = server.gate();
    let session = chat(agent(&server).build()).start();
    let a = session.push("a".to_owned()).unwrap();
    let exchange = gate.request().await;
    session.push("b".to_owned()).unwrap();
    drop(session.stop(SessionStop::now().with_cause("enough")));
    exchange.peer_closed().await;
    let exit = session.done().await;
    assert_eq!((a.outcome().await, texts(&exit)), (ItemOutcome::Interrupted(turn(1)), vec!["b".to_owned()]));
    assert_eq!(exit.cause(), Some("enough"));
    let open = exit.open().unwrap();
    assert_eq!((open.turn, open.items.len()), (turn(1), 1));
}

/// S6.8: idle for long enough ends it, on a paused clock; an arrival restarts the clock.
#[tokio::test(start_paused = true)]
async fn it_ends_when_it_was_idle_for_long_enough() {
    let server = server([Reply::text("hi")]).await;
    let session = chat(agent(&server).build()).start();
    drop(session.stop(SessionStop::when_idle_for(Duration::from_secs(60))));
    let hi = session.push("hi".to_owned()).unwrap();
    assert_eq!(hi.outcome().await, ItemOutcome::Completed(turn(1)));
    let exit = session.done().await;
    assert_eq!(exit.reason(), &ExitReason::Idle);
}

/// S6.12: a waiting item is taken back, one in a turn is not.
#[tokio::test]
async fn a_waiting_item_can_be_taken_back() {
    let server = server([]).await;
    let mut gate = server.gate();
    let session = chat(agent(&server).build()).start();
    let a = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let b = session.push("b".to_owned()).unwrap();
    assert_eq!(session.withdraw(b.id()).await.as_deref(), Some("b"));
    assert_eq!(session.withdraw(a.id()).await, None);
    assert_eq!(b.outcome().await, ItemOutcome::Withdrawn);
    round(&session, 1, 1).await;
}

/// S6.2: the inbox is bounded; the same id again is the same item, and refused with other content.
#[tokio::test]
async fn the_inbox_is_bounded_and_knows_its_clients_ids() {
    let server = server([]).await;
    let mut gate = server.gate();
    let session = chat(agent(&server).build()).inbox(2).start();
    session.push("a".to_owned()).unwrap();
    gate.request().await;
    let b = session.push(Push::new("b".to_owned()).id("1")).unwrap();
    assert_eq!(session.push(Push::new("b".to_owned()).id("1")).unwrap().id(), b.id());
    assert!(matches!(session.push(Push::new("x".to_owned()).id("1")), Err(PushError::OtherContent(_))));
    session.push("c".to_owned()).unwrap();
    assert!(matches!(session.push("d".to_owned()), Err(PushError::Full(item)) if item == "d"));
}

/// S6.3: with points, the preempt waits for its safe point; naming another turn is refused.
#[tokio::test]
async fn a_preempt_may_name_its_turn_and_its_safe_point() {
    let server = server([Reply::text("late")]).await;
    let mut gate = server.gate();
    let session = chat(agent(&server).build()).start();
    session.push("a".to_owned()).unwrap();
    gate.request().await;
    let wrong = Preempt::now().of(turn(7));
    let refused = session.push(Push::new("x".to_owned()).policy(wrong)).unwrap();
    assert_eq!(refused.outcome().await, ItemOutcome::Returned(RejectReason::TurnMismatch));
    let right = Preempt::at(SafePoints::AFTER_MODEL).of(turn(1));
    let pushed = session.push(Push::new("y".to_owned()).policy(right)).unwrap();
    gate.headers();
    gate.script(&Reply::text("the end"));
    gate.finish();
    // A final answer is not a safe point.
    assert_eq!(pushed.preempted().await, PreemptOutcome::TurnEndedFirst);
    assert_eq!(pushed.outcome().await, ItemOutcome::Completed(turn(2)));
}

/// S9.1, S9.2: a background run belongs to the session: it outlives the turn that began it, delays no later
/// one, and ends with the session.
#[tokio::test]
async fn a_background_run_belongs_to_the_session() {
    let inner = server([]).await;
    let mut gate = inner.gate();
    let aside = agent(&inner).build().as_subagent("aside", "does it aside").background();
    let outer =
        server([Reply::call("aside", json!({"task": "dig"})), Reply::text("begun"), Reply::text("and?")])
            .await;
    let session = chat(agent(&outer).child(aside).build()).start();
    let first = session.push("dig aside".to_owned()).unwrap();
    let exchange = gate.request().await;
    assert_eq!(first.outcome().await, ItemOutcome::Completed(turn(1)));
    let second = session.push("meanwhile?".to_owned()).unwrap();
    assert_eq!(second.outcome().await, ItemOutcome::Completed(turn(2)));
    assert_eq!(inner.open_connections(), 1, "it continues beside the turns");
    drop(session.stop(SessionStop::now()));
    exchange.peer_closed().await;
    assert!(session.done().await.unhandled().is_empty());
}

/// S6.5: a steer may name a child run; an unknown one is no target.
/// Kilo-Org/kilocode#14143: a message that would set a subagent right queues behind what it is at.
#[tokio::test]
async fn a_steer_may_name_a_child_run() {
    let inner = server([Reply::text("deeper, then")]).await;
    let mut gate = inner.gate();
    let helper = agent(&inner).build().as_subagent("helper", "helps");
    let outer = server([Reply::call("helper", json!({"task": "dig"})), Reply::text("done")]).await;
    let session = chat(agent(&outer).child(helper).build()).start();
    let item = session.push("dig".to_owned()).unwrap();
    gate.request().await;
    let run = session.current_turn().unwrap().run;
    let path = run.children().first().unwrap().path().clone();
    let unknown = path.of(&"unknown".into());
    assert!(session.steer_child(&unknown, Steer::new("x").unwrap()).is_none());
    let steering = session.steer_child(&path, Steer::new("deeper").unwrap()).unwrap();
    gate.headers();
    gate.script(&Reply::text("dug"));
    gate.finish();
    assert_eq!(steering.outcome().await, SteerOutcome::Delivered { round: 2 });
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    assert!(inner.requests()[1].body.to_string().contains("deeper"));
    assert!(session.steer_child(&path, Steer::new("too late").unwrap()).is_none());
}
