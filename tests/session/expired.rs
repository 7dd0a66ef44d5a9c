//! Questions that expire without an answer while the turn is suspended, and the items behind them.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Limits, Session, SessionHandle,
    approval::{ApprovalMode, Decision, Rule, RuleAction, WithoutApprover},
    event::{Fact, Resolution},
    ids::SessionId,
    raw::store::{DecisionResult, Environment},
    receipt::CallStatus,
    session::{ChatPlanner, ItemOutcome, Policy, Push, SessionEvent, SessionStop},
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::{
    script::Reply,
    store_suite::{Population, Time, outside, owner},
};

use super::{
    desk::{Desk, accounted, asks, is_fact, one_after_the_other, said, turn},
    world::seen,
};

/// Real time, for questions go by the wall clock; short enough to be waited for.
const SOON: Duration = Duration::from_millis(30);

fn agent(desk: &Desk, approval: Duration) -> Agent {
    Agent::builder(desk.model.clone())
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .rule(Rule::on("ask", RuleAction::Ask))
        .limits(Limits::default().with_approval_expiry(approval))
        .tool(desk.tools.gated("ask"))
        .build()
}

fn has_expired(event: &SessionEvent) -> bool {
    is_fact(event, |fact| matches!(fact, Fact::ApprovalResolved { answer: Resolution::Expired, .. }))
}

/// The last model call says that no decision came.
fn model_saw_expiry(desk: &Desk) {
    let requests = desk.model.requests();
    let last = format!("{:?}", requests.last().unwrap().entries());
    assert!(last.contains("expired"), "{last}");
}

/// Two calls that ask, in one round.
fn asks_twice() -> Reply {
    asks().and_call("ask", serde_json::json!({"other": true}))
}

/// S8.5, S6.11: no decision comes: the session wakes by itself, the model learns of it, and the turn runs to
/// its natural end. What waited behind it follows. The call did not run.
#[tokio::test]
async fn an_expired_question_lets_the_turn_continue() {
    for reply in [asks(), asks_twice()] {
        let desk = Desk::new([reply, Reply::text("then not")]);
        let session: Session<String> = Session::builder(ChatPlanner::new(agent(&desk, SOON))).start();
        let asked = session.push("may I?".to_owned()).unwrap();
        let queued = session.push("queued".to_owned()).unwrap();
        assert_eq!(asked.outcome().await, ItemOutcome::Suspended(turn(1)));
        seen(&session, has_expired).await;
        assert_eq!(queued.outcome().await, ItemOutcome::Completed(turn(2)));
        assert_eq!(asked.fate_now(), Some(ItemOutcome::Completed(turn(1))));
        assert!(desk.tools.ledger().lines().is_empty(), "nothing ran");
        let ended = seen(
            &session,
            |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(ended), .. } if *ended == turn(1)),
        );
        let SessionEvent::TurnEnded { receipt, .. } = ended.await else { panic!("another event") };
        assert!(receipt.calls.iter().all(|call| call.status == CallStatus::Expired), "{receipt:?}");
        session.stop(SessionStop::at_turn_end());
        let exit = accounted(&session, &[asked, queued]).await;
        one_after_the_other(&session).await;
        assert_eq!(said(exit.history()), ["may I?", "queued"]);
    }
}

/// S8.1, S8.5: by default a question waits for a month: an answer on its last day counts, and a day later it
/// is over.
#[tokio::test]
async fn a_question_waits_for_a_month() {
    for (days, counts) in [(29, true), (31, false)] {
        let (time, lives) = (Time::default(), Population::default());
        let began = jiff::Timestamp::now();
        let (then, start) = (time.clone(), time.now());
        let clock = Arc::new(move || began + then.now().duration_since(start));
        let store = Arc::new(MemoryStore::new(Environment { clock, ..outside(&time, &lives) }));
        let desk = Desk::new([asks(), Reply::text("after all")]);
        desk.tools.gate().open_for_all();
        let id = SessionId::from("s");
        let open = |pid| desk.chat().open(Arc::clone(&store) as Arc<dyn Store>, id.clone(), owner(pid));
        let first = open(1).await.unwrap();
        assert_eq!(first.push("may I?".to_owned()).unwrap().outcome().await, ItemOutcome::Suspended(turn(1)));
        first.stop(SessionStop::at_turn_end());
        first.done().await;
        time.pass(Duration::from_secs(days * 24 * 60 * 60));
        let asked = store.approvals(&id).await.unwrap().remove(0).asked;
        let bytes = serde_json::to_vec(&Decision::Approve).unwrap();
        let yes = safepoint::raw::store::NewDecision {
            id: asked.id,
            digest: asked.digest,
            principal: "ann".into(),
            bytes,
        };
        let decided = store.decide(&id, yes).await.unwrap();
        assert_eq!(decided, if counts { DecisionResult::Taken } else { DecisionResult::Expired });
        if counts {
            let next = open(2).await.unwrap();
            seen(&next, |event| {
                matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
            })
            .await;
            assert_eq!(desk.tools.ledger().lines().len(), 2, "entered and committed");
        }
    }
}

/// S8.5: the model sees that its call expired, as the call's result.
#[tokio::test]
async fn the_model_learns_that_a_question_expired() {
    let desk = Desk::new([asks(), Reply::text("then not")]);
    let session: Session<String> = Session::builder(ChatPlanner::new(agent(&desk, SOON))).start();
    session.push("may I?".to_owned()).unwrap();
    seen(&session, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
    model_saw_expiry(&desk);
}

/// S8.5, S7.2: the next owner of a suspended session wakes for the expiry too.
#[tokio::test]
async fn the_next_owner_wakes_for_an_expired_question() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let desk = Desk::new([asks(), Reply::text("then not")]);
    let open = async || {
        let builder = Session::<String>::builder(ChatPlanner::new(agent(&desk, SOON)));
        builder.open(Arc::clone(&store), SessionId::from("s"), OwnerProcess::here()).await.unwrap()
    };
    let first = open().await;
    assert!(matches!(first.push("may I?".to_owned()).unwrap().outcome().await, ItemOutcome::Suspended(_)));
    first.stop(SessionStop::now());
    first.done().await;
    let next = open().await;
    seen(&next, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
    model_saw_expiry(&desk);
    assert_eq!(desk.model.requests().len(), 2, "each model call was made once");
}

async fn behind(session: &SessionHandle<String>, wanted: safepoint::ids::ItemId) {
    seen(
        session,
        |event| matches!(event, SessionEvent::Blocked { item, turn: at } if *item == wanted && *at == turn(1)),
    )
    .await;
}

/// S8.1: the ticket of an item that waits behind the suspended turn says so, also that of a later item, until
/// a decision comes. The ticket of an item that does not wait says nothing.
#[tokio::test]
async fn what_waits_behind_a_decision_learns_so() {
    let desk = Desk::new([asks(), Reply::text("after the decision")]);
    desk.tools.gate().open_for_all();
    let session: Session<String> =
        Session::builder(ChatPlanner::new(agent(&desk, Duration::from_secs(3600)))).start();
    let asked = session.push("may I?".to_owned()).unwrap();
    let before = session.push("before".to_owned()).unwrap();
    assert_eq!(asked.outcome().await, ItemOutcome::Suspended(turn(1)));
    let later = session.push("later".to_owned()).unwrap();
    let rejected = session.push(Push::new("rejected".to_owned()).policy(Policy::Reject)).unwrap();
    for ticket in [&before, &later] {
        behind(&session, ticket.id()).await;
        assert_eq!(ticket.blocked_by(), Some(turn(1)));
    }
    assert!(matches!(rejected.outcome().await, ItemOutcome::Returned(_)));
    assert_eq!((asked.blocked_by(), rejected.blocked_by()), (None, None));
    let event =
        seen(&session, |event| is_fact(event, |fact| matches!(fact, Fact::ApprovalRequested(_)))).await;
    let SessionEvent::Run { event, .. } = event else { panic!("{event:?}") };
    let safepoint::event::EventKind::Fact(fact) = event.kind else { panic!("no fact") };
    let Fact::ApprovalRequested(question) = &*fact else { panic!("{fact:?}") };
    session.decide(&question.id, Decision::Approve).await.unwrap();
    assert_eq!(later.blocked_by(), None, "it learned so, and the turn went on");
    assert!(matches!(later.outcome().await, ItemOutcome::Completed(_)));
    assert_eq!(before.blocked_by(), None);
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[asked, before, later, rejected]).await;
}
