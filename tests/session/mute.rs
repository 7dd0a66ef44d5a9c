//! A store that never answers one request, whichever it is: sessions are opened, resumed and ended all the same, or fail.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Session,
    ids::SessionId,
    session::{ItemOutcome, Node, PendingItems, SessionStop},
    store::{Error, MemoryStore, NewNode, OwnerProcess, Store},
};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
    tool_gate::ToolGate,
    wait,
};
use tokio::time::timeout;

use super::{
    desk::{Desk, asks, turn},
    positions::{Tree, shown},
    world::open_here,
};

/// Longer than all bounds of one session together.
const NEVER: Duration = Duration::from_secs(1200);

fn id() -> SessionId {
    SessionId::from("s")
}

async fn bounded<T>(what: &str, at: usize, future: impl Future<Output = T>) -> T {
    let Ok(done) = timeout(NEVER, future).await else { panic!("operation {at}: {what} never came") };
    done
}

fn mute_at(inner: &Arc<dyn Store>, at: usize) -> Arc<FaultStore> {
    Arc::new(FaultStore::over(Arc::clone(inner), at, OperationFault::Mute))
}

/// S7.6, S3.4: each operation of a session with questions, child runs and a background run: none of them hangs it.
#[tokio::test(start_paused = true)]
async fn no_request_without_an_answer_hangs_a_session() {
    for at in 0.. {
        let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let faulty = mute_at(&inner, at);
        let tree = Tree::new();
        let opening = tree.open(Arc::clone(&faulty) as Arc<dyn Store>);
        if let Ok(session) = bounded("the opening", at, opening).await {
            bounded("the end", at, shown(session)).await;
        }
        if faulty.asked() <= at {
            assert!(at > 20, "only {at} operations");
            return;
        }
    }
}

/// A session whose turn waits for a decision, and an item behind it, without an owner.
async fn left(inner: &Arc<dyn Store>, desk: &Desk) {
    desk.tools.gate().open_for_all();
    let session = open_here(desk.chat(), inner).await.unwrap();
    let asked = session.push("may I?".to_owned()).unwrap();
    assert_eq!(asked.outcome().await, ItemOutcome::Suspended(turn(1)));
    session.push("b".to_owned()).unwrap().recorded().await;
    session.stop(SessionStop::at_turn_end());
    session.done().await;
}

/// What a later owner does: it decides, waits for the turn, and ends.
async fn continued(session: &Session<String>) {
    for asked in session.approvals().await {
        // A decision that is not taken leaves the turn as it is.
        drop(session.decide(&asked.id, safepoint::approval::Decision::Approve).await);
    }
    drop(session.stop(SessionStop::at_turn_end()));
    session.done().await;
}

/// S7.6, S3.4: so is a session that another owner left, opened alone and on a node.
#[tokio::test(start_paused = true)]
async fn no_request_without_an_answer_hangs_a_later_owner() {
    for is_on_node in [false, true] {
        for at in 0.. {
            let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let desk = Desk::new([asks(), Reply::text("after the decision"), Reply::text("behind")]);
            left(&inner, &desk).await;
            let faulty = mute_at(&inner, at);
            let store = Arc::clone(&faulty) as Arc<dyn Store>;
            let chat = desk.chat().pending_items(PendingItems::GoOn);
            let opening = async {
                if !is_on_node {
                    return Ok::<_, Error>((chat.open(store, id(), OwnerProcess::here()).await?, None));
                }
                let new = NewNode::of(OwnerProcess::here(), Duration::from_secs(60));
                let node = Node::join(store, new).await?;
                Ok((chat.open_on(&node, id()).await?, Some(node)))
            };
            if let Ok((session, _node)) = bounded("the opening", at, opening).await {
                bounded("the end", at, continued(&session)).await;
            }
            if faulty.asked() <= at {
                assert!(at > 8, "only {at} operations");
                break;
            }
        }
    }
}

/// S6.22: a session that the store gives to a node after the opening has failed is given back, and can be opened again.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_taken_late_is_given_back() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let desk = Desk::new([asks(), Reply::text("after the decision"), Reply::text("behind")]);
    left(&inner, &desk).await;
    let gate = ToolGate::shut();
    let late = Arc::new(FaultStore::unarmed(Arc::clone(&inner), OperationFault::Late(gate.clone())));
    let new = NewNode::of(OwnerProcess::here(), Duration::from_secs(60));
    let node = Node::join(Arc::clone(&late) as Arc<dyn Store>, new).await.unwrap();
    late.arm_named("acquire", 0);
    let failed = desk.chat().open_on(&node, id()).await;
    assert!(matches!(failed, Err(Error::Unknown(_))), "{failed:?}");
    let holder = async || inner.open(&id()).await.unwrap().holder;
    assert!(holder().await.is_some(), "the store has given it");
    gate.open_for_all();
    wait::asked("it is given back", async || holder().await.is_none()).await;
    assert_eq!(inner.due(10, Vec::new()).await.unwrap().len(), 1, "what waits in it wants an owner");
    let again = desk.chat().open_on(&node, id()).await.unwrap();
    continued(&again).await;
}
