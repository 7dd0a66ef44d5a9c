//! A session in whose store very much waits: opening it, its turns and its end look at each item once.

use std::sync::Arc;

use futures_util::future::{BoxFuture, try_join_all};
use safepoint::{
    Agent, Session,
    ids::{ItemId, SessionId},
    message::UserMessage,
    raw::{
        encode_item,
        store::{NewSession, Pushed},
    },
    session::{ItemOutcome, Plan, PlanContext, Planner, Policy, SessionEvent, SessionStop, TurnPlan},
    stop::Failure,
    store::{MemoryStore, Store},
};
use safepoint_testkit::store_suite::owner;

use super::{
    desk::{Desk, answers, said, turn},
    world::seen,
};

const ITEMS: usize = 100_000;

/// Takes whatever waits into one turn.
struct All(Agent);

impl Planner<String> for All {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        let take: Vec<ItemId> = situation.waiting.iter().map(|waiting| waiting.id).collect();
        let input = vec![format!("{} items", take.len()).into()];
        Box::pin(async { Ok(Plan::Turn(TurnPlan { agent: self.0.clone(), input, take, drop: Vec::new() })) })
    }

    fn steer(&self, item: &String) -> UserMessage {
        item.clone().into()
    }
}

/// S6.1, S6.2, S6.10: a hundred thousand items are there for the next owner. A session that ends while they
/// wait hands each of them on, in order; a turn may take all of them at once. Were any of it quadratic, this
/// would take minutes.
#[tokio::test]
async fn a_hundred_thousand_items_wait_for_the_next_owner() {
    let (store, id) = (Arc::new(MemoryStore::default()), SessionId::from("s"));
    store.create(NewSession::of(id.clone())).await.unwrap();
    let push = |number: usize| {
        store.push(&id, encode_item(&number.to_string(), Policy::Enqueue, None, ITEMS).unwrap())
    };
    try_join_all((0..ITEMS).map(push)).await.unwrap();
    assert_eq!(push(ITEMS).await.unwrap(), Pushed::Full);
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let chat = desk.chat().open(Arc::clone(&store) as Arc<dyn Store>, id.clone(), owner(1)).await.unwrap();
    gate.request().await;
    chat.stop(SessionStop::at_turn_end()).asked().await;
    answers(&gate, "one of them");
    let exit = chat.done().await;
    let left: Vec<String> = exit.unhandled().iter().map(|(_, item)| item.clone()).collect();
    assert!(left == (1..ITEMS).map(|number| number.to_string()).collect::<Vec<_>>(), "each, in order");
    let all = Session::builder(All(desk.agent()));
    let all = all.open(Arc::clone(&store) as Arc<dyn Store>, id.clone(), owner(2)).await.unwrap();
    // Its first plan sees all that the store holds.
    let is_over = |event: &SessionEvent| matches!(event, SessionEvent::TurnEnded { turn: it, fate: ItemOutcome::Completed(_), .. } if *it == turn(2));
    seen(&all, is_over).await;
    all.stop(SessionStop::at_turn_end());
    all.done().await;
    let texts = said(desk.model.requests().last().unwrap());
    assert_eq!(texts.last(), Some(&format!("{} items", ITEMS - 1)), "one turn took all of them");
    assert_eq!(store.inbox(&id).await.unwrap(), []);
}
