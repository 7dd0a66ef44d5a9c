//! A yes that holds for the rest of a session: for one call or its tool, after a restart, and nowhere else
//! (S8.6).

use std::sync::{Arc, Mutex};

use safepoint::{
    Agent, Session, SessionHandle, ToolContext,
    approval::{AllowScope, ApprovalKind, ApprovalMode, Decision, Rule, RuleAction, WithoutApprover},
    event::{EventKind, Fact},
    ids::SessionId,
    raw::store::{ApprovalState, Liveness},
    receipt::CallStatus,
    session::{ChatPlanner, ItemOutcome, SessionEvent},
    store::{OwnerProcess, Store},
    tool::from_fn,
};
use safepoint_testkit::{script::Reply, server::ModelServer, store_suite::Population};
use serde_json::{Value, json};

use super::world::{agent, mortals, seen, server};

/// A store whose owners can be said to be dead, and a payment that notes what it was given.
struct World {
    store: Arc<dyn Store>,
    lives: Population,
    server: ModelServer,
    paid: Arc<Mutex<Vec<u64>>>,
}

impl World {
    /// The model pays these, one round and one turn each.
    async fn new(cents: &[u64]) -> Self {
        let (store, lives) = mortals();
        let replies =
            cents.iter().flat_map(|cents| [Reply::call("pay", json!({"cents": cents})), Reply::text("ok")]);
        Self { store, lives, server: server(replies).await, paid: Arc::default() }
    }

    fn agent(&self, approvals: ApprovalMode) -> Agent {
        let paid = Arc::clone(&self.paid);
        let pay = from_fn("pay", "pays", move |_: ToolContext, args: Value| {
            let paid = Arc::clone(&paid);
            async move {
                paid.lock().unwrap().push(args["cents"].as_u64().unwrap());
                Ok("paid")
            }
        });
        agent(&self.server)
            .approvals(approvals)
            .rule(
                Rule::on("pay", RuleAction::Deny("never 13".into())).when(|args| args["cents"] == json!(13)),
            )
            .rule(Rule::on("pay", RuleAction::Ask))
            .tool(pay)
            .build()
    }

    async fn open(&self, pid: u32, id: &str) -> Session<String> {
        self.open_under(pid, id, ApprovalMode::Ask(None, WithoutApprover::Suspend)).await
    }

    async fn open_under(&self, pid: u32, id: &str, approvals: ApprovalMode) -> Session<String> {
        let builder = Session::builder(ChatPlanner::new(self.agent(approvals)));
        let owner = OwnerProcess { pid, ..OwnerProcess::here() };
        builder.open(Arc::clone(&self.store), SessionId::from(id), owner).await.unwrap()
    }

    fn paid(&self) -> Vec<u64> {
        std::mem::take(&mut self.paid.lock().unwrap())
    }
}

/// Another turn: how it ended, and what became of its last call.
async fn turn(session: &SessionHandle<String>) -> (ItemOutcome, Option<CallStatus>) {
    let ticket = session.push("pay".to_owned()).unwrap();
    let first = ticket.outcome().await;
    let ended =
        |event: &SessionEvent| matches!(event, SessionEvent::TurnEnded { fate, .. } if *fate == first);
    match seen(session, ended).await {
        SessionEvent::TurnEnded { receipt, .. } => (first, receipt.calls.last().map(|call| call.status)),
        other => panic!("{other:?}"),
    }
}

/// A turn that asks, and continues with this answer.
async fn asked(session: &SessionHandle<String>, decision: Decision) {
    let (fate, _) = turn(session).await;
    let ItemOutcome::Suspended(of) = fate else { panic!("{fate:?}") };
    let is_question = |event: &SessionEvent| {
        matches!(event, SessionEvent::Run { turn, event } if *turn == of
            && matches!(&event.kind, EventKind::Fact(fact) if matches!(**fact, Fact::ApprovalRequested(_))))
    };
    let SessionEvent::Run { event, .. } = seen(session, is_question).await else { panic!("a question") };
    let EventKind::Fact(fact) = event.kind else { panic!("a fact") };
    let Fact::ApprovalRequested(question) = &*fact else { panic!("a question") };
    assert_eq!(question.question, ApprovalKind::BeforeCall);
    session.decide(&question.id, decision).await.unwrap();
    seen(
        session,
        |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(at), .. } if *at == of),
    )
    .await;
}

fn always(covers: AllowScope) -> Decision {
    Decision::ApproveAlways { covers }
}

/// S8.6: for this very call: the session does not ask again about the same arguments, but about others. The
/// grant is in the log, so it holds when another process continues after kill -9. Another session asks.
#[tokio::test]
async fn a_yes_for_one_call_holds_in_its_session_and_after_a_restart() {
    let world = World::new(&[5, 5, 6, 5, 5]).await;
    let first = world.open(1, "s").await;
    asked(&first, always(AllowScope::Call)).await;
    assert!(
        matches!(turn(&first).await, (ItemOutcome::Completed(_), Some(CallStatus::Completed))),
        "unasked"
    );
    asked(&first, Decision::Deny { message: String::new() }).await;
    assert_eq!(world.paid(), [5, 5]);
    world.lives.say(1, Liveness::Dead);

    let next = world.open(2, "s").await;
    assert!(matches!(turn(&next).await, (ItemOutcome::Completed(_), Some(CallStatus::Completed))));
    let other = world.open(2, "t").await;
    assert!(matches!(turn(&other).await.0, ItemOutcome::Suspended(_)), "another session asks");
    assert_eq!(world.paid(), [5]);
    let open = |rows: Vec<safepoint::raw::store::ApprovalRow>| {
        rows.iter().filter(|row| row.state == ApprovalState::Open).count()
    };
    assert_eq!(open(world.store.approvals(&SessionId::from("s")).await.unwrap()), 0);
}

/// S8.6: for the tool: every call of it, but what a rule denies is denied, and where nothing that asks may
/// run, nothing does.
#[tokio::test]
async fn a_yes_for_a_tool_is_no_yes_to_what_a_rule_denies() {
    let world = World::new(&[5, 6, 13, 7]).await;
    let first = world.open(1, "s").await;
    asked(&first, always(AllowScope::Tool)).await;
    assert!(matches!(turn(&first).await, (ItemOutcome::Completed(_), Some(CallStatus::Completed))));
    assert!(matches!(turn(&first).await, (ItemOutcome::Completed(_), Some(CallStatus::Denied))));
    world.lives.say(1, Liveness::Dead);
    let next = world.open_under(2, "s", ApprovalMode::Deny).await;
    assert!(matches!(turn(&next).await, (ItemOutcome::Completed(_), Some(CallStatus::Denied))));
    assert_eq!(world.paid(), [5, 6]);
}

/// S8.6, S8.2: changed arguments that were approved are covered like any others; a plain yes covers nothing
/// further.
#[tokio::test]
async fn a_plain_yes_covers_nothing_and_changed_arguments_are_covered_like_others() {
    let world = World::new(&[5, 5, 6]).await;
    let session = world.open(1, "s").await;
    asked(&session, Decision::Approve).await;
    asked(&session, always(AllowScope::Call)).await;
    asked(&session, Decision::approve_with(json!({"cents": 5}))).await;
    assert_eq!(world.paid(), [5, 5, 5]);
}

/// S8.6: a session in memory has it too, from turn to turn.
#[tokio::test]
async fn a_session_in_memory_remembers_it() {
    let world = World::new(&[5, 5]).await;
    let agent = world.agent(ApprovalMode::Ask(None, WithoutApprover::Suspend));
    let session = Session::builder(ChatPlanner::new(agent)).start();
    asked(&session, always(AllowScope::Call)).await;
    assert!(matches!(turn(&session).await, (ItemOutcome::Completed(_), Some(CallStatus::Completed))));
    assert_eq!(world.paid(), [5, 5]);
}
