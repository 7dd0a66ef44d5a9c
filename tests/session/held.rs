//! A steer of a turn that begins to wait for a decision: it is the turn's, and its next model request has it.

use std::sync::Arc;

use safepoint::{
    Session, SessionHandle,
    approval::Decision,
    event::Fact,
    ids::{ApprovalId, SessionId},
    raw::{encode_item, store::Liveness},
    session::{IfUndelivered, ItemOutcome, Policy, Push, SessionEvent, SessionStop},
    steer::SteerTiming,
    store::Store,
};
use safepoint_testkit::{
    script::Reply,
    scripted::ModelGate,
    store_suite::{Population, owner},
};

use super::{
    desk::{Desk, accounted, answers, is_fact, said, turn},
    world::{mortals, seen},
};

/// A kept session, and processes that can be said to be dead.
struct World {
    store: Arc<dyn Store>,
    lives: Population,
    desk: Desk,
}

fn id() -> SessionId {
    SessionId::from("s")
}

impl World {
    fn new() -> Self {
        let (store, lives) = mortals();
        let desk = Desk::new([Reply::text("briefly")]);
        desk.tools.gate().open_for_all();
        Self { store, lives, desk }
    }

    async fn open(&self, pid: u32) -> Session<String> {
        self.desk.chat().open(Arc::clone(&self.store), id(), owner(pid)).await.unwrap()
    }
}

/// The model asks for a call that a person must approve.
fn asks(gate: &ModelGate) {
    use safepoint::{
        message::ToolCall,
        model::{Delta, Finish},
    };
    let call = ToolCall { id: "c1".into(), name: "ask".into(), args: "{}".into() };
    gate.send(Delta::CallReady(call)).send(Delta::Ended(Finish::Natural));
}

async fn question(session: &SessionHandle<String>) -> ApprovalId {
    seen(session, |event| is_fact(event, |fact| matches!(fact, Fact::ApprovalRequested(_)))).await;
    seen(session, |event| matches!(event, SessionEvent::TurnQuiet { .. })).await;
    session.approvals().await[0].id.clone()
}

/// S6.5, S6.15: steered while the model streams, here and through the store, and then a question: after the
/// yes the next request has both, in their order, and no turn of their own runs.
#[tokio::test]
async fn a_steer_before_a_question_is_in_the_request_after_the_answer() {
    let world = World::new();
    let mut gate = world.desk.model.gate();
    let session = world.open(1).await;
    let item = session.push("count the files".to_owned()).unwrap();
    gate.request().await;
    let steer = session.push(Push::new("please be brief".to_owned()).policy(Policy::steer())).unwrap();
    steer.recorded().await;
    let remote = encode_item(&"and in English".to_owned(), Policy::steer(), None, 10).unwrap();
    world.store.push(&id(), remote).await.unwrap();
    session.check_store();
    seen(&session, |event| matches!(event, SessionEvent::Accepted(item) if item.number() == 2)).await;
    asks(&gate);
    assert_eq!(item.outcome().await, ItemOutcome::Suspended(turn(1)));
    let open = question(&session).await;
    assert_eq!((steer.fate_now(), steer.blocked_by()), (None, Some(turn(1))), "it learns that it waits");
    session.decide(&open, Decision::Approve).await.unwrap();
    assert_eq!(steer.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(steer.delivered().await.unwrap().round, 2);
    let requests = world.desk.model.requests();
    assert_eq!(requests.len(), 2, "no separate turn");
    assert_eq!(said(&requests[1]), ["count the files", "please be brief", "and in English"]);
    session.stop(SessionStop::at_turn_end());
    session.done().await;
    assert!(world.store.inbox(&id()).await.unwrap().is_empty());
}

/// S6.5, S6.15, S7.2: the same, if the process dies while the question is open, and if the steer comes only
/// then.
#[tokio::test]
async fn a_steer_of_a_waiting_turn_outlives_its_process() {
    let world = World::new();
    let mut gate = world.desk.model.gate();
    let first = world.open(1).await;
    first.push("count the files".to_owned()).unwrap();
    gate.request().await;
    let steer = first.push(Push::new("please be brief".to_owned()).policy(Policy::steer())).unwrap();
    steer.recorded().await;
    asks(&gate);
    question(&first).await;
    world.lives.say(1, Liveness::Dead);
    let late = encode_item(&"and in English".to_owned(), Policy::steer(), None, 10).unwrap();
    world.store.push(&id(), late).await.unwrap();
    let next = world.open(2).await;
    let open = next.approvals().await[0].id.clone();
    next.decide(&open, Decision::Approve).await.unwrap();
    seen(&next, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
    let requests = world.desk.model.requests();
    assert_eq!(requests.len(), 2, "no separate turn");
    assert_eq!(said(&requests[1]), ["count the files", "please be brief", "and in English"]);
    drop(first);
}

/// S6.12, S6.10, S6.15: what is held can be taken back, and goes where its sender said if the session ends
/// first.
#[tokio::test]
async fn a_held_steer_is_in_one_place() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().start();
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let steers = |text: &str, or| {
        session.push(Push::new(text.to_owned()).policy(Policy::Steer(SteerTiming::NextRequest, or))).unwrap()
    };
    let (back, queued, returned) = (
        steers("back", IfUndelivered::Queue),
        steers("queued", IfUndelivered::Queue),
        steers("returned", IfUndelivered::Return),
    );
    asks(&gate);
    assert_eq!(item.outcome().await, ItemOutcome::Suspended(turn(1)));
    question(&session).await;
    let held = [&back, &queued, &returned].map(|ticket| (ticket.fate_now(), ticket.blocked_by()));
    assert_eq!(held, [(None, Some(turn(1))); 3], "each waits with its turn, and not in the queue");
    assert_eq!(session.withdraw(back.id()).await.as_deref(), Some("back"));
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[item, back.clone(), queued.clone(), returned.clone()]).await;
    let fates = [back, queued, returned].map(|ticket| ticket.fate_now().unwrap());
    assert!(
        matches!(fates, [ItemOutcome::Withdrawn, ItemOutcome::Unhandled, ItemOutcome::Returned(_)]),
        "{fates:?}"
    );
}

/// S6.12: a turn continues after its decision; the answer then ends it as ever.
#[tokio::test]
async fn a_steer_that_finds_the_turn_waiting_is_held_too() {
    let desk = Desk::new([]);
    desk.tools.gate().open_for_all();
    let (mut one, mut two) = (desk.model.gate(), desk.model.gate());
    let session = desk.chat().start();
    let item = session.push("a".to_owned()).unwrap();
    one.request().await;
    asks(&one);
    let open = question(&session).await;
    let steer = session.push(Push::new("steer".to_owned()).policy(Policy::steer())).unwrap();
    session.decide(&open, Decision::Approve).await.unwrap();
    assert_eq!(said(&two.request().await.unwrap()), ["a", "steer"]);
    answers(&two, "done");
    assert_eq!(steer.outcome().await, ItemOutcome::Completed(turn(1)));
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[item, steer]).await;
}
