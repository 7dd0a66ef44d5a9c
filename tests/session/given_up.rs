//! What was decided about a turn is kept: given up, taken up, or not taken up; and a plan names what waits.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use safepoint::{
    Session, StopRequest,
    ids::SessionId,
    message::UserMessage,
    raw::store::ApprovalState,
    session::{
        ChatPlanner, ExitReason, ItemOutcome, Plan, PlanContext, PlanRequest, Planner, SessionStop,
        StoppedTurn, Ticket, TurnPlan,
    },
    stop::Failure,
    store::{MemoryStore, OwnerProcess, Store},
};

use super::desk::{Desk, accounted, asks, said, turn};

/// When the turn is given up.
#[derive(Clone, Copy, Debug)]
enum When {
    AtWork,
    Interrupted,
    Suspended,
}

/// S6.7, S6.16: the next owner does not resume a turn that was given up, whatever it did at that moment. Its
/// records stay, its items are final, and no question comes about it any more.
#[tokio::test]
async fn an_abandoned_turn_is_not_taken_up_again() {
    for when in [When::AtWork, When::Interrupted, When::Suspended] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (id, desk) = (SessionId::from("s"), Desk::new([asks()]));
        let first = desk.chat().open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
        let mut gate = (!matches!(when, When::Suspended)).then(|| desk.model.gate());
        let item = first.push("a".to_owned()).unwrap();
        if let Some(gate) = &mut gate {
            gate.request().await;
        }
        match when {
            When::AtWork => {}
            When::Interrupted => {
                first.stop_turn(None, StopRequest::now());
                assert_eq!(item.outcome().await, ItemOutcome::Interrupted(turn(1)));
            }
            When::Suspended => assert_eq!(item.outcome().await, ItemOutcome::Suspended(turn(1))),
        }
        first.stop(SessionStop::now().abandon());
        assert_eq!(first.done().await.after(), StoppedTurn::Abandoned);
        let next = desk.chat().open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
        assert!(!next.resume().await, "{when:?}");
        assert!(next.approvals().await.is_empty());
        next.stop(SessionStop::at_turn_end());
        let exit = next.done().await;
        assert!(exit.open().is_none(), "{when:?}: {:?}", exit.open());
        assert_eq!(said(exit.history()), ["a"], "what was said stays");
        assert!(store.inbox(&id).await.unwrap().is_empty());
        let open = |row: &safepoint::raw::store::ApprovalRow| row.state == ApprovalState::Open;
        assert!(!store.approvals(&id).await.unwrap().iter().any(open), "{when:?}");
    }
}

/// What a planner says where a resume is wanted, and of items.
#[derive(Clone, Copy, Debug)]
enum Says {
    Waits,
    Fails,
    TakesTwice,
    TakesWhatIsGone,
}

struct Odd {
    chat: ChatPlanner,
    desk: Arc<Desk>,
    says: Says,
    gone: std::sync::Mutex<Vec<Ticket<String>>>,
}

impl Planner<String> for Odd {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        let first = situation.waiting.first().map(|waiting| waiting.id);
        let take = match (self.says, first, self.gone.lock().unwrap().first().map(Ticket::id)) {
            (Says::Waits, ..) if situation.wanted == PlanRequest::Resume => {
                return Box::pin(async { Ok(Plan::Wait) });
            }
            (Says::Fails, ..) if situation.wanted == PlanRequest::Resume => {
                return Box::pin(async { Err(Failure::new("no resume")) });
            }
            (Says::TakesTwice, Some(id), _) => vec![id, id],
            (Says::TakesWhatIsGone, Some(id), Some(gone)) => vec![id, gone],
            _ => return self.chat.plan(situation),
        };
        let (agent, input) = (self.desk.agent(), vec!["strange".into()]);
        Box::pin(async move { Ok(Plan::Turn(TurnPlan { agent, input, take, drop: Vec::new() })) })
    }

    fn steer(&self, item: &String) -> UserMessage {
        item.clone().into()
    }
}

fn odd(says: Says, gone: Vec<Ticket<String>>) -> (Arc<Desk>, Session<String>) {
    let desk = Arc::new(Desk::new([]));
    let chat = ChatPlanner::new(desk.agent());
    let planner = Odd { chat, desk: Arc::clone(&desk), says, gone: gone.into() };
    (desk, Session::builder(planner).start())
}

/// S6.16: a resume is reported when the turn continues; where the planner waits or fails there is none.
#[tokio::test]
async fn a_resume_that_does_not_come_is_none() {
    for says in [Says::Waits, Says::Fails] {
        let (desk, session) = odd(says, Vec::new());
        let mut gate = desk.model.gate();
        let item = session.push("a".to_owned()).unwrap();
        gate.request().await;
        session.stop_turn(None, StopRequest::now());
        assert_eq!(item.outcome().await, ItemOutcome::Interrupted(turn(1)));
        assert!(!session.resume().await, "{says:?}");
        session.stop(SessionStop::at_turn_end());
        let exit = accounted(&session, &[item]).await;
        let failed =
            matches!(exit.reason(), ExitReason::Failed(error) if error.message.contains("no resume"));
        assert_eq!(failed, matches!(says, Says::Fails));
    }
}

/// S6.9, S6.16: a plan that names an item twice, or one that does not wait, is a planner's failure, with
/// every item accounted for.
#[tokio::test]
async fn a_plan_that_names_what_does_not_wait_fails() {
    let (_desk, other) = odd(Says::Waits, Vec::new());
    let gone = ["x", "y", "z"].map(|text| other.push(text.to_owned()).unwrap());
    for (says, gone) in [(Says::TakesTwice, Vec::new()), (Says::TakesWhatIsGone, vec![gone[2].clone()])] {
        let (_desk, session) = odd(says, gone);
        let item = session.push("a".to_owned()).unwrap();
        let exit = accounted(&session, std::slice::from_ref(&item)).await;
        let ExitReason::Failed(error) = exit.reason() else { panic!("{says:?}: {:?}", exit.reason()) };
        assert!(error.message.contains("does not wait"), "{error:?}");
        assert_eq!(item.fate_now(), Some(ItemOutcome::Unhandled));
    }
}
