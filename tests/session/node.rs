//! A process as a node: one lease for all its sessions, which learn what others do to them, and leave with it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use safepoint::{
    ids::SessionId,
    raw::{
        StoredStop,
        store::{Durability, Environment, Liveness, MOST_TRIES, NewSession, NodeState, Write},
        store_stop,
    },
    receipt::Ending,
    session::{ItemOutcome, Node, SessionEvent, SessionStop},
    store::{Error, MemoryStore, NewNode, OwnerProcess, Store},
};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    store_suite::{Population, Time, acquire, outside, owner},
    tool_gate::ToolGate,
    wait::{self, InTime as _},
};

use super::world::{open_here, payer, seen};

const TTL: Duration = Duration::from_secs(4);

fn new(pid: u32) -> NewNode {
    NewNode { name: format!("worker-{pid}"), ..NewNode::of(owner(pid), TTL) }
}

async fn join(store: &Arc<dyn Store>, pid: u32) -> Node {
    Node::join(Arc::clone(store), new(pid)).await.unwrap()
}

/// A store whose owners are processes that can be said to be dead; time passes.
fn mortals() -> (Arc<dyn Store>, Population) {
    let lives = Population::default();
    let Environment { clock, uptime, .. } = Environment::default();
    let outside = Environment { clock, uptime, ..outside(&Time::default(), &lives) };
    (Arc::new(MemoryStore::new(outside)), lives)
}

/// S7.12: a node holds each of its sessions by the same lease, and renews it by one beat.
#[tokio::test(start_paused = true)]
async fn the_sessions_of_a_node_have_one_lease() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let counted = Arc::new(FaultStore::unarmed(Arc::clone(&inner), OperationFault::Refused));
    let store = Arc::clone(&counted) as Arc<dyn Store>;
    let node = join(&store, 1).await;
    let mut sessions = Vec::new();
    for id in ["a", "b", "c"] {
        sessions.push(payer(&ToolGate::open()).open_on(&node, id.into()).await.unwrap());
    }
    let holders = async || {
        let rows = inner.list(10, None).await.unwrap();
        rows.into_iter().map(|row| row.holder.unwrap().node).collect::<BTreeSet<_>>()
    };
    assert_eq!(holders().await, BTreeSet::from([node.id().clone()]));
    let before = inner.nodes().await.unwrap().remove(0);
    tokio::time::sleep(3 * TTL).await;
    let after = inner.nodes().await.unwrap().remove(0);
    assert_eq!((before.load, after.load), (0, 3), "a beat says how many it holds");
    assert!(node.left() > TTL / 2, "{:?}", node.left());
    assert_eq!(holders().await, BTreeSet::from([node.id().clone()]));
    let ticket = sessions[1].push("go".to_owned()).unwrap();
    assert!(matches!(ticket.outcome().await, ItemOutcome::Completed(_)));
}

/// S7.44, S1.5: a stop that another process asks for reaches the session of a node, in the memory and in a file, and of many
/// sessions that is asked the stop which is for it alone.
#[tokio::test]
async fn what_others_do_reaches_the_session_that_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let here: Arc<dyn Store> = Arc::new(SqliteStore::open(&file).unwrap());
    let there: Arc<dyn Store> = Arc::new(SqliteStore::open(&file).unwrap());
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::default());
    for (here, there) in [(here, there), (Arc::clone(&memory), memory)] {
        let node = Node::join(Arc::clone(&here), NewNode::of(OwnerProcess::here(), TTL)).await.unwrap();
        let gate = ToolGate::shut();
        let a = payer(&gate).open_on(&node, "a".into()).await.unwrap();
        let b = payer(&gate).open_on(&node, "b".into()).await.unwrap();
        drop((a.push("go".to_owned()).unwrap(), b.push("go".to_owned()).unwrap()));
        gate.came(2).await;
        let stop = SessionStop::now().with_cause("from there");
        store_stop(&*there, &"a".into(), &StoredStop::Session(stop)).await.unwrap();
        a.done().in_time("the end of the session that is stopped").await;
        assert!(b.current_turn().is_some(), "the other runs");
        gate.open_for_all();
        drop(b.stop(SessionStop::at_turn_end()));
        b.done().in_time("the end of the other").await;
    }
}

/// S7.14, S7.12: a node whose lease cannot be renewed ends every session with all that runs in it, by the code `lease`, and
/// takes no other.
#[tokio::test(start_paused = true)]
async fn a_node_that_loses_its_lease_ends_all_its_sessions() {
    for fault in [OperationFault::Lapse, OperationFault::Cut(Duration::from_secs(2)), OperationFault::Away] {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let faulty = Arc::new(FaultStore::unarmed(Arc::clone(&inner), fault.clone()));
        let node = join(&(Arc::clone(&faulty) as Arc<dyn Store>), 1).await;
        let gate = ToolGate::shut();
        let mut sessions = Vec::new();
        for id in ["a", "b"] {
            let session = payer(&gate).open_on(&node, id.into()).await.unwrap();
            drop(session.push("go".to_owned()).unwrap());
            sessions.push(session);
        }
        gate.came(2).await;
        faulty.arm();
        let began = tokio::time::Instant::now();
        for session in &sessions {
            let ended = seen(session, |event| matches!(event, SessionEvent::TurnEnded { .. })).await;
            let SessionEvent::TurnEnded { receipt, .. } = ended else { panic!("the end of a turn") };
            let stop = receipt.stop.as_ref().unwrap();
            assert_eq!((receipt.ending, stop.reason.code.as_str()), (Ending::Stopped, "lease"), "{fault:?}");
        }
        let took = began.elapsed();
        assert!(took > TTL / 2 && took < TTL + Duration::from_secs(2), "{fault:?}: {took:?}");
        faulty.come_back();
        assert_eq!(node.left(), Duration::ZERO, "{fault:?}");
        let late = payer(&gate).open_on(&node, "c".into()).await.unwrap_err();
        assert!(matches!(late, Error::NodeLapsed(_)), "{fault:?}: {late:?}");
        for session in &sessions {
            session.done().in_time("the end of a session").await;
        }
    }
}

/// S7.13, S7.47: a node that is declared dead ends its sessions, and they are for another one, which finds them.
#[tokio::test(start_paused = true)]
async fn the_sessions_of_a_dead_node_are_for_another() {
    let (store, lives) = mortals();
    let dead = join(&store, 1).await;
    let gate = ToolGate::shut();
    let session = payer(&gate).open_on(&dead, "a".into()).await.unwrap();
    drop(session.push("go".to_owned()).unwrap());
    gate.came(1).await;
    lives.say(1, Liveness::Dead);
    // It looks for the dead by itself.
    let next = join(&store, 2).await;
    let exit = session.done().in_time("the end of a session whose node was buried").await;
    assert!(format!("{:?}", exit.persisted()).contains("declared dead"), "{:?}", exit.persisted());
    let due = store.due(10, Vec::new()).await.unwrap();
    assert_eq!(due.iter().map(|due| due.session.as_str()).collect::<Vec<_>>(), ["a"]);
    let taken = payer(&ToolGate::open()).open_on(&next, "a".into()).await.unwrap();
    assert_eq!(store.open(&"a".into()).await.unwrap().holder.unwrap().node, *next.id());
    assert!(matches!(payer(&gate).open_on(&dead, "b".into()).await.unwrap_err(), Error::Buried(_)));
    drop(taken);
}

/// S7.45: a node that drains stops its turns at their next safe point, with the reason `shutdown`, gives every session back
/// so that it wants an owner, and is gone then.
#[tokio::test(start_paused = true)]
async fn a_node_that_drains_gives_everything_back() {
    const WITHIN: Duration = Duration::from_secs(20);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let node = join(&store, 1).await;
    let id = node.id().clone();
    let gate = ToolGate::shut();
    let busy = payer(&gate).open_on(&node, "busy".into()).await.unwrap();
    let idle = payer(&gate).open_on(&node, "idle".into()).await.unwrap();
    drop(busy.push("go".to_owned()).unwrap());
    gate.came(1).await;
    let began = tokio::time::Instant::now();
    let draining = tokio::spawn(node.drain(WITHIN));
    wait::asked("it drains", async || {
        let state = store.nodes().await.unwrap()[0].state;
        if state == NodeState::Draining { Ok(()) } else { Err(format!("{state:?}")) }
    })
    .await;
    idle.done().in_time("the end of a session that is at rest").await;
    assert!(busy.current_turn().is_some(), "what runs has its time");
    gate.open_for_all();
    draining.in_time("the end of the drain").await.unwrap();
    assert!(began.elapsed() < WITHIN, "it waits no longer than the turns take");
    let ended = seen(&busy, |event| matches!(event, SessionEvent::TurnEnded { .. })).await;
    let SessionEvent::TurnEnded { receipt, .. } = ended else { panic!("the end of a turn") };
    assert_eq!(receipt.stop.as_ref().unwrap().reason.code.as_str(), "shutdown", "{receipt}");
    let due: BTreeSet<String> =
        store.due(10, Vec::new()).await.unwrap().iter().map(|due| due.session.to_string()).collect();
    assert_eq!(due, ["busy", "idle"].map(str::to_owned).into());
    let row = store.nodes().await.unwrap().remove(0);
    assert_eq!((row.node.id, row.state), (id, NodeState::Gone));
}

/// S7.45: a turn that comes to no safe point is stopped when the time is over.
#[tokio::test(start_paused = true)]
async fn a_node_that_drains_waits_no_longer_than_it_says() {
    const WITHIN: Duration = Duration::from_secs(3);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let node = join(&store, 1).await;
    let gate = ToolGate::shut();
    let session = payer(&gate).open_on(&node, "a".into()).await.unwrap();
    drop(session.push("go".to_owned()).unwrap());
    gate.came(1).await;
    let began = tokio::time::Instant::now();
    node.drain(WITHIN).in_time("the end of the drain").await;
    let took = began.elapsed();
    assert!(took >= WITHIN && took < WITHIN + Duration::from_secs(5), "{took:?}");
    session.done().in_time("the end of the session").await;
    assert_eq!(store.open(&"a".into()).await.unwrap().holder, None);
}

/// S7.12: a node that its program let go holds on to its sessions until the last one has ended, and beats no more then.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_dropped_ends_with_its_last_session() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let node = join(&store, 1).await;
    let [a, b] = [
        payer(&ToolGate::open()).open_on(&node, "a".into()).await.unwrap(),
        payer(&ToolGate::open()).open_on(&node, "b".into()).await.unwrap(),
    ];
    drop(node);
    let end = async |session: &safepoint::Session<String>| {
        drop(session.stop(SessionStop::now()));
        session.done().in_time("the end of a session").await;
    };
    end(&a).await;
    tokio::time::sleep(2 * TTL).await;
    assert!(store.bury().await.unwrap().is_empty(), "it beats for the other");
    let ticket = b.push("go".to_owned()).unwrap();
    assert!(matches!(ticket.outcome().await, ItemOutcome::Completed(_)));
    end(&b).await;
    wait::asked("it is gone", async || {
        let state = store.nodes().await.unwrap()[0].state;
        if state == NodeState::Gone { Ok(()) } else { Err(format!("{state:?}")) }
    })
    .await;
}

/// S7.46: a session whose owners died in the middle of a turn again and again is taken by no node. A program that names it takes it,
/// and a turn that ends clears the count.
#[tokio::test]
async fn a_session_that_kills_its_owners_is_parked() {
    let (store, lives) = mortals();
    let id = SessionId::from("s");
    store.create(NewSession::of(id.clone())).await.unwrap();
    for _ in 0..MOST_TRIES {
        let lease = acquire(&*store, &id, owner(1), TTL).await.unwrap();
        let works = vec![Write::AtWork];
        store.append(&lease, works, Durability::Durable).await.unwrap();
        lives.say(1, Liveness::Dead);
        store.bury().await.unwrap();
        lives.say(1, Liveness::Alive);
    }
    let node = join(&store, 2).await;
    let refused = payer(&ToolGate::open()).open_on(&node, id.clone()).await.unwrap_err();
    assert!(matches!(&refused, Error::Parked(parked, _) if *parked == id), "{refused:?}");
    let named = open_here(payer(&ToolGate::open()), &store).await.unwrap();
    let ticket = named.push("go".to_owned()).unwrap();
    assert!(matches!(ticket.outcome().await, ItemOutcome::Completed(_)));
    drop(named.stop(SessionStop::now()));
    named.done().in_time("the end of the session").await;
    let again = payer(&ToolGate::open()).open_on(&node, id).in_time("an open").await;
    drop(again.unwrap());
}

/// S7.46: what an engine's turn does counts as work, and its end as rest.
#[tokio::test]
async fn only_what_dies_in_a_turn_counts() {
    for is_in_turn in [false, true] {
        let (store, lives) = mortals();
        for _ in 0..=MOST_TRIES {
            let node = join(&store, 1).await;
            let gate = ToolGate::shut();
            let session = match payer(&gate).open_on(&node, "s".into()).await {
                Ok(session) => session,
                Err(error) => {
                    assert!(is_in_turn && matches!(error, Error::Parked(..)), "{error:?}");
                    return;
                }
            };
            let ticket = session.push("go".to_owned()).unwrap();
            gate.came(1).in_time("the call").await;
            if !is_in_turn {
                gate.open_for_all();
                assert!(matches!(ticket.outcome().await, ItemOutcome::Completed(_)));
            }
            lives.say(1, Liveness::Dead);
            let other = join(&store, 2).await;
            session.done().in_time("the end of what was buried").await;
            lives.say(1, Liveness::Alive);
            other.drain(Duration::from_secs(1)).await;
        }
        assert!(!is_in_turn, "it is parked by now");
    }
}
