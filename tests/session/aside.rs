//! Background runs that outlive the turn that began them: shown, asked about, counted as work, and named at
//! the end.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, Limits, Session, SessionHandle,
    approval::{ApprovalRequest, DecideError, Decision},
    event::{EventKind, Fact},
    ids::{ApprovalId, SessionId},
    raw,
    session::{ChatPlanner, ExitReason, ItemOutcome, SessionBuilder, SessionEvent, SessionStop},
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::{ledger::Mark, script::Reply, scripted::ModelGate};
use serde_json::json;
use tokio::time::Instant;

use super::{
    desk::{Desk, answers, turn},
    world::seen,
};

/// A turn that begins a run in the background, and ends.
struct World {
    outer: Desk,
    inner: Desk,
    /// The first model call of the background run.
    gate: ModelGate,
}

impl World {
    fn new() -> Self {
        let outer =
            Desk::new([Reply::default().and_call("aside", json!({"task": "dig"})), Reply::text("it digs")]);
        let inner = Desk::new([Reply::text("dug")]);
        inner.tools.gate().open_for_all();
        let gate = inner.model.gate();
        Self { outer, inner, gate }
    }

    fn chat(&self, inner: &Agent) -> SessionBuilder<String> {
        let aside = inner.as_subagent("aside", "digs aside").background();
        Session::builder(ChatPlanner::new(Agent::builder(self.outer.model.clone()).child(aside).build()))
    }

    /// Its turn has ended; it has not said anything yet.
    async fn begun(&mut self, session: &SessionHandle<String>) {
        let item = session.push("dig aside".to_owned()).unwrap();
        self.gate.request().await;
        assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
        quiet(session).await;
    }

    fn says(&self, reply: &str) {
        let call = safepoint::message::ToolCall { id: "q".into(), name: reply.into(), args: "{}".into() };
        self.gate.send(safepoint::model::Delta::CallReady(call));
        self.gate.send(safepoint::model::Delta::Ended(safepoint::model::Finish::Natural));
    }

    fn committed(&self) -> usize {
        self.inner.tools.ledger().count(Mark::Commit)
    }
}

async fn quiet(session: &SessionHandle<String>) -> Vec<String> {
    match seen(session, |event| matches!(event, SessionEvent::TurnQuiet { .. })).await {
        SessionEvent::TurnQuiet { survivors, .. } => survivors,
        other => panic!("{other:?}"),
    }
}

fn aside(event: &SessionEvent, wanted: impl Fn(&Fact) -> bool) -> bool {
    let SessionEvent::Background { event, .. } = event else { return false };
    let EventKind::Child { event, .. } = &event.kind else { return false };
    matches!(&**event, EventKind::Fact(fact) if wanted(fact))
}

/// The one open question, once an event announces it.
async fn question(session: &SessionHandle<String>) -> ApprovalRequest {
    seen(session, |event| aside(event, |fact| matches!(fact, Fact::ApprovalRequested(_)))).await;
    let open = session.approvals().await;
    assert_eq!(open.len(), 1, "{open:?}");
    open[0].clone()
}

async fn ended(session: &SessionHandle<String>) {
    seen(session, |event| aside(event, |fact| matches!(fact, Fact::Settled { .. }))).await;
}

/// The error for a decision that comes after `by`, who said yes.
fn decided(by: &str) -> DecideError {
    DecideError::Decided { by: by.to_owned(), decision: Box::new(Decision::Approve) }
}

/// S9.1, S8.1, S8.2, S6.8, S6.9: the turn has ended, and its quiet names what still runs. The question is
/// announced, listed with its path, and decided through the session, once. The session is idle only when
/// nothing runs any more.
#[tokio::test(start_paused = true)]
async fn a_question_of_a_background_run_is_decided_through_the_session() {
    let mut world = World::new();
    let session = world.chat(&world.inner.agent()).start();
    world.begun(&session).await;
    let named = quiet(&session).await;
    assert!(named.len() == 1 && raw::is_background_run(&named[0]), "{named:?}");
    let minute = Duration::from_secs(60);
    session.stop(SessionStop::when_idle_for(minute));
    tokio::time::sleep(10 * minute).await;
    assert!(!session.is_done(), "it works");
    world.says("ask");
    let asked = question(&session).await;
    assert_eq!((asked.tool.as_str(), asked.path.calls().len()), ("ask", 1));
    tokio::time::sleep(60 * minute).await;
    assert!(!session.is_done(), "it waits for a person");
    assert_eq!(session.decide(&asked.id, Decision::Approve).await, Ok(()));
    assert_eq!(session.decide(&asked.id, Decision::Approve).await, Err(decided("the holder of the handle")));
    let began = Instant::now();
    ended(&session).await;
    let exit = session.done().await;
    assert_eq!((exit.reason(), began.elapsed()), (&ExitReason::Idle, minute));
    assert_eq!((world.committed(), world.inner.model.requests().len()), (1, 2));
    assert!(exit.survivors().is_empty());
    assert!(session.approvals().await.is_empty());
}

/// S9.1, S5.3: the result of a background run after its turn was stopped is shown, and wakes no model: the
/// next turn is the next message's.
/// anthropics/claude-code#67321: what background agents report after a stop wakes the model again, and it
/// continues;
/// anthropics/claude-code#30118: after a stop with background agents, new messages are swallowed.
#[tokio::test]
async fn the_end_of_a_background_run_begins_no_turn() {
    let mut world = World::new();
    world.outer = Desk::new([Reply::text("nothing")]);
    let session = world.chat(&world.inner.agent()).start();
    let mut rounds = [world.outer.model.gate(), world.outer.model.gate()];
    let item = session.push("dig aside".to_owned()).unwrap();
    rounds[0].request().await;
    let args = json!({"task": "dig"}).to_string();
    let call = safepoint::message::ToolCall { id: "a".into(), name: "aside".into(), args };
    rounds[0].send(safepoint::model::Delta::CallReady(call));
    rounds[0].send(safepoint::model::Delta::Ended(safepoint::model::Finish::Natural));
    world.gate.request().await;
    rounds[1].request().await;
    session.stop_turn(None, safepoint::StopRequest::now());
    assert_eq!(item.outcome().await, ItemOutcome::Interrupted(turn(1)));
    quiet(&session).await;
    answers(&world.gate, "dug");
    ended(&session).await;
    let next = session.push("what now?".to_owned()).unwrap();
    assert_eq!(next.outcome().await, ItemOutcome::Completed(turn(2)));
    let asked = world.outer.model.requests();
    assert_eq!(asked.len(), 3, "one before the stop, the one that it cut, and the next message's");
    assert!(!format!("{:?}", asked[2]).contains("dug"));
}

/// S9.1, S8.1: the same of a run below a background run, and of a question that was asked while the turn ran.
#[tokio::test]
async fn a_question_below_a_background_run_is_decided_too() {
    let mut world = World::new();
    let leaf = world.inner.agent();
    let helper =
        Desk::new([Reply::default().and_call("leaf", json!({"task": "deeper"})), Reply::text("all dug")]);
    let middle = Agent::builder(helper.model.clone()).child(leaf.as_subagent("leaf", "digs deeper")).build();
    let mut outer = world.outer.model.gate();
    let session = world.chat(&middle).start();
    session.push("dig aside".to_owned()).unwrap();
    outer.request().await;
    let call = safepoint::message::ToolCall {
        id: "a".into(),
        name: "aside".into(),
        args: json!({"task": "dig"}).to_string(),
    };
    let mut second = world.outer.model.gate();
    outer.send(safepoint::model::Delta::CallReady(call));
    outer.send(safepoint::model::Delta::Ended(safepoint::model::Finish::Natural));
    second.request().await;
    world.gate.request().await;
    world.says("ask");
    let is_asked = |event: &SessionEvent| match event {
        SessionEvent::Run { event, .. } => matches!(&event.kind, EventKind::Child { event, .. }
            if matches!(&**event, EventKind::Fact(fact) if matches!(&**fact, Fact::ApprovalRequested(_)))),
        _ => false,
    };
    seen(&session, is_asked).await;
    let while_running = session.approvals().await;
    super::desk::answers(&second, "it digs");
    quiet(&session).await;
    let open = session.approvals().await;
    assert_eq!((&open, open[0].path.calls().len()), (&while_running, 2));
    assert_eq!(session.decide(&open[0].id, Decision::Approve).await, Ok(()));
    let whole = |event: &SessionEvent| {
        let SessionEvent::Background { event, .. } = event else { return false };
        matches!(&event.kind, EventKind::Child { path, event } if path.calls().len() == 1
            && matches!(&**event, EventKind::Fact(fact) if matches!(&**fact, Fact::Settled { .. })))
    };
    seen(&session, whole).await;
    assert_eq!((world.committed(), helper.model.requests().len()), (1, 2));
}

/// S9.1, S8.5: without a decision the question expires by itself; the background run's model learns of it and
/// continues.
#[tokio::test(start_paused = true)]
async fn a_question_of_a_background_run_expires() {
    let mut world = World::new();
    let limits = Limits::default().with_approval_expiry(Duration::from_secs(30));
    let agent = Agent::builder(world.inner.model.clone())
        .approvals(safepoint::approval::ApprovalMode::Ask(
            None,
            safepoint::approval::WithoutApprover::Suspend,
        ))
        .rule(safepoint::approval::Rule::on("ask", safepoint::approval::RuleAction::Ask))
        .tool(world.inner.tools.gated("ask"))
        .limits(limits)
        .build();
    let session = world.chat(&agent).start();
    world.begun(&session).await;
    world.says("ask");
    let asked = question(&session).await;
    ended(&session).await;
    assert_eq!(world.committed(), 0);
    let entries = format!("{:?}", world.inner.model.requests().last().unwrap().entries());
    assert!(entries.contains("expired"), "{entries}");
    assert!(session.approvals().await.is_empty());
    assert_eq!(session.decide(&asked.id, Decision::Approve).await, Err(DecideError::Expired));
}

/// S9.1, S8.2, S7.5: in a durable session another process decides through the store; of two that do, one
/// wins.
#[tokio::test]
async fn another_process_decides_for_a_background_run() {
    let mut world = World::new();
    let (store, id) = (Arc::new(MemoryStore::default()) as Arc<dyn Store>, SessionId::from("s"));
    let builder = world.chat(&world.inner.agent());
    let session = builder.open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
    world.begun(&session).await;
    world.says("ask");
    let asked = question(&session).await;
    let decision = |id: &ApprovalId, digest: &str| raw::store::NewDecision {
        id: id.clone(),
        digest: digest.to_owned(),
        principal: "someone else".into(),
        bytes: serde_json::to_vec(&Decision::Approve).unwrap(),
    };
    let taken = store.decide(&id, decision(&asked.id, &asked.digest)).await.unwrap();
    assert!(matches!(taken, raw::store::DecisionResult::Taken), "{taken:?}");
    assert_eq!(session.decide(&asked.id, Decision::Approve).await, Err(decided("someone else")));
    session.check_store();
    ended(&session).await;
    assert_eq!(world.committed(), 1);
}

/// S9.2, S8.3, S6.7: the end of the session takes the question back with its run; later answers are refused.
#[tokio::test]
async fn the_sessions_end_takes_the_question_of_a_background_run_back() {
    for stop in [SessionStop::now(), SessionStop::graceful(), SessionStop::at_turn_end()] {
        let mut world = World::new();
        let session = world.chat(&world.inner.agent()).start();
        world.begun(&session).await;
        world.says("ask");
        let asked = question(&session).await;
        session.stop(stop);
        let exit = session.done().await;
        assert!(exit.survivors().is_empty(), "{:?}", exit.survivors());
        let refused = session.decide(&asked.id, Decision::Approve).await;
        assert_eq!((refused, world.committed()), (Err(DecideError::RunEnded), 0));
    }
}

/// S6.10, S9.2, S3.6: a background run that is still alive when the session has had its time is named in the
/// exit.
#[tokio::test(start_paused = true)]
async fn the_exit_names_a_background_run_that_is_left() {
    let world = World::new();
    let inner = Desk::new([super::desk::pays()]);
    let agent = Agent::builder(inner.model.clone()).tool(inner.tools.deaf("pay")).build();
    let session = world.chat(&agent).start();
    session.push("dig aside".to_owned()).unwrap();
    inner.tools.gate().came(1).await;
    quiet(&session).await;
    session.stop(SessionStop::now());
    let exit = session.done().await;
    let named = exit.survivors();
    assert!(named.len() == 1 && named[0].starts_with("background run aside"), "{named:?}");
}
