//! Background runs that end with their process: none is resumed, and the person and the model learn of each.

use std::sync::Arc;

use safepoint::{
    Agent, Session, Steer,
    event::Fact,
    ids::SessionId,
    message::UserMessage,
    model::{Delta, Finish},
    raw::store::Liveness,
    session::{ChatPlanner, Fork, ItemOutcome, LostRun, Policy, Push, SessionEvent, SessionStop},
    steer::SteerOutcome,
    store::{MemoryStore, Store},
};
use safepoint_testkit::{
    script::Reply,
    scripted::ModelGate,
    store_suite::{Population, owner},
};
use serde_json::json;

use super::{
    desk::{Desk, answers, is_fact, pays, said, turn},
    world::{mortals, seen},
};

/// A session whose first turn begins a run in the background, which is in the midst of a payment.
struct World {
    store: Arc<dyn Store>,
    lives: Population,
    outer: Desk,
    inner: Desk,
}

impl World {
    fn new(outer: impl IntoIterator<Item = Reply>) -> Self {
        let (store, lives) = mortals();
        let begins = Reply::default().and_call("aside", json!({"task": "dig"}));
        let outer = Desk::new(std::iter::once(begins).chain(outer));
        Self { store, lives, outer, inner: Desk::new([pays(), Reply::text("dug")]) }
    }

    async fn open(&self, pid: u32) -> Session<String> {
        let aside = self.inner.agent().as_subagent("aside", "digs aside").background();
        let agent = Agent::builder(self.outer.model.clone()).child(aside).build();
        let builder = Session::builder(ChatPlanner::new(agent));
        builder.open(Arc::clone(&self.store), SessionId::from("s"), owner(pid)).await.unwrap()
    }

    /// The background run is paying, and its process dies.
    async fn dies_paying(&self) -> Session<String> {
        let first = self.open(1).await;
        assert_eq!(first.push("go".to_owned()).unwrap().outcome().await, ItemOutcome::Completed(turn(1)));
        self.inner.tools.gate().came(1).await;
        self.lives.say(1, Liveness::Dead);
        first
    }

    /// How often the model's last request says that something in the background has ended.
    fn notices(&self) -> usize {
        let requests = self.outer.model.requests();
        said(requests.last().unwrap()).iter().filter(|text| text.starts_with("[ended early")).count()
    }
}

fn lost(session: &Session<String>) -> Vec<LostRun> {
    let (mut lost, mut events) = (Vec::new(), session.events());
    while let Some(event) = events.now() {
        if let SessionEvent::BackgroundLost(one) = event.kind {
            lost.push(one);
        }
    }
    lost
}

async fn does(session: &Session<String>, text: &str) -> ItemOutcome {
    session.push(text.to_owned()).unwrap().outcome().await
}

/// S9.1, S7.3 / T4: the next owner tells the person at once, and the model with its next request, what died
/// and what of it may have happened: once, and no owner after that tells it again; nothing of it runs.
/// anthropics/claude-code#78151: background agents die silently, and their results still read as running.
#[tokio::test]
async fn what_died_in_the_background_is_reported_once() {
    let world = World::new([Reply::text("it digs")]);
    let first = world.dies_paying().await;
    let next = world.open(2).await;
    let runs = lost(&next);
    assert_eq!((runs.len(), runs[0].turn, &runs[0].unknown), (1, turn(1), &vec!["pay".to_owned()]));
    assert_eq!(does(&next, "then").await, ItemOutcome::Completed(turn(2)));
    assert_eq!(world.notices(), 1);
    let last = said(world.outer.model.requests().last().unwrap());
    let notice = last.iter().find(|text| text.starts_with("[ended early")).unwrap();
    assert!(notice.contains(&runs[0].path.to_string()) && notice.contains("(pay)"), "{notice}");
    assert!(notice.contains("may have happened"), "{notice}");
    assert_eq!(does(&next, "again").await, ItemOutcome::Completed(turn(3)));
    assert_eq!(world.notices(), 1, "once");
    next.stop(SessionStop::at_turn_end());
    next.done().await;
    let last = world.open(3).await;
    assert_eq!(lost(&last), []);
    assert_eq!(does(&last, "and again").await, ItemOutcome::Completed(turn(4)));
    assert_eq!(world.notices(), 1);
    assert_eq!(world.inner.tools.ledger().lines().len(), 1, "entered once, before the end of its process");
    drop(first);
}

/// S9.1, S5.3: a resumed turn gets the notice before its next request. An owner that dies before the model
/// has it leaves it to the next owner.
#[tokio::test]
async fn a_turn_that_continues_reports_before_its_next_request() {
    let world = World::new([]);
    let (mut begins, mut asked): (ModelGate, ModelGate) =
        (world.outer.model.gate(), world.outer.model.gate());
    let first = world.open(1).await;
    first.push("go".to_owned()).unwrap();
    begins.request().await;
    let call = safepoint::message::ToolCall {
        id: "c".into(),
        name: "aside".into(),
        args: json!({"task": "dig"}).to_string(),
    };
    begins.send(Delta::CallReady(call)).send(Delta::Ended(Finish::Natural));
    asked.request().await;
    world.inner.tools.gate().came(1).await;
    world.lives.say(1, Liveness::Dead);
    let second = world.open(2).await;
    assert_eq!(lost(&second).len(), 1);
    world.lives.say(2, Liveness::Dead);
    let third = world.open(3).await;
    assert_eq!(lost(&third).len(), 1, "the model does not know yet");
    let mut resumed = world.outer.model.gate();
    assert!(third.resume().await);
    resumed.request().await;
    assert_eq!(world.notices(), 1);
    answers(&resumed, "then not");
    seen(&third, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
    drop((first, second));
}

/// S7.21: a run in the background belongs to the session that began it, and so a fork says; what it was doing then is named.
#[tokio::test]
async fn a_fork_names_what_runs_in_the_background() {
    let world = World::new([Reply::text("it digs")]);
    let first = world.dies_paying().await;
    let forked = Fork::of("s").named("fork").create(Arc::clone(&world.store)).await.unwrap();
    assert_eq!((forked.turn, &forked.later[..]), (turn(1), &["pay {} (effects unknown)".to_owned()][..]));
    let chat = Session::builder(ChatPlanner::new(world.outer.agent()));
    let fork: Session<String> =
        chat.open(Arc::clone(&world.store), SessionId::from("fork"), owner(2)).await.unwrap();
    fork.stop(SessionStop::at_turn_end());
    let history = format!("{:?}", fork.done().await.history());
    for named in ["belongs to the session that this conversation continues", "pay {} (effects unknown)"] {
        assert!(history.contains(named), "{history}");
    }
    drop(first);
}

/// S9.1, S6.6: a turn that is rolled back takes its notice with it: the next turn gets the notice again.
#[tokio::test]
async fn what_a_forgotten_turn_was_given_is_given_again() {
    let world = World::new([Reply::text("it digs")]);
    let first = world.dies_paying().await;
    let next = world.open(2).await;
    let mut gate = world.outer.model.gate();
    let forgotten = next.push("forget this".to_owned()).unwrap();
    gate.request().await;
    assert_eq!(world.notices(), 1);
    let instead = next.push(Push::new("instead".to_owned()).policy(Policy::Rollback)).unwrap();
    assert_eq!(forgotten.outcome().await, ItemOutcome::RolledBack(turn(2)));
    assert_eq!(instead.outcome().await, ItemOutcome::Completed(turn(3)));
    assert_eq!(world.notices(), 1, "in the turn that stands");
    drop(first);
}

/// S9.1, S6.10: the next owner reports a run that the end of its session stopped, but not one that ended by
/// itself.
#[tokio::test]
async fn what_ended_by_itself_is_not_reported() {
    for ends_by_itself in [true, false] {
        let world = World::new([Reply::text("it digs")]);
        let first = world.open(1).await;
        assert_eq!(does(&first, "go").await, ItemOutcome::Completed(turn(1)));
        world.inner.tools.gate().came(1).await;
        if ends_by_itself {
            world.inner.tools.gate().open_for_all();
            let settled = |event: &SessionEvent| match event {
                SessionEvent::Background { event, .. } => match &event.kind {
                    safepoint::event::EventKind::Child { event, .. } => {
                        matches!(&**event, safepoint::event::EventKind::Fact(fact) if matches!(**fact, Fact::Settled { .. }))
                    }
                    _ => false,
                },
                _ => false,
            };
            seen(&first, settled).await;
        }
        first.stop(SessionStop::now());
        first.done().await;
        let next = world.open(2).await;
        assert_eq!(lost(&next).len(), usize::from(!ends_by_itself));
        assert_eq!(does(&next, "then").await, ItemOutcome::Completed(turn(2)));
        assert_eq!(world.notices(), usize::from(!ends_by_itself));
    }
}

/// S9.1, S7.1: the notice is a fact of the turn that got it, and says that it is not a person's.
#[tokio::test]
async fn a_notice_is_no_word_of_a_person() {
    let world = World::new([Reply::text("it digs")]);
    let first = world.dies_paying().await;
    let next = world.open(2).await;
    assert_eq!(does(&next, "then").await, ItemOutcome::Completed(turn(2)));
    let is_notice = |event: &SessionEvent| {
        is_fact(event, |fact| match fact {
            Fact::SteerTaken { steers, round: 1 } => {
                steers.iter().all(|steer| steer.is_notice() && steer.message != UserMessage::from("then"))
            }
            _ => false,
        })
    };
    seen(&next, is_notice).await;
    drop(first);
}

/// S6.5, S6.12, S9.1: a caller with the run's handle gives a steer the id of a notice or of an item. The
/// steer becomes neither: it is answered like any other, it is the person's, and no item is taken with it.
#[tokio::test]
async fn a_steer_is_not_what_its_id_says() {
    let desk = Desk::new([]);
    let mut gate = desk.model.gate();
    let store = Arc::new(MemoryStore::default());
    let session = desk.chat().open(store, SessionId::from("s"), owner(1)).await.unwrap();
    let item = session.push("go".to_owned()).unwrap();
    gate.request().await;
    let waiting = session.push("later".to_owned()).unwrap();
    assert_eq!(waiting.recorded().await, Some(2));
    let run = session.current_turn().unwrap().run;
    let steer = |id: &str| run.steer(Steer::new("and this").unwrap().id(id.to_owned()));
    let steers = [steer("notice:turn-1/root/x"), steer(&waiting.id().to_string())];
    answers(&gate, "soon");
    for steering in steers {
        assert_eq!(steering.outcome().await, SteerOutcome::Delivered { round: 2 });
    }
    assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    assert_eq!(waiting.outcome().await, ItemOutcome::Completed(turn(2)), "it was in the queue all the time");
    let are_a_person_s = |event: &SessionEvent| {
        is_fact(event, |fact| match fact {
            Fact::SteerTaken { steers, .. } => {
                steers.len() == 2 && steers.iter().all(|steer| !steer.is_notice() && steer.item().is_none())
            }
            _ => false,
        })
    };
    seen(&session, are_a_person_s).await;
}
