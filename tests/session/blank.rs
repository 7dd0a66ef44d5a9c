//! Nothing to say: items with nothing in them, and plans that say nothing, reach no model.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use safepoint::{
    Session,
    ids::SessionId,
    message::UserMessage,
    raw::encode_item,
    session::{
        ChatPlanner, ExitReason, ItemOutcome, Plan, PlanContext, Planner, Policy, Preempt, Push, PushError,
        RejectReason, SessionEvent, SessionStop, TurnPlan,
    },
    stop::Failure,
    store::{MemoryStore, OwnerProcess, Store},
};

use super::{
    desk::{Desk, accounted, turn},
    world::seen,
};

/// S5.1, S1.10, S6.2: a blank item is refused at the door, however it comes, with a code that a program can
/// read.
#[tokio::test]
async fn a_blank_item_is_refused_at_the_door() {
    let desk = Desk::new([]);
    let session = desk.chat().start();
    for policy in [Policy::Enqueue, Policy::steer(), Preempt::now().into(), Policy::Rollback, Policy::Reject]
    {
        let refused = session.push(Push::new(" \n".to_owned()).policy(policy)).unwrap_err();
        assert_eq!((refused.code(), refused.into_item().as_deref()), ("input", Some(" \n")), "{policy:?}");
    }
    let by_strategy = session.push_with(String::new(), |_| Policy::Enqueue);
    assert!(matches!(by_strategy, Err(PushError::Blank(_))), "{by_strategy:?}");
    let item = session.push("a".to_owned()).unwrap();
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(desk.model.requests().len(), 1);
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[item]).await;
}

/// S5.1, S6.2, S7.5: one that another process put into the store goes back from there.
#[tokio::test]
async fn a_blank_item_in_the_store_goes_back() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (id, desk) = (SessionId::from("s"), Desk::new([]));
    let session = desk.chat().open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
    store.push(&id, encode_item(&"  ".to_owned(), Policy::Enqueue, None, 8).unwrap()).await.unwrap();
    session.check_store();
    seen(&session, |event| {
        matches!(event, SessionEvent::ItemSettled { fate: ItemOutcome::Returned(RejectReason::Blank), .. })
    })
    .await;
    let item = session.push("a".to_owned()).unwrap();
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!((desk.model.requests().len(), store.inbox(&id).await.unwrap().len()), (1, 0));
}

/// Plans turns that say this.
struct Says(ChatPlanner, Vec<UserMessage>);

impl Planner<String> for Says {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        Box::pin(async {
            Ok(match self.0.plan(situation).await? {
                Plan::Turn(plan) => Plan::Turn(TurnPlan { input: self.1.clone(), ..plan }),
                other => other,
            })
        })
    }
    fn steer(&self, item: &String) -> UserMessage {
        self.0.steer(item)
    }
}

/// S6.9, S5.1: a planner whose turn says nothing has failed: no model call, and its items are kept.
#[tokio::test]
async fn a_plan_that_says_nothing_is_a_failed_callback() {
    for input in [vec![], vec!["".into()], vec!["something".into(), " ".into()]] {
        let desk = Desk::new([]);
        let planner = Says(ChatPlanner::new(desk.agent()), input);
        let session: Session<String> = Session::builder(planner).start();
        let item = session.push("a".to_owned()).unwrap();
        let exit = accounted(&session, &[item]).await;
        assert!(matches!(exit.reason(), ExitReason::Failed(error) if error.code == "callback"), "{exit:?}");
        assert_eq!((exit.unhandled().len(), desk.model.requests().len()), (1, 0));
    }
}
