//! An accepted position is the order, whichever way an item came; and nothing that is accepted waits for a
//! later push.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use safepoint::{
    Session,
    ids::SessionId,
    message::UserMessage,
    raw::encode_item,
    session::{ChatPlanner, ItemOutcome, Plan, PlanContext, Planner, Policy, SessionStop, TurnPlan},
    stop::Failure,
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::tool_gate::ToolGate;

use super::desk::{Desk, accounted, said, turn};

/// What a planner says the first time that it is asked, once it is let.
#[derive(Clone, Copy, Debug)]
enum First {
    Waits,
    TakesNothing,
    Chats,
}

/// Chat, but for the first plan; and it notes what it was shown.
struct Thinks {
    chat: ChatPlanner,
    desk: Arc<Desk>,
    first: First,
    gate: ToolGate,
    shown: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Planner<String> for Thinks {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        let mut shown = self.shown.lock().unwrap();
        shown.push(situation.waiting.iter().map(|waiting| waiting.item.clone()).collect());
        if shown.len() > 1 {
            return self.chat.plan(situation);
        }
        Box::pin(async move {
            self.gate.pass().await;
            match self.first {
                First::Waits => Ok(Plan::Wait),
                First::TakesNothing => Ok(Plan::Turn(TurnPlan {
                    agent: self.desk.agent(),
                    input: Vec::new(),
                    take: Vec::new(),
                    drop: Vec::new(),
                })),
                First::Chats => self.chat.plan(situation).await,
            }
        })
    }

    fn steer(&self, item: &String) -> UserMessage {
        item.clone().into()
    }
}

/// A planner that thinks at its first plan, its gate, and what it was shown.
fn thinks(first: First) -> (Thinks, ToolGate, Arc<Mutex<Vec<Vec<String>>>>) {
    let desk = Arc::new(Desk::new([]));
    let (gate, shown) = (ToolGate::default(), Arc::default());
    let chat = ChatPlanner::new(desk.agent());
    (Thinks { chat, desk, first, gate: gate.clone(), shown: Arc::clone(&shown) }, gate, shown)
}

/// S6.1, S6.14: an item that comes while the planner thinks is planned too, although that planner then waits,
/// or takes nothing: it has not seen it.
#[tokio::test]
async fn what_comes_while_the_planner_thinks_is_planned_too() {
    for first in [First::Waits, First::TakesNothing] {
        let (planner, gate, shown) = thinks(first);
        let session = Session::builder(planner).start();
        let old = session.push("a".to_owned()).unwrap();
        gate.came(1).await;
        let new = session.push("b".to_owned()).unwrap();
        assert_eq!(session.queued().await.len(), 2);
        gate.open_for_all();
        assert_eq!(old.outcome().await, ItemOutcome::Completed(turn(1)), "{first:?}");
        assert_eq!(new.outcome().await, ItemOutcome::Completed(turn(2)), "{first:?}");
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[old, new]).await;
        assert_eq!(*shown.lock().unwrap(), [vec!["a"], vec!["a", "b"], vec!["b"]]);
    }
}

async fn stored(texts: &[&str]) -> (Arc<dyn Store>, SessionId) {
    let (store, id) = (Arc::new(MemoryStore::default()) as Arc<dyn Store>, SessionId::from("s"));
    store.create(safepoint::raw::store::NewSession::of(id.clone())).await.unwrap();
    for text in texts {
        let push = encode_item(&(*text).to_owned(), Policy::Enqueue, None, 10).unwrap();
        store.push(&id, push).await.unwrap();
    }
    (store, id)
}

/// S6.2, S6.14: what waits in the store comes before what is pushed into the session as it opens, and the
/// first plan sees all of it.
#[tokio::test]
async fn what_the_store_holds_is_planned_first_and_as_a_whole() {
    let (store, id) = stored(&["a", "b", "c"]).await;
    let (planner, gate, shown) = thinks(First::Chats);
    gate.open_for_all();
    let session = Session::builder(planner).open(store, id, OwnerProcess::here()).await.unwrap();
    let last = session.push("d".to_owned()).unwrap();
    assert_eq!(last.outcome().await, ItemOutcome::Completed(turn(4)));
    session.stop(SessionStop::at_turn_end());
    let exit = session.done().await;
    assert_eq!(said(exit.history()), ["a", "b", "c", "d"]);
    let first = shown.lock().unwrap()[0].clone();
    assert!(first.starts_with(&["a".to_owned(), "b".to_owned(), "c".to_owned()]), "{first:?}");
}

/// The same, with another thread that takes the mail: whichever is first, the order is that of acceptance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_order_of_acceptance_holds_while_a_session_opens() {
    for _ in 0..50 {
        let (store, id) = stored(&["a", "b"]).await;
        let desk = Desk::new([]);
        let session = desk.chat().open(store, id, OwnerProcess::here()).await.unwrap();
        let last = session.push("c".to_owned()).unwrap();
        last.outcome().await;
        session.stop(SessionStop::at_turn_end());
        assert_eq!(said(session.done().await.history()), ["a", "b", "c"]);
    }
}
