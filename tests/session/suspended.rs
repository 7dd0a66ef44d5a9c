//! A turn that waits for a decision: what comes behind it, who may end it, and what the session's end leaves
//! open.

use safepoint::{
    Outcome, Reason, SafePoints, SessionHandle, StopRequest,
    approval::{ApprovalRequest, DecideError, Decision},
    event::{EventKind, Fact},
    ids::ApprovalId,
    receipt::CallStatus,
    session::{
        ExitReason, IfUndelivered, ItemOutcome, ItemStopAck, Policy, Preempt, PreemptOutcome, Push,
        QueueAfterStop, RejectReason, SessionEvent, SessionStop, Ticket, TurnStopAck,
    },
    steer::SteerTiming,
    stop::Code,
};
use safepoint_testkit::{script::Reply, wait::InTime as _};

use super::{
    desk::{Desk, accounted, asks, is_fact, one_after_the_other, said, turn},
    world::{seen, texts},
};

/// A session whose first turn waits for a decision, and an item queued behind it.
struct Suspended {
    desk: Desk,
    session: safepoint::Session<String>,
    asked: Ticket<String>,
    queued: Ticket<String>,
    question: ApprovalRequest,
}

async fn question(session: &SessionHandle<String>) -> ApprovalRequest {
    let event =
        seen(session, |event| is_fact(event, |fact| matches!(fact, Fact::ApprovalRequested(_)))).await;
    match event {
        SessionEvent::Run { event, .. } => match event.kind {
            EventKind::Fact(fact) => match &*fact {
                Fact::ApprovalRequested(question) => question.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

impl Suspended {
    async fn new() -> Self {
        let desk = Desk::new([asks(), Reply::text("after the decision")]);
        desk.tools.gate().open_for_all();
        let session = desk.chat().start();
        let asked = session.push("may I?".to_owned()).unwrap();
        assert_eq!(asked.outcome().await, ItemOutcome::Suspended(turn(1)));
        let queued = session.push("queued".to_owned()).unwrap();
        let question = question(&session).await;
        seen(&session, |event| matches!(event, SessionEvent::TurnQuiet { .. })).await;
        assert_eq!(queued.fate_now(), None, "it waits behind the decision");
        Self { desk, session, asked, queued, question }
    }

    async fn over(&self, more: &[Ticket<String>]) -> std::sync::Arc<safepoint::session::SessionExit<String>> {
        self.session.stop(SessionStop::at_turn_end());
        let tickets = [&[self.asked.clone(), self.queued.clone()], more].concat();
        let exit = accounted(&self.session, &tickets).await;
        one_after_the_other(&self.session).await;
        exit
    }

    async fn decide(&self, id: &ApprovalId) -> Result<(), DecideError> {
        self.session.decide(id, Decision::Approve).await
    }
}

/// S8.1, S6.11, S8.2: what is pushed waits behind the decision; decided later, the same turn continues and
/// then the queue; one answer is taken.
#[tokio::test]
async fn a_decision_takes_the_turn_up_again() {
    let it = Suspended::new().await;
    assert_eq!(it.decide(&it.question.id).await, Ok(()));
    assert!(it.decide(&it.question.id).await.is_err(), "consumed once");
    assert_eq!(it.queued.outcome().await, ItemOutcome::Completed(turn(2)));
    assert_eq!(it.asked.fate_now(), Some(ItemOutcome::Completed(turn(1))));
    assert_eq!(it.desk.tools.ledger().lines().len(), 2, "the call ran once: entered and committed");
    let exit = it.over(&[]).await;
    assert_eq!(said(exit.history()), ["may I?", "queued"]);
}

/// S8.1, S8.2: decided at once, while the run is on its way to suspend: the decision is not lost, and not
/// refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_in_the_gap_before_the_suspension_is_taken() {
    for _ in 0..100 {
        let desk = Desk::new([asks(), Reply::text("after the decision")]);
        desk.tools.gate().open_for_all();
        let session = desk.chat().start();
        let asked = session.push("may I?".to_owned()).unwrap();
        let question = question(&session).await;
        assert_eq!(session.decide(&question.id, Decision::Approve).await, Ok(()));
        seen(&session, |event| {
            matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
        })
        .await;
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[asked]).await;
    }
}

/// S8.3, S6.3: suspended is a safe point for every set: a preempt ends the turn, the question is taken back,
/// later answers are refused, and the queue continues.
/// google/adk-python#5856, vercel/ai#18451: a message while a call waits for an approval leaves that call
/// open without end.
#[tokio::test]
async fn a_preempt_ends_a_suspended_turn() {
    let it = Suspended::new().await;
    let preempt = Preempt::at(SafePoints::AFTER_ALL_CALLS).of(turn(1));
    let new = it.session.push(Push::new("new".to_owned()).policy(preempt)).unwrap();
    assert_eq!(it.decide(&it.question.id).await, Err(DecideError::Withdrawn));
    assert_eq!(new.preempted().await, PreemptOutcome::StoppedTurn(turn(1)));
    assert_eq!(
        (new.outcome().await, it.queued.outcome().await),
        (ItemOutcome::Completed(turn(2)), ItemOutcome::Completed(turn(3)))
    );
    assert_eq!(it.asked.fate_now(), Some(ItemOutcome::Preempted(turn(1))));
    assert!(it.desk.tools.ledger().lines().is_empty(), "nothing ran");
    assert!(it.decide(&it.question.id).await.is_err());
    it.over(&[new]).await;
}

/// S8.3, S5.3, S1.10: stopped alone: interrupted in the requester's name, and the question taken back. What
/// waited behind it waits for a resume, which asks again under a new id.
#[tokio::test]
async fn a_suspended_turn_is_stopped_alone_and_resumed() {
    let it = Suspended::new().await;
    let reason = Reason::new(Code::USER).with_text("not now");
    let stopping =
        it.session.stop_turn(None, StopRequest::at(SafePoints::AFTER_ALL_CALLS).with_reason(reason));
    assert_eq!(stopping.asked().await, TurnStopAck::Stopping(turn(1)));
    let ended = |event: &SessionEvent| {
        matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Interrupted(_), receipt, .. }
            if receipt.stop.as_ref().is_some_and(|stop| stop.reason.text.contains("not now"))
                && receipt.calls[0].status == CallStatus::NotStarted)
    };
    seen(&it.session, ended).await;
    assert_eq!(it.queued.fate_now(), None);
    assert!(it.decide(&it.question.id).await.is_err(), "nothing is revived");
    assert!(it.session.resume().await);
    let asks_again = |event: &SessionEvent| {
        is_fact(event, |fact| matches!(fact, Fact::ApprovalRequested(again) if again.id != it.question.id))
    };
    seen(&it.session, asks_again).await;
    let exit = it.over(&[]).await;
    assert_eq!(texts(&exit), ["queued"]);
}

/// S6.19, S6.15: a steer that waits with a suspended turn is withdrawn by a stop of it, from the moment of the suspension on; a stop of
/// the item that the turn is about ends the turn, and what waits behind it runs.
#[tokio::test]
async fn items_of_a_suspended_turn_are_stopped_by_their_names() {
    for _ in 0..50 {
        let desk = Desk::new([asks(), Reply::text("to what waited")]);
        let session = desk.chat().start();
        let asked = session.push("may I?".to_owned()).unwrap();
        assert_eq!(asked.outcome().await, ItemOutcome::Suspended(turn(1)));
        let steer = session.push(Push::new("in euros".to_owned()).policy(Policy::steer())).unwrap();
        let behind = session.push("and then".to_owned()).unwrap();
        let stop = |item| session.stop_item(item, StopRequest::now(), QueueAfterStop::Continues).asked();
        assert_eq!(stop(steer.id()).in_time("the stop of a steer").await, ItemStopAck::Withdrawn);
        assert_eq!(steer.outcome().await, ItemOutcome::Withdrawn);
        assert_eq!(stop(asked.id()).in_time("the stop of an item").await, ItemStopAck::Stopping(turn(1)));
        let ended = behind.outcome().in_time("what waited behind it").await;
        assert_eq!(
            (ended, asked.fate_now()),
            (ItemOutcome::Completed(turn(2)), Some(ItemOutcome::Interrupted(turn(1))))
        );
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[asked, steer, behind]).await;
    }
}

/// S8.3, S1.10: the stop of a turn that suspends meanwhile ends it, whatever safe point it asked for, and its
/// receipt names the requester.
#[tokio::test]
async fn a_stop_on_the_way_to_the_suspension_keeps_its_reason() {
    for _ in 0..50 {
        let desk = Desk::new([asks()]);
        let session = desk.chat().start();
        let asked = session.push("may I?".to_owned()).unwrap();
        question(&session).await;
        let reason = Reason::new(Code::USER).with_text("not now");
        let at = StopRequest::at(SafePoints::AFTER_ALL_CALLS).with_reason(reason);
        assert_eq!(session.stop_turn(None, at).asked().await, TurnStopAck::Stopping(turn(1)));
        let event = seen(&session, |event| {
            matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Interrupted(_), .. })
        });
        let SessionEvent::TurnEnded { receipt, .. } = event.await else { panic!("another event") };
        assert_eq!(receipt.stop.as_ref().unwrap().reason.text, "not now");
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[asked]).await;
    }
}

/// S8.3, S6.10, S6.7: the end of the session leaves the turn suspended and its question open, however hard it
/// is stopped; the outcome that is handed out takes the decision later.
#[tokio::test]
async fn the_end_of_the_session_leaves_the_question_open() {
    for stop in [SessionStop::at_turn_end(), SessionStop::graceful(), SessionStop::now()] {
        let it = Suspended::new().await;
        it.session.stop(stop);
        assert!(it.decide(&it.question.id).await.is_err(), "the session takes none any more");
        let exit = it.over(&[]).await;
        assert_eq!((exit.reason(), texts(&exit)), (&ExitReason::Stopped, vec!["queued".to_owned()]));
        let open = exit.open().unwrap();
        assert_eq!((open.fate, open.items[0].1.as_str()), (ItemOutcome::Suspended(turn(1)), "may I?"));
        let outcome = open.outcome.as_ref().unwrap();
        let Outcome::Suspended(waiting) = outcome else { panic!("{outcome:?}") };
        assert_eq!(waiting.approvals()[0].id, it.question.id);
        let decided = vec![(it.question.id.clone(), Decision::Approve)];
        let done = it.desk.agent().resume_with(outcome, decided).await;
        assert_eq!(done.answer(), Some("after the decision"));
    }
}

/// S6.8: a suspended session is not idle.
#[tokio::test(start_paused = true)]
async fn a_suspended_session_is_not_idle() {
    let it = Suspended::new().await;
    it.session.withdraw(it.queued.id()).await.unwrap();
    let hour = std::time::Duration::from_secs(3600);
    it.session.stop(SessionStop::when_idle_for(hour));
    tokio::time::sleep(10 * hour).await;
    assert!(!it.session.is_done());
    it.decide(&it.question.id).await.unwrap();
    let exit = it.session.done().await;
    assert_eq!(exit.reason(), &ExitReason::Idle);
}

/// S6.5, S6.6: while it is suspended a steer finds no active turn, a rejecting push is refused, and a
/// rollback forgets the turn.
#[tokio::test]
async fn policies_meet_a_suspended_turn() {
    let it = Suspended::new().await;
    let push =
        |text: &str, policy: Policy| it.session.push(Push::new(text.to_owned()).policy(policy)).unwrap();
    let steer = push("steer", Policy::Steer(SteerTiming::NextRequest, IfUndelivered::Return));
    assert_eq!(steer.outcome().await, ItemOutcome::Returned(RejectReason::NoActiveTurn));
    let rejected = push("rejected", Policy::Reject);
    assert_eq!(rejected.outcome().await, ItemOutcome::Returned(RejectReason::Busy(Some(turn(1)))));
    let rollback = push("rollback", Policy::Rollback);
    assert_eq!(rollback.outcome().await, ItemOutcome::Completed(turn(2)));
    assert_eq!(it.queued.outcome().await, ItemOutcome::Completed(turn(3)));
    assert_eq!(it.asked.fate_now(), Some(ItemOutcome::RolledBack(turn(1))));
    let exit = it.over(&[steer, rejected, rollback]).await;
    assert_eq!(said(exit.history()), ["rollback", "queued"]);
}
