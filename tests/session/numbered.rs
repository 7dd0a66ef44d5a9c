//! A planner that learns which turn it plans.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use safepoint::{
    Session,
    ids::{SessionId, TurnId},
    message::UserMessage,
    session::{ChatPlanner, ItemOutcome, Plan, PlanContext, Planner, SessionStop},
    stop::Failure,
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::script::Reply;

use super::desk::{Desk, turn};

/// Chat, and the numbers that it has seen.
struct Numbered(ChatPlanner, Arc<Mutex<Vec<TurnId>>>);

impl Planner<String> for Numbered {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        self.1.lock().unwrap().push(situation.turn);
        self.0.plan(situation)
    }

    fn steer(&self, item: &String) -> UserMessage {
        item.clone().into()
    }
}

/// S6.1: a planner knows the number of the turn that its plan begins, also after another owner's turns.
#[tokio::test]
async fn a_planner_knows_the_number_of_the_turn_that_it_plans() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let desk = Desk::new([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let numbers = Arc::new(Mutex::new(Vec::new()));
    for turns in [&[1, 2][..], &[3]] {
        let planner = Numbered(ChatPlanner::new(desk.agent()), Arc::clone(&numbers));
        let builder = Session::builder(planner);
        let session =
            builder.open(Arc::clone(&store), SessionId::from("s"), OwnerProcess::here()).await.unwrap();
        for number in turns {
            let said = session.push("go".to_owned()).unwrap();
            assert_eq!(said.outcome().await, ItemOutcome::Completed(turn(*number)));
            assert_eq!(numbers.lock().unwrap().last(), Some(&turn(*number)));
        }
        drop(session.stop(SessionStop::at_turn_end()));
        session.done().await;
    }
    let mut numbers = numbers.lock().unwrap().clone();
    numbers.dedup();
    assert_eq!(numbers, [turn(1), turn(2), turn(3)]);
}
