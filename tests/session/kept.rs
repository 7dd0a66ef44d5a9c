//! Stops that a store keeps: they hold until their end, whatever process asked and whatever process dies.

use std::{sync::Arc, time::Duration};

use safepoint::{
    SafePoints, Session, StopRequest,
    approval::Decision,
    ids::SessionId,
    raw::{self, StoredStop, store::Liveness, store_stop},
    session::{ExitReason, ItemOutcome, SessionEvent, SessionStop, StopPersistence},
    stop::{Reach, StopAck},
    store::{MemoryStore, Store},
};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
    store_suite::{Population, owner},
    tool_gate::ToolGate,
    wait,
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

impl World {
    fn new() -> Self {
        let (store, lives) = mortals();
        Self { store, lives }
    }

    async fn open(&self, pid: u32, desk: &Desk) -> Session<String> {
        desk.chat().open(Arc::clone(&self.store), id(), owner(pid)).await.unwrap()
    }

    async fn ask(&self, intent: StoredStop) {
        store_stop(&*self.store, &id(), &intent).await.unwrap();
    }

    async fn unseen(&self) -> usize {
        self.store.stops(&id(), 0).await.unwrap().iter().filter(|stop| !stop.seen).count()
    }
}

fn id() -> SessionId {
    SessionId::from("s")
}

async fn asked(session: &Session<String>) {
    seen(session, |event| matches!(event, SessionEvent::StopRequested { .. })).await;
}

/// S1.9, S7.2, S7.5: `recorded()` of a stop: once it resolves the stop is in the store, and if the process
/// dies before the session has ended, the next owner is stopped by it, once.
#[tokio::test]
async fn a_recorded_stop_outlives_its_process() {
    let (world, desk) = (World::new(), Desk::new([pays()]));
    let first = world.open(1, &desk).await;
    let item = first.push("pay".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    let asking = first.stop(SessionStop::graceful().with_cause("enough"));
    assert_eq!(asking.recorded().await, StopPersistence::Stored(1));
    assert_eq!(asking.asked().await, StopAck::First);
    assert_eq!((item.fate_now(), world.unseen().await), (None, 1), "the turn still runs");
    world.lives.say(1, Liveness::Dead);
    let next = world.open(2, &desk).await;
    let exit = next.done().await;
    assert_eq!((exit.reason(), exit.cause()), (&ExitReason::Stopped, Some("enough")));
    assert_eq!(
        (world.unseen().await, desk.model.requests().len()),
        (0, 1),
        "it stops once, and nothing runs"
    );
    let last = world.open(3, &desk).await;
    assert!(last.resume().await, "and then no more");
    drop(first);
}

/// S1.9, S6.7: a stop at its end stops no later work. That holds for a stop of this owner, for one that was
/// asked many times, and for a withdrawn idle stop.
#[tokio::test]
async fn a_recorded_stop_that_is_over_stops_no_other_turn() {
    let (world, desk) = (World::new(), Desk::new([]));
    let first = world.open(1, &desk).await;
    let idle = first.stop(SessionStop::when_idle_for(Duration::from_secs(3600)));
    assert_eq!(idle.recorded().await, StopPersistence::Stored(1));
    first.withdraw_idle_stop();
    first.check_store();
    let item = first.push("a".to_owned()).unwrap();
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(world.unseen().await, 0, "it was taken back");
    let (one, two) = (first.stop(SessionStop::at_turn_end()), first.stop(SessionStop::now()));
    let kept = tokio::join!(one.recorded(), two.recorded());
    assert!(!matches!(kept, (StopPersistence::NotStored, _) | (_, StopPersistence::NotStored)), "{kept:?}");
    first.done().await;
    assert_eq!(one.recorded().await, StopPersistence::Ended);
    assert_eq!(world.unseen().await, 0);
    let next = world.open(2, &desk).await;
    assert_eq!(next.push("b".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(turn(2)));
}

/// S1.9, S2.8: a session without a store keeps nothing and says so; a store that hangs holds neither the stop
/// up nor the session.
#[tokio::test(start_paused = true)]
async fn a_stop_that_cannot_be_recorded_says_so() {
    let session = Desk::new([]).chat().start();
    let item = session.push("a".to_owned()).unwrap();
    item.outcome().await;
    assert_eq!(
        session.stop(SessionStop::when_idle_for(Duration::from_secs(60))).recorded().await,
        StopPersistence::NotStored
    );
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let store = Arc::new(FaultStore::unarmed(Arc::clone(&inner), OperationFault::Held(ToolGate::shut())));
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session = desk.chat().open(Arc::clone(&store) as Arc<dyn Store>, id(), owner(1)).await.unwrap();
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let asking = session.stop(SessionStop::at_turn_end());
    store.arm();
    let began = tokio::time::Instant::now();
    let before = store.asked();
    let stops = async {
        wait::so("the store is asked", || store.asked() > before).await;
        session.stop(SessionStop::now()).asked().await
    };
    let (kept, stopped) = tokio::join!(asking.recorded(), stops);
    assert_eq!(
        (kept, stopped, began.elapsed().as_secs()),
        (StopPersistence::NotStored, StopAck::Strengthened, 5)
    );
    assert_eq!(item.fate_now(), Some(ItemOutcome::Interrupted(turn(1))));
    session.done().await;
}

/// S7.2, S7.5 / T10: a stop from another process is marked as handled at its end, not when it is received: an
/// owner that dies in between does not lose it.
#[tokio::test]
async fn a_stop_that_was_received_is_not_lost_with_its_owner() {
    let (world, desk) = (World::new(), Desk::new([pays()]));
    let first = world.open(1, &desk).await;
    first.push("pay".to_owned()).unwrap();
    desk.tools.gate().came(1).await;
    world.ask(StoredStop::Session(SessionStop::graceful().with_cause("from afar"))).await;
    first.check_store();
    asked(&first).await;
    world.lives.say(1, Liveness::Dead);
    let next = world.open(2, &desk).await;
    assert_eq!(next.done().await.cause(), Some("from afar"));
    assert_eq!(world.unseen().await, 0);
    drop(first);
}

/// S7.2, S7.5, S2.4: the same of a stop of one turn: it is noted with the turn's end, whatever ended the
/// turn; the next turn is not hit.
#[tokio::test]
async fn a_stop_of_a_turn_is_noted_with_its_end() {
    let (world, desk) = (World::new(), Desk::new([]));
    let mut gate = desk.model.gate();
    let session = world.open(1, &desk).await;
    let item = session.push("a".to_owned()).unwrap();
    gate.request().await;
    let request = StopRequest::at(SafePoints::AFTER_MODEL).with_reach(Reach::Tree);
    world.ask(StoredStop::Turn(None, request)).await;
    session.check_store();
    let is_asked = |event: &SessionEvent| {
        super::desk::is_fact(event, |fact| matches!(fact, safepoint::event::Fact::StopRequested(_)))
    };
    seen(&session, is_asked).await;
    assert_eq!(world.unseen().await, 1, "it is under way");
    answers(&gate, "done");
    assert_eq!((item.outcome().await, world.unseen().await), (ItemOutcome::Completed(turn(1)), 0));
    // Without an active turn it hits nothing, and is over.
    world.ask(StoredStop::Turn(None, StopRequest::now())).await;
    session.check_store();
    wait::asked("it is seen", async || world.unseen().await == 0).await;
    assert_eq!(session.push("b".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(turn(2)));
}

/// S7.5, S6.8 / T10: a stop of a turn that has come to its end says nothing of an earlier stop of the session
/// that waits for its hour: an owner that dies in between does not lose that one.
#[tokio::test(start_paused = true)]
async fn a_later_stop_that_is_over_takes_no_earlier_one_with_it() {
    let (world, desk) = (World::new(), Desk::new([]));
    let first = world.open(1, &desk).await;
    let hour = Duration::from_secs(3600);
    assert_eq!(first.stop(SessionStop::when_idle_for(hour)).recorded().await, StopPersistence::Stored(1));
    let mut gate = desk.model.gate();
    let item = first.push("a".to_owned()).unwrap();
    gate.request().await;
    world.ask(StoredStop::Turn(None, StopRequest::now())).await;
    first.check_store();
    assert_eq!(item.outcome().await, ItemOutcome::Interrupted(turn(1)));
    let stops = world.store.stops(&id(), 0).await.unwrap();
    assert_eq!(stops.iter().map(|stop| stop.seen).collect::<Vec<_>>(), [false, true]);
    world.lives.say(1, Liveness::Dead);
    let next = world.open(2, &desk).await;
    assert_eq!(next.done().await.reason(), &ExitReason::Idle);
    assert_eq!(world.unseen().await, 0);
    drop(first);
}

/// S7.5 / T11: of two active sessions, a stop from elsewhere ends the one that it names; the other runs to
/// its end.
/// aprin-labs/archimedes#1667: with two tasks it is chance which one a cancel hits, and it says that it hit
/// the right one.
#[tokio::test]
async fn a_stop_from_elsewhere_means_one_session() {
    let (world, desk) = (World::new(), Desk::new([]));
    let other = SessionId::from("t");
    let mut gates = [desk.model.gate(), desk.model.gate()];
    let first = world.open(1, &desk).await;
    let second = desk.chat().open(Arc::clone(&world.store), other.clone(), owner(1)).await.unwrap();
    let stopped = first.push("a".to_owned()).unwrap();
    gates[0].request().await;
    let continues = second.push("b".to_owned()).unwrap();
    gates[1].request().await;
    world.ask(StoredStop::Session(SessionStop::now().with_cause("this one"))).await;
    first.check_store();
    second.check_store();
    gates[0].dropped().await;
    assert_eq!(first.done().await.cause(), Some("this one"));
    assert_eq!(stopped.fate_now(), Some(ItemOutcome::Interrupted(turn(1))));
    answers(&gates[1], "done");
    assert_eq!(continues.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(world.store.stops(&other, 0).await.unwrap(), []);
}

/// S8.3, S7.5: a stop of the run that is asked while the session has no owner withdraws its question at once.
/// An answer is refused, and the next owner finds the turn interrupted and revives nothing; an explicit
/// resume asks anew.
#[tokio::test]
async fn a_stop_with_no_owner_withdraws_what_is_open() {
    let (world, desk) = (World::new(), Desk::new([asks(), Reply::text("after all")]));
    desk.tools.gate().open_for_all();
    let first = world.open(1, &desk).await;
    assert!(matches!(first.push("may I?".to_owned()).unwrap().outcome().await, ItemOutcome::Suspended(_)));
    first.stop(SessionStop::at_turn_end());
    first.done().await;
    let open = world.store.approvals(&id()).await.unwrap().remove(0).asked;
    world.ask(StoredStop::Turn(None, StopRequest::now())).await;
    let yes = raw::store::NewDecision {
        id: open.id.clone(),
        digest: open.digest,
        principal: "ann".into(),
        bytes: serde_json::to_vec(&Decision::Approve).unwrap(),
    };
    let refused = world.store.decide(&id(), yes).await.unwrap();
    assert!(!matches!(refused, raw::store::DecisionResult::Taken), "{refused:?}");
    let next = world.open(2, &desk).await;
    assert!(next.decide(&open.id, Decision::Approve).await.is_err());
    assert!(next.approvals().await.is_empty());
    assert_eq!((world.unseen().await, desk.model.requests().len()), (0, 1));
    assert!(next.resume().await);
    seen(&next, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Suspended(_), .. }))
        .await;
    let anew = next.approvals().await;
    assert!(anew.len() == 1 && anew[0].id != open.id, "{anew:?}");
    next.decide(&anew[0].id, Decision::Approve).await.unwrap();
    seen(&next, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
}

/// S8.2, S7.4: the session and another process decide the same question at once, again and again. One
/// decision counts, the other gets an error that says so, and the call runs once and only after a yes that
/// counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_decide_at_once_one_wins() {
    let (mut ours, mut theirs) = (0, 0);
    for _ in 0..100 {
        let (world, desk) = (World::new(), Desk::new([asks(), Reply::text("so be it")]));
        desk.tools.gate().open_for_all();
        let session = world.open(1, &desk).await;
        assert!(matches!(
            session.push("may I?".to_owned()).unwrap().outcome().await,
            ItemOutcome::Suspended(_)
        ));
        let open = world.store.approvals(&id()).await.unwrap().remove(0).asked;
        let no = raw::store::NewDecision {
            id: open.id.clone(),
            digest: open.digest.clone(),
            principal: "ann".into(),
            bytes: serde_json::to_vec(&Decision::Deny { message: "no".into() }).unwrap(),
        };
        let (store, handle) = (Arc::clone(&world.store), session.handle());
        let elsewhere = tokio::spawn(async move { store.decide(&id(), no).await.unwrap() });
        let here = tokio::spawn(async move { handle.decide(&open.id, Decision::Approve).await });
        let (elsewhere, here) = (elsewhere.await.unwrap(), here.await.unwrap());
        session.check_store();
        seen(&session, |event| {
            matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
        })
        .await;
        let ran = desk.tools.ledger().lines().len();
        match (here, elsewhere) {
            (Ok(()), raw::store::DecisionResult::Taken) => panic!("both were taken"),
            (Ok(()), _) => {
                assert_eq!(ran, 2, "entered and committed");
                ours += 1;
            }
            (Err(_), taken) => {
                assert!(matches!(taken, raw::store::DecisionResult::Taken), "{taken:?}");
                assert_eq!(ran, 0);
                theirs += 1;
            }
        }
    }
    assert_eq!(ours + theirs, 100);
}

/// S1.5, S7.5: how long a stop from another process takes to reach the run: by a nudge 20 ms, without one 250
/// ms; measured in real time, five times as long allowed for a busy machine, the best of five.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_from_elsewhere_arrives_in_time() {
    for (nudged, bound) in [(true, Duration::from_millis(20)), (false, Duration::from_millis(250))] {
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let (world, desk) = (World::new(), Desk::new([]));
            let mut gate = desk.model.gate();
            let session = world.open(1, &desk).await;
            session.push("a".to_owned()).unwrap();
            gate.request().await;
            let began = std::time::Instant::now();
            world.ask(StoredStop::Session(SessionStop::now())).await;
            if nudged {
                session.check_store();
            }
            gate.dropped().await;
            best = best.min(began.elapsed());
            session.done().await;
        }
        assert!(best < 5 * bound, "{best:?} with a nudge: {nudged}");
    }
}
