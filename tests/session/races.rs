//! Preempts, steers and stops that meet each other and the turn's end: whatever the order, one account.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Grace, History, Reason, SafePoints, Session, SessionHandle, StopRequest,
    event::Fact,
    hook::{HookResult, Hooks, ModelVerdict, from_future},
    model::{Delta, ModelError, ModelErrorKind},
    session::{
        ChatPlanner, ExitReason, IfUndelivered, ItemOutcome, Policy, Preempt, PreemptOutcome, Push,
        PushError, RejectReason, SessionEvent, SessionStop, StoppedTurn, TurnStopAck,
    },
    steer::SteerTiming,
    stop::{Code, StopAck},
};
use safepoint_testkit::script::Reply;
use std::sync::OnceLock;

use super::{
    desk::{Desk, accounted, answers, is_fact, one_after_the_other, said, turn},
    dice::Dice,
    world::{seen, texts},
};

/// Asks the session to stop as soon as its run begins: hooks have no start of their own, and the one before
/// the first model call is the first that is called.
struct StopsAtItsStart(Arc<OnceLock<SessionHandle<String>>>);

impl Hooks for StopsAtItsStart {
    fn before_model(&self, _round: u32, _history: &History) -> HookResult<ModelVerdict> {
        let session = self.0.get().cloned();
        from_future(async move {
            if let Some(session) = session {
                assert_eq!(session.stop(SessionStop::now()).asked().await, StopAck::First);
            }
            ModelVerdict::Proceed
        })
    }
}

/// S1.9, S6.7, S6.11: the agent's own hook stops the session before the first model call: no model call, one
/// account.
#[tokio::test]
async fn a_stop_from_the_agents_own_start_hook() {
    let desk = Desk::new([]);
    let own = Arc::default();
    let agent = Agent::builder(desk.model.clone()).hooks(StopsAtItsStart(Arc::clone(&own))).build();
    let session: Session<String> = Session::builder(ChatPlanner::new(agent)).start();
    assert!(own.set(session.handle()).is_ok());
    let item = session.push("a".to_owned()).unwrap();
    let waiting = session.push("b".to_owned()).unwrap();
    let exit = accounted(&session, &[item.clone(), waiting]).await;
    assert_eq!((exit.reason(), desk.model.requests().len()), (&ExitReason::Stopped, 0));
    assert_eq!(
        (item.fate_now(), texts(&exit)),
        (Some(ItemOutcome::Interrupted(turn(1))), vec!["b".to_owned()])
    );
    assert_eq!(said(exit.history()), ["a"], "what was said is not lost");
}

/// S6.2, S6.10: pushed while the session stops: each item is accepted and unhandled, or back with its sender.
#[tokio::test]
async fn a_push_during_shutdown_is_unhandled_or_back() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let mut tickets = vec![session.push("a".to_owned()).unwrap()];
    gate.request().await;
    session.stop(SessionStop::now());
    let mut back = 0;
    for number in 0.. {
        match session.push(number.to_string()) {
            Ok(ticket) => tickets.push(ticket),
            Err(PushError::Closed(item)) => {
                assert_eq!(item, number.to_string());
                back += 1;
                break;
            }
            Err(PushError::Full(_)) if !session.is_done() => {}
            Err(error) => panic!("{error:?}"),
        }
        tokio::task::yield_now().await;
    }
    let exit = accounted(&session, &tickets).await;
    assert_eq!((exit.unhandled().len(), back), (tickets.len() - 1, 1));
}

/// S6.3, S6.12: fifty preempts of one turn at once stop it once, and each gets an answer that says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_preempts_of_one_turn_stop_it_once() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let old = session.push("old".to_owned()).unwrap();
    gate.request().await;
    let pushers = (0..50).map(|number| {
        let session = session.handle();
        let of_one = Preempt::at(SafePoints::AFTER_MODEL).of(turn(1));
        tokio::spawn(async move { session.push(Push::new(number.to_string()).policy(of_one)).unwrap() })
    });
    let mut tickets = vec![old];
    for pusher in pushers.collect::<Vec<_>>() {
        tickets.push(pusher.await.unwrap());
    }
    tickets.push(session.push(Push::new("last".to_owned()).policy(Preempt::now())).unwrap());
    for ticket in &tickets[1..] {
        assert_eq!(ticket.preempted().await, PreemptOutcome::StoppedTurn(turn(1)));
    }
    for ticket in &tickets[1..] {
        assert!(matches!(ticket.outcome().await, ItemOutcome::Completed(_)));
    }
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &tickets).await;
    assert_eq!(one_after_the_other(&session).await, 52);
}

/// S6.3: a delayed preempt whose turn has ended hits no later one.
/// Waishnav/devspace PR#358: a cancel that was not acknowledged hits the next turn.
#[tokio::test(start_paused = true)]
async fn a_delayed_preempt_never_hits_a_later_turn() {
    let desk = Desk::new([]);
    let (mut one, mut two) = (desk.model.gate(), desk.model.gate());
    let session = desk.chat().start();
    let first = session.push("a".to_owned()).unwrap();
    one.request().await;
    let later = Preempt::now().after(Duration::from_secs(60));
    let second = session.push(Push::new("b".to_owned()).policy(later)).unwrap();
    answers(&one, "done");
    assert_eq!(second.preempted().await, PreemptOutcome::TurnEndedFirst);
    two.request().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(second.fate_now(), None, "its own turn continues");
    answers(&two, "done");
    assert_eq!(second.outcome().await, ItemOutcome::Completed(turn(2)));
    session.stop(SessionStop::now());
    accounted(&session, &[first, second]).await;
}

/// S6.3: a delayed preempt stops its turn when its time has come, and no earlier.
#[tokio::test(start_paused = true)]
async fn a_delayed_preempt_waits_for_its_time() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let first = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let began = tokio::time::Instant::now();
    let later = Preempt::now().after(Duration::from_secs(60));
    let second = session.push(Push::new("b".to_owned()).policy(later)).unwrap();
    assert_eq!(second.preempted().await, PreemptOutcome::StoppedTurn(turn(1)));
    assert_eq!(began.elapsed().as_secs(), 60);
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[first, second]).await;
}

/// S6.8: the first holds and repeats change nothing; with an active turn nothing happens; `keep_open` takes
/// it back; a later stop ends the wait at once.
#[tokio::test(start_paused = true)]
async fn repeated_waits_for_idleness_change_nothing() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let idle = |secs| SessionStop::when_idle_for(Duration::from_secs(secs));
    assert_eq!(session.stop(idle(60)).asked().await, StopAck::First);
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    for secs in [1, 60, 3600] {
        assert_eq!(session.stop(idle(secs)).asked().await, StopAck::Unchanged);
    }
    assert_eq!(item.fate_now(), None, "a running turn is not touched");
    answers(&gate, "done");
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    session.withdraw_idle_stop();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!session.is_done());
    let began = tokio::time::Instant::now();
    assert_eq!(session.stop(idle(60)).asked().await, StopAck::First);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let policy = Policy::Steer(SteerTiming::NextRequest, IfUndelivered::Return);
    let arrival = session.push(Push::new("b".to_owned()).policy(policy)).unwrap();
    let exit = accounted(&session, &[item, arrival]).await;
    assert_eq!(
        (exit.reason(), began.elapsed().as_secs()),
        (&ExitReason::Idle, 90),
        "an arrival restarts the clock"
    );

    let session = Desk::new([]).chat().start();
    assert_eq!(session.stop(idle(3600)).asked().await, StopAck::First);
    assert_eq!(session.stop(SessionStop::at_turn_end()).asked().await, StopAck::First);
    assert_eq!(session.done().await.reason(), &ExitReason::Stopped);
}

/// S6.8, S5.3: a resume is no idleness: the clock counts from the end of what was resumed.
#[tokio::test(start_paused = true)]
async fn a_resume_restarts_the_clock_of_idleness() {
    let desk = Desk::new([]);
    let (mut one, mut two) = (desk.model.gate(), desk.model.gate());
    let session = desk.chat().start();
    let item = session.push("a".to_owned()).unwrap();
    one.request().await;
    session.stop_turn(None, StopRequest::now());
    assert_eq!(item.outcome().await, ItemOutcome::Interrupted(turn(1)));
    let idle = session.stop(SessionStop::when_idle_for(Duration::from_secs(60)));
    assert_eq!(idle.asked().await, StopAck::First);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(session.resume().await);
    two.request().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    answers(&two, "done");
    let began = tokio::time::Instant::now();
    let exit = accounted(&session, &[item]).await;
    assert_eq!((exit.reason(), began.elapsed().as_secs()), (&ExitReason::Idle, 60));
}

/// S6.5: a steer that races the turn's end, at every moment of it: used or returned, never both, never
/// neither.
/// openclaw/openclaw PR#127996: drained, then an abort lands, and the message is gone;
/// G-Research/bobbit PR#477: accepted by a loop that is leaving, and gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_steer_that_races_the_end_is_used_or_returned() {
    let (mut used, mut returned) = (0, 0);
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let desk = Desk::new([Reply::text("and to that")]);
        let mut gate = desk.model.gate();
        let session = desk.chat().start();
        let item = session.push("a".to_owned()).unwrap();
        gate.request().await;
        let stops = dice.below(4) == 0;
        let (handle, spins) = (session.handle(), dice.below(400));
        let when = if dice.below(2) == 0 { SteerTiming::NextRequest } else { SteerTiming::AtOnce };
        let steering = tokio::spawn(async move {
            (0..spins).for_each(|_| std::hint::spin_loop());
            handle
                .push(Push::new("steer".to_owned()).policy(Policy::Steer(when, IfUndelivered::Return)))
                .unwrap()
        });
        answers(&gate, "done");
        if stops {
            session.stop_turn(None, StopRequest::now());
        }
        let steer = steering.await.unwrap();
        let (fate, delivered) = (steer.outcome().await, steer.delivered().await);
        item.outcome().await;
        session.stop(SessionStop::at_turn_end());
        let was_asked =
            desk.model.requests().iter().any(|history| said(history).contains(&"steer".to_owned()));
        let exit = session.done().await;
        let kept = said(exit.history()).iter().filter(|text| *text == "steer").count();
        match fate {
            ItemOutcome::Returned(RejectReason::NotDelivered | RejectReason::NoActiveTurn) => {
                assert_eq!((delivered, kept, was_asked), (None, 0, false), "seed {seed}");
                returned += 1;
            }
            ItemOutcome::Completed(_) | ItemOutcome::Interrupted(_) => {
                assert_eq!((delivered.map(|at| at.turn), kept), (Some(turn(1)), 1), "seed {seed}");
                used += 1;
            }
            other => panic!("seed {seed}: {other:?}"),
        }
        accounted(&session, &[item, steer]).await;
    }
    assert!(used > 0 && returned > 0, "{used} used, {returned} returned: no race");
}

/// S6.5: a blank steer is refused, with its own code, with an active turn or without.
/// openai/codex#31438: failures of a steer without a code that a program can read.
#[tokio::test]
async fn a_blank_steer_is_refused() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let blank = || session.push(Push::new(" \n".to_owned()).policy(Policy::steer()));
    assert_eq!(blank().unwrap_err().code(), "input");
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    assert_eq!(blank().unwrap_err().into_item().as_deref(), Some(" \n"));
    answers(&gate, "done");
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[item]).await;
}

/// S6.11, S2.13: the model fails for its own reason while a preempt waits: the failure is reported, and the
/// next turn comes.
#[tokio::test]
async fn a_pending_preempt_never_hides_a_failure() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let old = session.push("old".to_owned()).unwrap();
    gate.request().await;
    let at = Preempt::at(SafePoints::AFTER_MODEL);
    let new = session.push(Push::new("new".to_owned()).policy(at)).unwrap();
    seen(&session, |event| is_fact(event, |fact| matches!(fact, Fact::StopRequested(_)))).await;
    gate.fail(ModelError::new(ModelErrorKind::Refused, "its own reason"));
    assert_eq!(new.preempted().await, PreemptOutcome::TurnEndedFirst);
    assert_eq!(old.outcome().await, ItemOutcome::Failed(turn(1)));
    assert_eq!(new.outcome().await, ItemOutcome::Completed(turn(2)));
    session.stop(SessionStop::at_turn_end());
    let exit = accounted(&session, &[old, new]).await;
    assert_eq!(said(exit.history()), ["old", "new"], "S5.5");
}

/// S6.6, S5.5: rollback stops the active turn and forgets it; the next one knows nothing of it.
#[tokio::test]
async fn a_rollback_forgets_the_turn() {
    let desk = Desk::new([Reply::text("kept answer")]);
    let session = desk.chat().start();
    let kept = session.push("kept".to_owned()).unwrap();
    kept.outcome().await;
    let mut gate = desk.model.gate();
    let old = session.push("old".to_owned()).unwrap();
    gate.request().await;
    gate.send(Delta::Text("half of an ans".into()));
    let new = session.push(Push::new("new".to_owned()).policy(Policy::Rollback)).unwrap();
    assert_eq!(new.preempted().await, PreemptOutcome::StoppedTurn(turn(2)));
    assert_eq!(old.outcome().await, ItemOutcome::RolledBack(turn(2)));
    assert_eq!(new.outcome().await, ItemOutcome::Completed(turn(3)));
    assert!(!session.resume().await, "there is nothing to resume");
    session.stop(SessionStop::at_turn_end());
    let exit = accounted(&session, &[kept, old, new]).await;
    assert_eq!(said(exit.history()), ["kept", "new"]);
    assert!(!format!("{:?}", desk.model.requests().last()).contains("half of an ans"));
}

/// S6.10, S6.2: with `keep_late`, what comes after the end is kept and given out once; the same id is the
/// same item then too.
#[tokio::test]
async fn what_comes_late_is_kept_once() {
    let session = Desk::new([]).chat().keep_late_items().start();
    session.stop(SessionStop::now());
    let exit = session.done().await;
    let late = |text: &str, id: &str| session.push(Push::new(text.to_owned()).id(id));
    assert!(matches!(session.push("a".to_owned()), Err(PushError::KeptLate)));
    assert!(matches!(late("b", "1"), Err(PushError::KeptLate)));
    assert!(matches!(late("b", "1"), Err(PushError::KeptLate)));
    assert!(matches!(late("c", "1"), Err(PushError::OtherContent(item)) if item == "c"));
    assert_eq!(exit.take_late(), ["a", "b"]);
    assert!(matches!(late("b", "1"), Err(PushError::KeptLate)));
    assert!(exit.take_late().is_empty());
}

/// S6.2: an id that a client used is known as long as the session lives, also when its item is at rest or the
/// session is over.
/// milind-soni/OpenMausBot PR#1323: an answer that is late is read as a refusal, and the message is sent and
/// done twice.
#[tokio::test]
async fn a_clients_id_is_known_for_the_sessions_life() {
    let session = Desk::new([]).chat().start();
    let push = |text: &str| session.push(Push::new(text.to_owned()).id("one"));
    let first = push("a").unwrap();
    assert_eq!(first.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(push("a").unwrap().fate_now(), Some(ItemOutcome::Completed(turn(1))));
    session.stop(SessionStop::now());
    session.done().await;
    assert_eq!(push("a").unwrap().id(), first.id());
    assert!(matches!(push("b"), Err(PushError::OtherContent(_))));
    accounted(&session, &[first]).await;
}

/// S6.7, S1.5, S1.9: a session's stop escalates: at the turn's end, gracefully, gracefully within, now. Each
/// answer says what the request added, and none weakens.
#[tokio::test(start_paused = true)]
async fn a_stop_escalates_and_never_weakens() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let asked = |stop: SessionStop| session.stop(stop).asked();
    assert_eq!(asked(SessionStop::at_turn_end().with_cause("first")).await, StopAck::First);
    assert_eq!(asked(SessionStop::graceful().with_cause("second")).await, StopAck::Strengthened);
    assert_eq!(asked(SessionStop::graceful()).await, StopAck::Unchanged);
    let within = SessionStop::graceful_within(Grace::from_millis(60_000));
    assert_eq!(asked(within).await, StopAck::Strengthened, "it ends sooner than it did");
    assert_eq!(asked(SessionStop::at_turn_end()).await, StopAck::Unchanged);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(item.fate_now(), None);
    assert_eq!(asked(SessionStop::now().abandon()).await, StopAck::Strengthened);
    gate.dropped().await;
    let exit = accounted(&session, &[item]).await;
    assert_eq!((exit.cause(), exit.after()), (Some("first"), StoppedTurn::Abandoned));
    assert_eq!(asked(SessionStop::now()).await, StopAck::TooLate);
}

/// S6.7: graceful within: then now.
#[tokio::test(start_paused = true)]
async fn a_grace_that_is_over_is_now() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let began = tokio::time::Instant::now();
    session.stop(SessionStop::graceful_within(Grace::from_millis(60_000)));
    let exit = accounted(&session, std::slice::from_ref(&item)).await;
    assert_eq!((item.fate_now(), began.elapsed().as_secs()), (Some(ItemOutcome::Interrupted(turn(1))), 60));
    assert_eq!(exit.reason(), &ExitReason::Stopped);
}

/// S6.7: the first cause that says something holds, and dropping the session is a stop with reason shutdown.
#[tokio::test]
async fn dropping_a_session_stops_it() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let handle = session.handle();
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    handle.stop(SessionStop::at_turn_end().with_cause("  "));
    handle.stop(SessionStop::at_turn_end().with_cause("lunch"));
    handle.stop(SessionStop::at_turn_end().with_cause("dinner"));
    drop(session);
    gate.dropped().await;
    let exit = accounted(&handle, &[item]).await;
    assert_eq!((exit.reason(), exit.cause()), (&ExitReason::Stopped, Some("lunch")));
    let stop = exit.open().unwrap().outcome.as_ref().unwrap().receipt().stop.clone().unwrap();
    assert_eq!(stop.reason.code, "shutdown");
}

/// S5.3, S6.12: a resume that was promised comes, although the item that waited is taken back meanwhile.
#[tokio::test]
async fn a_promised_resume_comes() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let waiting = session.push("b".to_owned()).unwrap();
    let reason = Reason::new(Code::USER).with_text("wait a moment");
    let asked = session.stop_turn(Some(turn(1)), StopRequest::now().with_reason(reason));
    assert_eq!(asked.asked().await, TurnStopAck::Stopping(turn(1)));
    item.outcome().await;
    seen(&session, |event| matches!(event, SessionEvent::TurnQuiet { .. })).await;
    let (resumed, back) = tokio::join!(session.resume(), session.withdraw(waiting.id()));
    assert_eq!((resumed, back.as_deref()), (true, Some("b")));
    seen(&session, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
    assert!(!session.resume().await);
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[item, waiting]).await;
}
