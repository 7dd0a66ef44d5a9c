//! The code of others panics in the owner's hands: the session ends with an account, and is never just dead.

use std::{
    cell::Cell,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, Session, StopRequest,
    child::Subagent,
    ids::{SessionId, TurnId},
    message::UserMessage,
    receipt::CallStatus,
    session::{
        ChatPlanner, ExitReason, ItemOutcome, Plan, PlanContext, Planner, Policy, Push, SessionEvent,
        SessionExit, SessionStop, TurnPlan,
    },
    stop::Failure,
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::script::Reply;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    desk::{Desk, accounted, answers, turn},
    world::{chat, seen},
};

/// An item that cannot be copied, or cannot be let go.
#[derive(Debug, Serialize, Deserialize)]
struct Fragile {
    text: String,
    #[serde(skip)]
    armed: Arc<AtomicBool>,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum How {
    Copied,
    LetGo,
}

thread_local! {
    static SAFE: Cell<bool> = const { Cell::new(false) };
}

impl Fragile {
    fn new(how: How) -> Self {
        Self { text: "a".into(), armed: Arc::default(), how }
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(self.how != How::Copied || !self.armed.load(Ordering::SeqCst), "it cannot be copied");
        Self { text: self.text.clone(), armed: Arc::clone(&self.armed), how: self.how }
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        if self.how == How::LetGo && !SAFE.get() {
            assert!(!self.armed.swap(false, Ordering::SeqCst), "it cannot be let go");
        }
    }
}

/// One fragile item a turn.
struct Careful(Agent);

impl Planner<Fragile> for Careful {
    fn plan(&self, situation: PlanContext<Fragile>) -> BoxFuture<'_, Result<Plan, Failure>> {
        let take: Vec<_> = situation.waiting.iter().map(|waiting| waiting.id).collect();
        let input = vec![UserMessage::from("a")];
        let plan = TurnPlan { agent: self.0.clone(), input, take, drop: Vec::new() };
        Box::pin(async { Ok(Plan::Turn(plan)) })
    }
    fn steer(&self, item: &Fragile) -> UserMessage {
        item.text.as_str().into()
    }
}

fn failed<T>(exit: &SessionExit<T>, saying: &str) {
    assert!(
        matches!(exit.reason(), ExitReason::Failed(error) if error.code == "callback" && error.message.contains(saying)),
        "{exit:?}"
    );
}

/// S6.9, S6.10: an item whose copying panics ends the session with an error, and is handed out as unhandled.
#[tokio::test]
async fn an_item_that_cannot_be_copied_ends_the_session() {
    let desk = Desk::new([]);
    let session: Session<Fragile> = Session::builder(Careful(desk.agent())).start();
    let item = Fragile::new(How::Copied);
    item.armed.store(true, Ordering::SeqCst);
    let ticket = session.push(item).unwrap();
    let exit = session.done().await;
    failed(&exit, "it cannot be copied");
    assert_eq!((ticket.fate_now(), exit.unhandled().len()), (Some(ItemOutcome::Unhandled), 1));
    assert!(desk.model.requests().is_empty());
}

/// S6.9, S6.12: the same where it is taken back: its ticket has it.
#[tokio::test]
async fn an_item_that_cannot_be_copied_is_not_lost_when_it_is_taken_back() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session: Session<Fragile> = Session::builder(Careful(desk.agent())).start();
    let first = session.push(Fragile::new(How::Copied)).unwrap();
    gate.request().await;
    let second = Fragile::new(How::Copied);
    second.armed.store(true, Ordering::SeqCst);
    let second = session.push(second).unwrap();
    assert!(session.withdraw(second.id()).await.is_none());
    failed(&*session.done().await, "it cannot be copied");
    assert_eq!(
        (first.fate_now(), second.fate_now()),
        (Some(ItemOutcome::Interrupted(turn(1))), Some(ItemOutcome::Withdrawn))
    );
    assert!(second.take_back().is_some());
}

/// S6.9, S6.10: a panic in an unexpected place, the drop of an item: the session ends all the same, and later
/// items are unhandled.
#[tokio::test]
async fn an_item_that_cannot_be_let_go_ends_the_session() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let session: Session<Fragile> = Session::builder(Careful(desk.agent())).start();
    let first = Fragile::new(How::LetGo);
    let armed = Arc::clone(&first.armed);
    session.push(first).unwrap();
    gate.request().await;
    let second = session.push(Fragile::new(How::Copied)).unwrap();
    armed.store(true, Ordering::SeqCst);
    answers(&gate, "done");
    let exit = session.done().await;
    SAFE.set(true);
    failed(&exit, "it cannot be let go");
    assert_eq!((second.fate_now(), exit.unhandled().len()), (Some(ItemOutcome::Unhandled), 1));
    assert!(session.push(Fragile::new(How::Copied)).is_err(), "its door is shut");
}

/// Chat, except that `how` names the agent that resumes a turn.
struct Resumes {
    chat: ChatPlanner,
    how: fn() -> Option<Agent>,
}

impl Planner<String> for Resumes {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        self.chat.plan(situation)
    }
    fn steer(&self, item: &String) -> UserMessage {
        self.chat.steer(item)
    }
    fn resumes(&self, _turn: TurnId) -> Option<Agent> {
        (self.how)()
    }
}

/// S7.7, S5.3: a turn without a planner here that can resume it stays as it is, and a resume says so. A turn
/// whose agent panics ends the session and is still there; the next owner resumes it.
#[tokio::test]
async fn a_resume_callback_that_fails_loses_nothing() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let id = SessionId::from("s");
    let first = desk.chat().open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
    let item = first.push("a".to_owned()).unwrap();
    gate.request().await;
    first.stop(SessionStop::now());
    assert!(matches!(item.outcome().await, ItemOutcome::Interrupted(_)));
    first.done().await;
    let hows: [fn() -> Option<Agent>; 2] = [|| None, || panic!("no agent today")];
    for (how, panics) in hows.into_iter().zip([false, true]) {
        let planner = Resumes { chat: ChatPlanner::new(desk.agent()), how };
        let builder = Session::<String>::builder(planner);
        let next = builder.open(Arc::clone(&store), id.clone(), OwnerProcess::here()).await.unwrap();
        // Nothing is taken up, and that is what is answered.
        assert!(!next.resume().await);
        if !panics {
            assert!(!next.is_done());
            next.stop(SessionStop::at_turn_end());
        }
        let exit = next.done().await;
        if panics {
            failed(&exit, "no agent today");
        }
        let open = exit.open().unwrap();
        assert_eq!((open.turn, open.items.len()), (turn(1), 1));
        assert!(exit.unhandled().is_empty());
    }
    let last = desk.chat().open(Arc::clone(&store), id, OwnerProcess::here()).await.unwrap();
    assert!(last.resume().await);
    seen(&last, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
}

/// What a planner was asked.
struct Counting(ChatPlanner, Arc<AtomicUsize>);

impl Planner<String> for Counting {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.plan(situation)
    }
    fn steer(&self, item: &String) -> UserMessage {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.steer(item)
    }
}

/// S6.9, S6.7: a session that ends calls the planner no more: neither what a steer says nor what comes next.
#[tokio::test]
async fn an_ending_session_asks_no_planner() {
    let (desk, asked) = (Desk::new([]), Arc::new(AtomicUsize::new(0)));
    let planner = Counting(ChatPlanner::new(desk.agent()), Arc::clone(&asked));
    let session: Session<String> = Session::builder(planner).start();
    // No other task runs before this task waits: the stop is processed first, and then what came behind it.
    session.stop(SessionStop::now());
    let strategy_asked = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&strategy_asked);
    let tickets = [
        session.push(Push::new("steer".to_owned()).policy(Policy::steer())).unwrap(),
        session.push("plain".to_owned()).unwrap(),
        session
            .push_with("by strategy".to_owned(), move |_| {
                note.store(true, Ordering::SeqCst);
                Policy::Enqueue
            })
            .unwrap(),
    ];
    let exit = accounted(&session, &tickets).await;
    assert_eq!((exit.unhandled().len(), asked.load(Ordering::SeqCst)), (3, 0));
    assert!(!strategy_asked.load(Ordering::SeqCst), "a strategy of a session that ends is not asked");
}

/// S2.13, S9.1: what makes a child's input panics: its call fails, the model learns of it, and the turn
/// continues.
#[tokio::test]
async fn an_input_of_a_child_that_panics_fails_its_call() {
    let outer = Desk::new([
        Reply::default().and_call("helper", json!({"task": "dig"})),
        Reply::text("without it, then"),
    ]);
    let inner = Desk::new([]);
    let helper = inner.agent().as_subagent("helper", "helps").input(|_| panic!("no words"));
    let agent = Agent::builder(outer.model.clone()).child(helper).build();
    let session = chat(agent).start();
    let item = session.push("dig".to_owned()).unwrap();
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    let ended = seen(&session, |event| matches!(event, SessionEvent::TurnEnded { .. })).await;
    let SessionEvent::TurnEnded { receipt, .. } = ended else { unreachable!() };
    assert_eq!(receipt.calls[0].status, CallStatus::Failed);
    let entries = format!("{:?}", outer.model.requests().last().unwrap().entries());
    assert!(entries.contains("no words"), "{entries}");
    assert!(inner.model.requests().is_empty());
    session.stop(SessionStop::at_turn_end());
    accounted(&session, &[item]).await;
}

/// S9.3, S9.2, S6.7: stops through a session meet children: a switch to the tree while a child runs, a child
/// that ignores its stop, and one that is just starting.
mod children {
    use super::*;
    use safepoint::{SafePoints, SessionHandle, receipt::SideEffect, stop::Reach};
    use safepoint_testkit::ledger::Mark;

    /// A turn whose one call is a child run.
    fn helped(outer: &Desk, helper: Subagent) -> Session<String> {
        chat(Agent::builder(outer.model.clone()).child(helper).build()).start()
    }

    fn outer() -> Desk {
        Desk::new([Reply::default().and_call("helper", json!({"task": "dig"})), Reply::text("all done")])
    }

    async fn resumed(session: &SessionHandle<String>) {
        seen(session, |event| matches!(event, SessionEvent::TurnQuiet { .. })).await;
        assert!(session.resume().await);
        seen(session, |event| {
            matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
        })
        .await;
    }

    /// S9.3, S9.2: a stop of the root leaves a child running; switched to the tree in mid-flight it reaches
    /// the child at its own safe point; what was resumed repeats nothing.
    #[tokio::test]
    async fn a_late_switch_to_the_tree_reaches_a_running_child() {
        let (outer, inner) = (outer(), Desk::new([Reply::text("dug")]));
        inner.tools.gate().open_for_all();
        let mut gate = inner.model.gate();
        let session = helped(&outer, inner.agent().as_subagent("helper", "helps"));
        let item = session.push("dig".to_owned()).unwrap();
        gate.request().await;
        session.stop_turn(None, StopRequest::at(SafePoints::ANY)).asked().await;
        gate.send(safepoint::model::Delta::Text("I shall".into()));
        assert_eq!(item.fate_now(), None, "the parent waits for its call");
        session.stop_turn(None, StopRequest::at(SafePoints::ANY).with_reach(Reach::Tree)).asked().await;
        let call = safepoint::message::ToolCall { id: "p".into(), name: "pay".into(), args: "{}".into() };
        gate.send(safepoint::model::Delta::CallReady(call));
        gate.send(safepoint::model::Delta::Ended(safepoint::model::Finish::Natural));
        assert_eq!(item.outcome().await, ItemOutcome::Interrupted(turn(1)));
        assert!(inner.tools.ledger().lines().is_empty(), "its call did not begin");
        resumed(&session).await;
        assert_eq!(inner.tools.ledger().count(Mark::Commit), 1);
        assert_eq!((outer.model.requests().len(), inner.model.requests().len()), (2, 2));
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[item]).await;
    }

    /// S9.2, S2.7, S4.3: a child whose tool ignores its stop delays the session's end for its clean-up time,
    /// and its effect is reported as unknown.
    #[tokio::test(start_paused = true)]
    async fn a_deaf_child_ends_with_the_session() {
        let (outer, inner) = (outer(), Desk::new([super::super::desk::pays()]));
        let agent = Agent::builder(inner.model.clone()).tool(inner.tools.deaf("pay")).build();
        let session = helped(&outer, agent.as_subagent("helper", "helps"));
        let item = session.push("dig".to_owned()).unwrap();
        inner.tools.gate().came(1).await;
        let began = tokio::time::Instant::now();
        session.stop(SessionStop::now());
        let exit = accounted(&session, std::slice::from_ref(&item)).await;
        assert_eq!(
            (item.fate_now(), began.elapsed().as_secs()),
            (Some(ItemOutcome::Interrupted(turn(1))), 5)
        );
        let receipt = exit.open().unwrap().outcome.as_ref().unwrap().receipt().clone();
        let nested = receipt.calls[0].child.clone().unwrap().receipt.unwrap();
        assert_eq!(
            (nested.calls[0].status, nested.calls[0].effect),
            (CallStatus::Stopped, SideEffect::Unknown)
        );
    }

    /// S9.3, S2.1: a stop that comes while a child is just starting: one outcome, no model call of the
    /// child's; taken up, it begins once.
    #[tokio::test]
    async fn a_stop_meets_a_child_that_is_just_starting() {
        let (outer, inner) = (outer(), Desk::new([Reply::text("dug")]));
        let own: Arc<Mutex<Option<SessionHandle<String>>>> = Arc::default();
        let (it, stopped) = (Arc::clone(&own), AtomicBool::new(false));
        let helper = inner.agent().as_subagent("helper", "helps").input(move |_| {
            // Its call has started, and its run has not.
            let session = it.lock().unwrap().clone().unwrap();
            if !stopped.swap(true, Ordering::SeqCst) {
                session.current_turn().unwrap().run.stop(StopRequest::now());
            }
            "dig".into()
        });
        let session = helped(&outer, helper);
        own.lock().unwrap().replace(session.handle());
        let item = session.push("dig".to_owned()).unwrap();
        assert_eq!(item.outcome().await, ItemOutcome::Interrupted(turn(1)));
        assert!(inner.model.requests().is_empty());
        resumed(&session).await;
        assert_eq!((outer.model.requests().len(), inner.model.requests().len()), (2, 1));
        own.lock().unwrap().take();
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[item]).await;
    }
}
