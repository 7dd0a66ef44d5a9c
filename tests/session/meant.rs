//! Which turn a stop means that goes through the store, and whose questions it takes back.

use std::sync::Arc;

use safepoint::{
    SafePoints, Session, StopRequest,
    approval::Decision,
    ids::{ApprovalId, SessionId},
    raw::{
        self, StoredStop,
        store::{ApprovalState, DecisionResult, Liveness},
        store_stop,
    },
    session::{ItemOutcome, SessionEvent, SessionStop, StopPersistence, TurnStopAck},
    store::Store,
};
use safepoint_testkit::{
    script::Reply,
    store_suite::{Population, owner},
};

use super::{
    desk::{Desk, answers, asks, pays, turn},
    world::{mortals, seen},
};

/// A store, and processes that can be said to be dead.
struct World {
    store: Arc<dyn Store>,
    lives: Population,
}

fn id() -> SessionId {
    SessionId::from("s")
}

impl World {
    fn new() -> Self {
        let (store, lives) = mortals();
        Self { store, lives }
    }

    async fn open(&self, pid: u32, desk: &Desk) -> Session<String> {
        desk.chat().open(Arc::clone(&self.store), id(), owner(pid)).await.unwrap()
    }

    /// A session without an owner, whose first turn waits for a decision.
    async fn suspended(&self, desk: &Desk) -> ApprovalId {
        desk.tools.gate().open_for_all();
        let first = self.open(1, desk).await;
        assert!(matches!(
            first.push("may I?".to_owned()).unwrap().outcome().await,
            ItemOutcome::Suspended(_)
        ));
        first.stop(SessionStop::at_turn_end());
        first.done().await;
        self.store.approvals(&id()).await.unwrap().remove(0).asked.id
    }

    async fn state(&self, question: &ApprovalId) -> ApprovalState {
        self.store.approval(&id(), question).await.unwrap().unwrap().state
    }

    async fn approve(&self, question: &ApprovalId) -> DecisionResult {
        let row = self.store.approval(&id(), question).await.unwrap().unwrap();
        let yes = raw::store::NewDecision {
            id: question.clone(),
            digest: row.asked.digest,
            principal: "ann".into(),
            bytes: serde_json::to_vec(&Decision::Approve).unwrap(),
        };
        self.store.decide(&id(), yes).await.unwrap()
    }

    async fn unseen(&self) -> usize {
        self.store.stops(&id(), 0).await.unwrap().iter().filter(|stop| !stop.seen).count()
    }
}

/// S8.3, S7.5, S6.3: a stop that names another turn takes no question back, and ends nothing: the answer
/// counts, and the turn continues; one that names it does both.
#[tokio::test]
async fn a_stop_takes_back_the_questions_of_the_turn_that_it_names() {
    for (named, hits) in [(7, false), (1, true)] {
        let (world, desk) = (World::new(), Desk::new([asks(), Reply::text("after all")]));
        let question = world.suspended(&desk).await;
        let stop = StoredStop::Turn(Some(turn(named)), StopRequest::now());
        store_stop(&*world.store, &id(), &stop).await.unwrap();
        let (state, decided) = (world.state(&question).await, world.approve(&question).await);
        let next = world.open(2, &desk).await;
        if hits {
            assert_eq!((state, decided), (ApprovalState::Withdrawn, DecisionResult::Withdrawn));
            assert!(next.approvals().await.is_empty());
        } else {
            assert_eq!((state, decided), (ApprovalState::Open, DecisionResult::Taken));
            let completed = |event: &SessionEvent| {
                matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
            };
            seen(&next, completed).await;
        }
        assert_eq!(desk.tools.ledger().lines().is_empty(), hits);
        next.stop(SessionStop::at_turn_end());
        next.done().await;
        assert_eq!(world.unseen().await, 0, "it is over, whatever it hit");
    }
}

/// S1.9, S7.2, S7.5: `recorded()` of the stop of a turn: once it resolves, the next owner's turn is stopped
/// by it if this process dies before; it is noted with the turn's end, and the turn after it is not hit.
#[tokio::test]
async fn a_recorded_stop_of_a_turn_outlives_its_process() {
    let (world, desk) = (World::new(), Desk::new([pays(), Reply::text("paid")]));
    let first = world.open(1, &desk).await;
    let item = first.push("pay".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    let asking = first.stop_turn(Some(turn(1)), StopRequest::at(SafePoints::AFTER_ALL_CALLS));
    assert_eq!(asking.recorded().await, StopPersistence::Stored(1));
    assert_eq!(asking.asked().await, TurnStopAck::Stopping(turn(1)));
    assert_eq!((item.fate_now(), world.unseen().await), (None, 1), "the turn still runs");
    world.lives.say(1, Liveness::Dead);
    let next = world.open(2, &desk).await;
    let then = next.push("then".to_owned()).unwrap();
    assert_eq!(then.outcome().await, ItemOutcome::Completed(turn(2)), "what comes after it is not hit");
    assert_eq!(world.unseen().await, 0);
    drop(first);
}

/// S1.9, S8.3: of a turn that waits for a decision it takes the question back in the same moment: with its
/// process dead, an answer is refused, and nothing is revived.
#[tokio::test(start_paused = true)]
async fn a_recorded_stop_of_a_suspended_turn_refuses_later_answers() {
    let (world, desk) = (World::new(), Desk::new([asks(), Reply::text("after all")]));
    desk.tools.gate().open_for_all();
    // Until its reader has had its time, the turn is not taken up to be ended.
    let builder = desk.chat().reader(super::desk::Reading::Never);
    let first = builder.open(Arc::clone(&world.store), id(), owner(1)).await.unwrap();
    assert!(matches!(first.push("may I?".to_owned()).unwrap().outcome().await, ItemOutcome::Suspended(_)));
    let question = world.store.approvals(&id()).await.unwrap().remove(0).asked.id;
    let asking = first.stop_turn(None, StopRequest::now());
    assert_eq!(asking.recorded().await, StopPersistence::Stored(1));
    world.lives.say(1, Liveness::Dead);
    assert_eq!(world.approve(&question).await, DecisionResult::Withdrawn);
    let next = world.open(2, &desk).await;
    assert!(next.approvals().await.is_empty());
    assert!(desk.tools.ledger().lines().is_empty());
    drop(first);
}

/// S1.9: one that reached no turn, or whose turn has ended, has nothing left to keep.
#[tokio::test]
async fn a_stop_that_reached_no_turn_is_kept_nowhere() {
    let (world, desk) = (World::new(), Desk::new([]));
    let session = world.open(1, &desk).await;
    assert_eq!(session.stop_turn(None, StopRequest::now()).recorded().await, StopPersistence::Ended);
    let mut gate = desk.model.gate();
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let other = session.stop_turn(Some(turn(9)), StopRequest::now());
    assert_eq!(other.recorded().await, StopPersistence::Ended);
    assert_eq!(other.asked().await, TurnStopAck::Mismatch(turn(1)));
    let asking = session.stop_turn(None, StopRequest::at(SafePoints::AFTER_ALL_CALLS));
    answers(&gate, "done");
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(asking.recorded().await, StopPersistence::Ended, "the turn has ended");
    assert_eq!(world.store.stops(&id(), 0).await.unwrap(), []);
}
