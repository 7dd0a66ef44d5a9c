//! What the next owner begins by itself: nothing, but for a turn that only the end of its process has cut,
//! where its agent opted in.

use std::sync::Arc;

use futures_util::future::{BoxFuture, pending};
use safepoint::{
    Agent, SafePoints, Session, StopRequest,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, Rule, RuleAction, WithoutApprover},
    event::Fact,
    ids::SessionId,
    raw::{
        self, StoredStop,
        store::{ApprovalState, DecisionUse, Liveness},
    },
    session::{ChatPlanner, ExitReason, ItemOutcome, OnRestart, SessionEvent, SessionStop},
    store::Store,
    tool::EffectClass,
};
use safepoint_testkit::{
    script::Reply,
    store_suite::{Population, owner},
};

use super::{
    desk::{Desk, asks, is_fact, pays, turn},
    world::{mortals, seen},
};

/// A turn in its payment, whose process may die.
struct World {
    store: Arc<dyn Store>,
    lives: Population,
    desk: Desk,
    on_restart: OnRestart,
}

impl World {
    fn new(on_restart: OnRestart) -> Self {
        let (store, lives) = mortals();
        Self { store, lives, desk: Desk::new([pays(), Reply::text("paid"), Reply::text("more")]), on_restart }
    }

    fn agent(&self) -> Agent {
        let pay = self.desk.tools.gated("pay").with(|spec| spec.effect(EffectClass::Idempotent));
        Agent::builder(self.desk.model.clone())
            .approvals(ApprovalMode::Auto)
            .on_restart(self.on_restart)
            .tool(pay)
            .build()
    }

    async fn open(&self, pid: u32) -> Session<String> {
        let builder = Session::builder(ChatPlanner::new(self.agent()));
        builder.open(Arc::clone(&self.store), id(), owner(pid)).await.unwrap()
    }

    /// The first owner, in the payment, and an item that waits behind.
    async fn paying(&self) -> Session<String> {
        let session = self.open(1).await;
        session.push("pay".to_owned()).unwrap();
        self.desk.tools.gate().came(1).await;
        let waits = session.push("waits".to_owned()).unwrap();
        waits.recorded().await;
        session
    }
}

fn id() -> SessionId {
    SessionId::from("s")
}

async fn ended(session: &Session<String>, wanted: fn(ItemOutcome) -> bool) {
    seen(session, |event| matches!(event, SessionEvent::TurnEnded { fate, .. } if wanted(*fate))).await;
}

/// Nothing begins by itself: only what it is asked.
async fn nothing_begins(world: &World, session: &Session<String>) {
    // A session that would begin something has asked its planner before it handles this.
    session.approvals().await;
    let mut events = session.events();
    while let Some(event) = events.now() {
        let begins = matches!(event.kind, SessionEvent::Planning { .. } | SessionEvent::TurnStarted { .. });
        assert!(!begins, "{event:?}");
    }
    assert_eq!(world.desk.model.requests().len(), 1);
}

/// S7.8, S7.2: killed, and opened again: an agent that opted in continues where it was, and then comes what
/// waits. The continued turn can be stopped like any other, and is not restarted after that.
#[tokio::test]
async fn a_turn_that_was_cut_by_a_crash_continues_if_its_agent_opted_in() {
    let world = World::new(OnRestart::Resume);
    let first = world.paying().await;
    world.lives.say(1, Liveness::Dead);
    let next = world.open(2).await;
    world.desk.tools.gate().came(2).await;
    assert_eq!(next.current_turn().unwrap().turn, turn(1), "it continues by itself");
    // S7.8: it can be stopped like any other, also from another process.
    let bytes = StoredStop::Session(SessionStop::now().with_cause("not now")).to_bytes();
    let stop = raw::store::StopIntent { bytes, approvals: raw::store::ApprovalsToWithdraw::Stay };
    world.store.ask_stop(&id(), stop).await.unwrap();
    next.check_store();
    let exit = next.done().await;
    assert_eq!((exit.reason(), exit.cause()), (&ExitReason::Stopped, Some("not now")));
    assert_eq!(exit.open().unwrap().fate, ItemOutcome::Interrupted(turn(1)));
    let last = world.open(3).await;
    nothing_begins(&world, &last).await;
    world.desk.tools.gate().open_for_all();
    assert!(last.resume().await, "only an explicit resume");
    ended(&last, |fate| fate == ItemOutcome::Completed(turn(1))).await;
    ended(&last, |fate| fate == ItemOutcome::Completed(turn(2))).await;
    assert_eq!(world.desk.model.requests().len(), 3, "each model call once");
    drop(first);
}

/// S7.8: a shutdown is such an end, whether the session was dropped or its process died after.
#[tokio::test]
async fn a_turn_that_was_cut_by_a_shutdown_continues_if_its_agent_opted_in() {
    let world = World::new(OnRestart::Resume);
    let first = world.paying().await;
    let handle = first.handle();
    drop(first);
    handle.done().await;
    world.desk.tools.gate().open_for_all();
    let next = world.open(2).await;
    ended(&next, |fate| fate == ItemOutcome::Completed(turn(1))).await;
    ended(&next, |fate| fate == ItemOutcome::Completed(turn(2))).await;
}

/// S7.8: by default nothing runs by itself.
#[tokio::test]
async fn a_turn_that_was_cut_waits_by_default() {
    let world = World::new(OnRestart::Wait);
    let first = world.paying().await;
    world.lives.say(1, Liveness::Dead);
    let next = world.open(2).await;
    nothing_begins(&world, &next).await;
    drop(first);
}

/// S7.8, S7.2: a turn with a stop request is not restarted, whatever its agent opted in to. It was stopped
/// and settled, or asked only and then killed, or asked through the store without an owner; or a shutdown
/// came on top.
/// anomalyco/opencode#42960: after a stop, left and opened again, the task is still running.
#[tokio::test]
async fn a_stopped_turn_is_not_restarted() {
    #[derive(Clone, Copy, Debug)]
    enum How {
        Settled,
        AskedOnly,
        BeforeAnOwner,
        ThenShutDown,
    }
    for how in [How::Settled, How::AskedOnly, How::BeforeAnOwner, How::ThenShutDown] {
        let world = World::new(OnRestart::Resume);
        let mut first = Some(world.paying().await);
        let session = first.as_ref().unwrap().handle();
        let is_asked = |event: &SessionEvent| {
            super::desk::is_fact(event, |fact| matches!(fact, safepoint::event::Fact::StopRequested(_)))
        };
        match how {
            How::Settled => {
                session.stop(SessionStop::now());
                session.done().await;
            }
            How::AskedOnly | How::ThenShutDown => {
                session.stop_turn(None, StopRequest::at(SafePoints::AFTER_ALL_CALLS));
                seen(&session, is_asked).await;
                if let How::ThenShutDown = how {
                    first = None;
                    session.done().await;
                }
            }
            How::BeforeAnOwner => {
                world.lives.say(1, Liveness::Dead);
                let bytes = StoredStop::Turn(None, StopRequest::now()).to_bytes();
                let stop = raw::store::StopIntent { bytes, approvals: raw::store::ApprovalsToWithdraw::Stay };
                world.store.ask_stop(&id(), stop).await.unwrap();
            }
        }
        world.lives.say(1, Liveness::Dead);
        let next = world.open(2).await;
        nothing_begins(&world, &next).await;
        drop(first);
    }
}

/// A person who never decides.
struct Thinks;

impl Approver for Thinks {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'static, Decision> {
        Box::pin(pending())
    }
}

/// S8.4, S8.2, S7.2: killed while a person thinks about its question, so cut and not suspended; decided
/// between the kill and the resume. Nothing begins by itself, and an explicit resume continues with the
/// decision, once. What cannot be read is no yes.
#[tokio::test]
async fn a_decision_between_the_kill_and_the_resume_is_used() {
    decided_while_dead(serde_json::to_vec(&Decision::Approve).unwrap(), 2).await;
    decided_while_dead(b"garbage".to_vec(), 0).await;
}

/// How often the call enters and commits.
async fn decided_while_dead(bytes: Vec<u8>, lines: usize) {
    let world = World { desk: Desk::new([asks(), Reply::text("done")]), ..World::new(OnRestart::Wait) };
    world.desk.tools.gate().open_for_all();
    let open = async |pid: u32, approver: Option<Arc<dyn Approver>>| {
        let agent = Agent::builder(world.desk.model.clone())
            .approvals(ApprovalMode::Ask(approver, WithoutApprover::Suspend))
            .rule(Rule::on("ask", RuleAction::Ask))
            .tool(world.desk.tools.gated("ask"))
            .build();
        let builder = Session::<String>::builder(ChatPlanner::new(agent));
        builder.open(Arc::clone(&world.store), id(), owner(pid)).await.unwrap()
    };
    let first = open(1, Some(Arc::new(Thinks))).await;
    first.push("may I?".to_owned()).unwrap();
    seen(&first, |event| is_fact(event, |fact| matches!(fact, Fact::ApprovalRequested(_)))).await;
    world.lives.say(1, Liveness::Dead);
    let asked = world.store.approvals(&id()).await.unwrap().remove(0).asked;
    let yes = raw::store::NewDecision { id: asked.id, digest: asked.digest, principal: "ann".into(), bytes };
    world.store.decide(&id(), yes).await.unwrap();
    let next = open(2, None).await;
    nothing_begins(&world, &next).await;
    assert!(next.resume().await);
    ended(&next, |fate| fate == ItemOutcome::Completed(turn(1))).await;
    assert_eq!(world.desk.tools.ledger().lines().len(), lines);
    let rows = world.store.approvals(&id()).await.unwrap();
    assert!(
        matches!(&rows[..], [row] if matches!(row.state, ApprovalState::Decided { used: DecisionUse::Used, .. })),
        "asked once: {rows:?}"
    );
    drop(first);
}
