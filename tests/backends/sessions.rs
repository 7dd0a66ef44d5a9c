//! Remote agents in durable sessions, across processes, and as members of a tree.

use std::sync::Arc;

use safepoint::{
    Agent, AgentBuilder, Reason, Session, StopRequest,
    approval::{ApprovalMode, Decision, WithoutApprover},
    event::{EventKind, Fact},
    ids::SessionId,
    raw::{
        StoredStop,
        store::{ApprovalState, ApprovalsToWithdraw as Rows, Environment, Liveness, StopIntent},
    },
    receipt::{CallReport, CallStatus, QuietReport, RemoteStopState, SideEffect},
    remote::RemoteTool,
    session::{ChatPlanner, ItemOutcome, SessionEvent},
    stop::Reach,
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::{
    invariants::Invariants,
    peer::{Given, OnPeerStop, Peer},
    script::{Reply, Script},
    scripted::ScriptedModel,
    store_suite::{Population, Time, outside},
    tools::GateTools,
};
use serde_json::json;

struct World {
    store: Arc<dyn Store>,
    lives: Population,
}

impl World {
    fn new() -> Self {
        let lives = Population::default();
        let outside =
            Environment { clock: Environment::default().clock, ..outside(&Time::default(), &lives) };
        Self { store: Arc::new(MemoryStore::new(outside)), lives }
    }

    async fn open(&self, pid: u32, agent: AgentBuilder) -> Session<String> {
        let owner = OwnerProcess { pid, ..OwnerProcess::here() };
        let builder = Session::builder(ChatPlanner::new(agent.build()));
        builder.open(Arc::clone(&self.store), id(), owner).await.unwrap()
    }
}

fn id() -> SessionId {
    SessionId::from("s")
}

fn over(peer: &Peer) -> AgentBuilder {
    Agent::remote(peer.clone()).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
}

async fn seen(session: &Session<String>, wanted: impl Fn(&SessionEvent) -> bool) -> SessionEvent {
    let mut events = session.events();
    while let Some(event) = events.next().await {
        if wanted(&event.kind) {
            return event.kind;
        }
    }
    panic!("the session ended before what was waited for");
}

/// S10.1, S6.1, S7.2: turn after turn of a durable session is one conversation of the peer, also in another
/// process.
#[tokio::test]
async fn a_session_over_a_peer_is_one_conversation() {
    let (world, peer) = (World::new(), Peer::new("coder").answers("yes"));
    let first = world.open(1, over(&peer)).await;
    assert!(matches!(first.push("one".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(_)));
    world.lives.say(1, Liveness::Dead);
    let second = world.open(2, over(&peer)).await;
    assert!(matches!(second.push("two".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(_)));
    let briefs = peer.briefs();
    assert_eq!(briefs.iter().map(|brief| brief.text.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(briefs[0].conversation, briefs[1].conversation);
    assert_ne!(briefs[0].key, briefs[1].key);
}

/// S7.5, S10.3 / T11, langgenius/dify PR#39942; aprin-labs/archimedes#1667: a stop that another process asks
/// reaches the peer, and the account of it is the peer's own word.
#[tokio::test]
async fn a_stop_from_another_process_reaches_the_peer() {
    let world = World::new();
    let peer = Peer::new("coder").waits().answers("yes").on_stop(OnPeerStop::Ends);
    let session = world.open(1, over(&peer)).await;
    drop(session.push("work".to_owned()).unwrap());
    peer.gate().came(1).await;
    let request = StopRequest::now().with_reason(Reason::user("from afar"));
    let bytes = StoredStop::Turn(None, request).to_bytes();
    world.store.ask_stop(&id(), StopIntent { bytes, approvals: Rows::Stay }).await.unwrap();
    session.check_store();
    let interrupted = |event: &SessionEvent| {
        matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Interrupted(_), .. })
    };
    let SessionEvent::TurnEnded { receipt, .. } = seen(&session, interrupted).await else { unreachable!() };
    assert_eq!(receipt.stop.as_ref().unwrap().reason.text, "from afar");
    assert_eq!(receipt.calls[0].remote.as_ref().unwrap().stop, Some(RemoteStopState::Confirmed));
    assert_eq!((peer.stops(), peer.in_flight()), (1, 0));
}

/// S8.4, S8.2: what a peer asks stands in the store, and is answered from there, once.
#[tokio::test]
async fn a_peers_question_is_answered_through_the_session() {
    let world = World::new();
    let peer = Peer::new("coder").asks("q1", "execute", json!({"command": "make"})).answers("yes");
    let session = world.open(1, over(&peer)).await;
    let item = session.push("work".to_owned()).unwrap();
    seen(&session, |event| match event {
        SessionEvent::Run { event, .. } => {
            matches!(&event.kind, EventKind::Fact(fact) if matches!(**fact, Fact::ApprovalRequested(_)))
        }
        _ => false,
    })
    .await;
    let rows = world.store.approvals(&id()).await.unwrap();
    assert_eq!(rows[0].state, ApprovalState::Open);
    session.decide(&rows[0].asked.id, Decision::Approve).await.unwrap();
    assert!(matches!(item.outcome().await, ItemOutcome::Completed(_)));
    assert_eq!(peer.answered(), [("q1".to_owned(), Given::Decision(Decision::Approve))]);
    assert!(session.decide(&rows[0].asked.id, Decision::Approve).await.is_err());
}

/// S7.3, S10.3, S10.60: a process that dies while a peer works leaves the work in doubt. The next one does
/// not repeat it, and says so, and that it may still run.
#[tokio::test]
async fn work_of_a_peer_is_not_repeated_after_a_crash() {
    let world = World::new();
    let peer = Peer::new("coder").waits().answers("yes");
    let first = world.open(1, over(&peer)).await;
    drop(first.push("pay".to_owned()).unwrap());
    peer.gate().came(1).await;
    world.lives.say(1, Liveness::Dead);
    let second = world.open(2, over(&peer)).await;
    assert!(second.resume().await);
    let ended = |event: &SessionEvent| matches!(event, SessionEvent::TurnEnded { .. });
    let SessionEvent::TurnEnded { fate, receipt, .. } = seen(&second, ended).await else { unreachable!() };
    assert!(
        matches!(fate, ItemOutcome::Failed(_)),
        "work that did not come to its end is no answer: {fate:?}"
    );
    assert_eq!(peer.begun(), 1, "once, whatever became of it");
    let row = receipt.calls.iter().find(|call| call.name == "coder").unwrap();
    assert_eq!((row.status, row.effect), (CallStatus::LeftRunning, SideEffect::Unknown));
    peer.gate().open_for_all();
}

fn row<'r>(calls: &'r [CallReport], name: &str) -> &'r CallReport {
    calls.iter().find(|call| call.name == name).unwrap()
}

/// S9.2, S10.3, S3.7: a root, a child run, a peer that ends and one that does not, stopped on the tree: one
/// receipt with a row for each, and each row says what is true of it. Taken up again, nothing is repeated.
#[tokio::test]
async fn a_tree_of_all_kinds_has_one_honest_receipt() {
    let tools = GateTools::new();
    let honest = Peer::new("honest").waits().answers("yes").on_stop(OnPeerStop::Ends);
    let stubborn = Peer::new("stubborn").waits().answers("yes").on_stop(OnPeerStop::CannotStop);
    let child = Agent::builder(ScriptedModel::new(Script::of([Reply::call("pay", json!({}))])))
        .approvals(ApprovalMode::Auto)
        .tool(tools.gated("pay").with(|spec| spec.overlap(safepoint::tool::Concurrency::Parallel)))
        .build();
    let task = json!({"task": "work"});
    let all = Reply::call("child", task.clone()).and_call("honest", task.clone()).and_call("stubborn", task);
    let script = Script::of([all, Reply::text("It was stopped.")]);
    let root = Agent::builder(ScriptedModel::new(script))
        .child(child.as_subagent("child", "works"))
        .tool(RemoteTool::new(honest.clone()))
        .tool(RemoteTool::new(stubborn.clone()))
        .build();
    let handle = root.run("all of you").detach();
    tools.gate().came(1).await;
    honest.gate().came(1).await;
    stubborn.gate().came(1).await;
    handle.stop(StopRequest::now().with_reach(Reach::Tree));
    let closed = Invariants::of(&handle).ledger(tools.ledger()).check().await.unwrap();
    let calls = &closed.receipt.calls;
    assert_eq!(row(calls, "child").status, CallStatus::Stopped);
    let inside = row(calls, "child").child.as_ref().unwrap().receipt.as_ref().unwrap();
    assert_eq!(inside.calls[0].status, CallStatus::Stopped);
    assert_eq!(row(calls, "honest").status, CallStatus::Stopped);
    assert_eq!(row(calls, "stubborn").status, CallStatus::LeftRunning);
    let QuietReport::NotQuiet(last) = handle.quiet().await else { panic!("one of them works on") };
    assert_eq!(last.survivors, ["remote work task-1 at script:stubborn"]);
    assert_eq!((honest.in_flight(), stubborn.in_flight()), (0, 1));

    stubborn.gate().open_for_all();
    tools.gate().open_for_all();
    drop(root.resume(&closed.outcome).await);
    assert_eq!((honest.begun(), stubborn.begun()), (1, 1), "nothing is repeated");
}
