//! Sessions in a store that are at rest: they end without what waits in the store, and keep no more than they need.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Session,
    approval::Decision,
    event::{EventKind, Fact},
    ids::SessionId,
    raw::store::{ApprovalState, DecisionResult, NewDecision},
    session::{ChatPlanner, ExitReason, ItemOutcome, SessionEvent, SessionStop},
    store::{Error, MemoryStore, OwnerProcess, Store},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{script::Reply, wait::InTime as _};
use serde_json::json;

use super::{
    desk::{Desk, accounted, asks, pays, turn},
    world::{open_here, seen},
};

const IDLE: Duration = Duration::from_millis(100);
/// How often an item comes as late as it can.
const LATE: usize = 8;

fn id() -> SessionId {
    SessionId::from("s")
}

async fn decide(store: &Arc<dyn Store>) -> DecisionResult {
    let asked = store.approvals(&id()).await.unwrap().remove(0).asked;
    let bytes = serde_json::to_vec(&Decision::Approve).unwrap();
    let yes = NewDecision { id: asked.id, digest: asked.digest, principal: "ann".into(), bytes };
    store.decide(&id(), yes).await.unwrap()
}

async fn is_due(store: &Arc<dyn Store>) -> bool {
    !store.due(10, Vec::new()).await.unwrap().is_empty()
}

async fn suspended(desk: &Desk, store: &Arc<dyn Store>) -> Session<String> {
    desk.tools.gate().open_for_all();
    let session = open_here(desk.chat(), store).await.unwrap();
    let asked = session.push("may I?".to_owned()).unwrap();
    assert_eq!(asked.outcome().await, ItemOutcome::Suspended(turn(1)));
    session
}

/// S6.21, S8.3, S7.47: a turn that waits for a decision keeps no session in a store open, nor does what waits behind it. The question
/// stays open, a decision through the store makes the session due, and the next owner resumes the turn and then runs what waits.
#[tokio::test]
async fn a_session_that_waits_for_a_decision_is_closed_at_rest() {
    let folder = tempfile::tempdir().unwrap();
    let file: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("s.db")).unwrap());
    for store in [Arc::new(MemoryStore::default()) as Arc<dyn Store>, file] {
        let desk = Desk::new([asks(), Reply::text("after the decision"), Reply::text("and behind")]);
        let session = suspended(&desk, &store).await;
        let behind = session.push("b".to_owned()).unwrap();
        behind.recorded().await;
        drop(session.stop(SessionStop::when_idle_for(IDLE)));
        let exit = session.done().in_time("the end at rest").await;
        assert_eq!(exit.reason(), &ExitReason::Idle);
        assert_eq!(behind.outcome().await, ItemOutcome::Unhandled);
        let row = store.open(&id()).await.unwrap();
        assert_eq!((row.label.as_str(), row.holder), ("suspended", None));
        assert_eq!(store.approvals(&id()).await.unwrap()[0].state, ApprovalState::Open);
        assert!(!is_due(&store).await, "nothing is to be done");
        assert_eq!(decide(&store).await, DecisionResult::Taken);
        assert!(is_due(&store).await, "the turn is to be resumed");
        let next = open_here(desk.chat(), &store).await.unwrap();
        let completed = |number: u64| move |event: &SessionEvent| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(of), .. } if *of == turn(number));
        seen(&next, completed(1)).await;
        seen(&next, completed(2)).await;
        next.stop(SessionStop::at_turn_end());
        next.done().in_time("the end").await;
        assert_eq!(desk.tools.ledger().lines().len(), 2, "the call ran once: entered and committed");
    }
}

/// S7.47, S6.7: what an owner writes itself, an item, a stop, a decision, is nothing that others did, also where no look has seen it
/// yet: the session that it ends wants no next owner.
#[tokio::test]
async fn a_session_that_was_stopped_here_wants_no_owner() {
    let folder = tempfile::tempdir().unwrap();
    for (at, stop) in [SessionStop::now(), SessionStop::at_turn_end()].into_iter().enumerate() {
        let file = SqliteStore::open(folder.path().join(format!("{at}.db"))).unwrap();
        for store in [Arc::new(MemoryStore::default()) as Arc<dyn Store>, Arc::new(file)] {
            let desk = Desk::new([asks(), Reply::text("done")]);
            let session = suspended(&desk, &store).await;
            let question = session.approvals().await.remove(0);
            session.decide(&question.id, Decision::Approve).await.unwrap();
            session.push("go".to_owned()).unwrap().recorded().await;
            session.stop(stop.clone()).recorded().await;
            session.done().in_time("the end").await;
            assert!(!is_due(&store).await, "stop {at}: nothing is to be done");
        }
    }
}

/// S6.8, S7.47: what comes when a session that was only idle has just ended is for its next owner, which it wants at once.
#[tokio::test]
async fn what_comes_behind_an_idle_end_wants_an_owner() {
    let folder = tempfile::tempdir().unwrap();
    let mut left = 0;
    for at in 0..LATE {
        let file = SqliteStore::open(folder.path().join(format!("{at}.db"))).unwrap();
        for store in [Arc::new(MemoryStore::default()) as Arc<dyn Store>, Arc::new(file)] {
            let desk = Desk::new([Reply::text("late")]);
            let session = open_here(desk.chat(), &store).await.unwrap();
            drop(session.stop(SessionStop::when_idle_for(Duration::ZERO)));
            let late = session.push("late".to_owned()).unwrap();
            session.done().in_time("the end").await;
            let is_left = late.outcome().await == ItemOutcome::Unhandled;
            let waits = !store.inbox(&id()).await.unwrap().is_empty();
            assert_eq!((waits, is_due(&store).await), (is_left, is_left));
            left += usize::from(is_left);
        }
    }
    assert!(left > 0, "each of them came before the end");
}

/// S13.50: a session that is not there is made by its opening, unless the program wants one that is there alone.
#[tokio::test]
async fn a_session_that_is_not_there_is_not_made_where_that_is_wanted() {
    let (desk, store) = (Desk::new([]), Arc::new(MemoryStore::default()) as Arc<dyn Store>);
    let none = open_here(desk.chat().only_existing(), &store).await;
    assert!(matches!(none, Err(Error::NoSession(none)) if none == id()));
    assert!(matches!(store.open(&id()).await, Err(Error::NoSession(_))));
    let session = open_here(desk.chat(), &store).await.unwrap();
    session.stop(SessionStop::at_turn_end());
    session.done().in_time("the end").await;
    open_here(desk.chat().only_existing(), &store).await.unwrap();
}

/// S6.21, S6.8: what arrives, and a decision here, begin the time anew; the session is open for all of it.
#[tokio::test(start_paused = true)]
async fn a_decision_in_time_keeps_the_session() {
    let hour = Duration::from_secs(3600);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let desk = Desk::new([asks(), Reply::text("after the decision")]);
    let session = suspended(&desk, &store).await;
    drop(session.stop(SessionStop::when_idle_for(hour)));
    tokio::time::sleep(hour / 2).await;
    let behind = session.push("b".to_owned()).unwrap();
    tokio::time::sleep(hour * 3 / 4).await;
    assert!(!session.is_done(), "something has come");
    let question = session.approvals().await.remove(0);
    session.decide(&question.id, Decision::Approve).await.unwrap();
    assert_eq!(behind.outcome().await, ItemOutcome::Completed(turn(2)));
    let exit = session.done().await;
    assert_eq!((exit.reason(), exit.unhandled().len()), (&ExitReason::Idle, 0));
}

/// Says a word, and waits for the answer.
async fn talk(session: &Session<String>) {
    let item = session.push("hi".to_owned()).unwrap();
    let outcome = item.final_outcome().in_time("an answer").await;
    assert!(matches!(outcome, ItemOutcome::Completed(_)), "{outcome:?}");
}

/// Reads all events that are there: how many were missed first, and the rest.
fn read(session: &Session<String>) -> (u64, Vec<SessionEvent>) {
    let (mut events, mut missed, mut shown) = (session.events(), 0, Vec::new());
    let mut next = 0;
    while let Some(event) = events.now() {
        assert_eq!(event.seq, next, "a gap that was not shown");
        next += 1;
        if let SessionEvent::Missed(count) = event.kind {
            assert!(shown.is_empty(), "only the oldest events are forgotten");
            (missed, next) = (count, event.seq + count);
        } else {
            shown.push(event.kind);
        }
    }
    (missed, shown)
}

/// S11.1: a session in a store forgets old events that were read, and says to a reader that begins later how many; a reader that is
/// there loses nothing, however slow. A session that no store keeps forgets nothing.
#[tokio::test]
async fn a_session_in_a_store_forgets_old_turns() {
    const TURNS: u64 = 200;
    const STAY: usize = 1024;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let kept = Desk::new([]).chat().open(store, id(), OwnerProcess::here()).await.unwrap();
    let alone = Desk::new([]).chat().start();
    let mut slow = kept.events();
    talk(&kept).await;
    let first = slow.next().in_time("the first event").await.unwrap();
    for _ in 0..TURNS {
        talk(&kept).await;
        talk(&alone).await;
    }
    assert_eq!(read(&kept).0, first.seq + 1, "the slow one has still to read the rest");
    let mut next = first.seq + 1;
    while let Some(event) = slow.now() {
        assert!(!matches!(event.kind, SessionEvent::Missed(_)) && event.seq == next, "{event:?}");
        next += 1;
    }
    talk(&kept).await;
    let (missed, shown) = read(&kept);
    assert!(missed > 0 && shown.len() >= STAY, "{missed} are forgotten, {} stay", shown.len());
    assert!(shown.len() < 2 * STAY, "{missed} are forgotten, {} stay", shown.len());
    let started = |event: &SessionEvent| matches!(event, SessionEvent::TurnStarted { .. });
    assert!(shown.iter().filter(|event| started(event)).count() >= 2);
    let (missed, shown) = read(&alone);
    assert_eq!((missed, shown.iter().filter(|event| started(event)).count() as u64), (0, TURNS));
    for session in [kept, alone] {
        session.stop(SessionStop::at_turn_end());
        accounted_end(&session).await;
    }
}

/// S11.1: what followed the beginning of a turn whose background run is alive stays, and what came before it does not.
#[tokio::test]
async fn a_session_in_a_store_keeps_the_turn_of_a_background_run() {
    const TURNS: usize = 200;
    let replies = (0..TURNS).map(|_| Reply::text("hi"));
    let aside = Reply::default().and_call("aside", json!({"task": "dig"}));
    let (outer, inner) = (Desk::new(replies.chain([aside, Reply::text("it digs")])), Desk::new([pays()]));
    let child = inner.agent().as_subagent("aside", "digs").background();
    let agent = Agent::builder(outer.model.clone()).child(child).build();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let session = open_here(Session::builder(ChatPlanner::new(agent)), &store).await.unwrap();
    for _ in 0..=2 * TURNS {
        talk(&session).await;
    }
    inner.tools.gate().came(1).in_time("the background run").await;
    let oldest = |session: &Session<String>| {
        let (missed, shown) = read(session);
        let first = shown.iter().find_map(|event| match event {
            SessionEvent::TurnStarted { turn, .. } => Some(*turn),
            _ => None,
        });
        (missed > 0, first.unwrap())
    };
    assert_eq!(oldest(&session), (true, turn(TURNS as u64 + 1)));
    inner.tools.gate().open_for_all();
    let over = |event: &SessionEvent| {
        let SessionEvent::Background { event, .. } = event else { return false };
        let EventKind::Child { event, .. } = &event.kind else { return false };
        matches!(&**event, EventKind::Fact(fact) if matches!(&**fact, Fact::Settled { .. }))
    };
    seen(&session, over).await;
    session.stop(SessionStop::at_turn_end());
    accounted_end(&session).await;
}

async fn accounted_end(session: &Session<String>) {
    let exit = session.done().in_time("the end").await;
    assert!(exit.unhandled().is_empty() && exit.open().is_none());
}

/// S11.1: the last two turns stay whole, however long they are.
#[tokio::test]
async fn a_short_session_is_shown_whole() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let session = open_here(Desk::new([]).chat(), &store).await.unwrap();
    let mut tickets = Vec::new();
    for _ in 0..5 {
        let item = session.push("hi".to_owned()).unwrap();
        item.final_outcome().in_time("an answer").await;
        tickets.push(item);
    }
    assert_eq!(read(&session).0, 0);
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &tickets).await;
}
