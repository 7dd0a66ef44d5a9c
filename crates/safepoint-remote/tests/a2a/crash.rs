//! The process dies while a peer works: the next one asks for the work by its name, and begins nothing twice.

use std::sync::Arc;

use safepoint::{
    Agent, Session, StopRequest,
    approval::{ApprovalMode, Decision, WithoutApprover},
    event::{EventKind, Fact},
    ids::SessionId,
    raw::store::{Environment, Liveness},
    session::{ChatPlanner, ItemOutcome, SessionEvent},
    store::{MemoryStore, OwnerProcess, Store},
};
use safepoint_testkit::{
    a2a::{A2aManners, A2aServer, A2aWire, Tells, WorkStep},
    store_suite::{Population, Time, outside},
    wait,
};
use tokio::runtime::{self, Runtime};

use super::world::{peer, server};

fn over(server: &A2aServer) -> Agent {
    Agent::remote(peer(server)).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend)).build()
}

struct World {
    store: Arc<dyn Store>,
    lives: Population,
}

impl World {
    fn new() -> Self {
        let lives = Population::default();
        let clock = Environment::default().clock;
        let store = MemoryStore::new(Environment { clock, ..outside(&Time::default(), &lives) });
        Self { store: Arc::new(store), lives }
    }

    async fn open(&self, pid: u32, server: &A2aServer) -> Session<String> {
        open(Arc::clone(&self.store), pid, over(server)).await
    }

    /// The same in a process of its own.
    async fn open_in(&self, process: &Process, server: &A2aServer) -> Session<String> {
        process.0.spawn(open(Arc::clone(&self.store), DEAD, over(server))).await.unwrap()
    }

    /// The process dies: what it did stops where it is, and says nothing to anybody.
    fn dies(&self, process: Process) {
        process.0.shutdown_background();
        self.lives.say(DEAD, Liveness::Dead);
    }
}

/// A process that is to die.
struct Process(Runtime);

impl Process {
    fn new() -> Self {
        Self(runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
    }
}

const DEAD: u32 = 1;

async fn open(store: Arc<dyn Store>, pid: u32, agent: Agent) -> Session<String> {
    let owner = OwnerProcess { pid, ..OwnerProcess::here() };
    Session::builder(ChatPlanner::new(agent)).open(store, SessionId::from("s"), owner).await.unwrap()
}

async fn seen(session: &Session<String>, wanted: impl Fn(&SessionEvent) -> bool) {
    let mut events = session.events();
    while let Some(event) = events.next().await {
        if wanted(&event.kind) {
            return;
        }
    }
    panic!("the session ended before what was waited for");
}

/// What the turn says until it is completed.
async fn said(session: &Session<String>) -> String {
    let (mut events, mut said) = (session.events(), String::new());
    while let Some(event) = events.next().await {
        match &event.kind {
            SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. } => return said,
            SessionEvent::Run { event, .. } => {
                if let EventKind::Text(text) = &event.kind {
                    said.push_str(text);
                }
            }
            _ => {}
        }
    }
    panic!("the session ended before its turn");
}

fn is_named(event: &SessionEvent) -> bool {
    let SessionEvent::Run { event, .. } = event else { return false };
    matches!(&event.kind, EventKind::Fact(fact) if matches!(&**fact, Fact::RemoteTaskNamed { .. }))
}

fn is_question(event: &SessionEvent) -> bool {
    let SessionEvent::Run { event, .. } = event else { return false };
    matches!(&event.kind, EventKind::Fact(fact) if matches!(&**fact, Fact::ApprovalRequested(_)))
}

/// S7.8, S10.3 / T11, mastra-ai/mastra#19869, #22202; langgenius/dify PR#39942: a process that took up a peer's work, and
/// never spoke with it before, ends it by the peer's own name: a stop is no flag of the process that began it.
#[tokio::test]
async fn work_that_was_taken_up_can_be_stopped() {
    let (world, process) = (World::new(), Process::new());
    let server = server(A2aManners::honest(A2aWire::V1));
    let dead = world.open_in(&process, &server).await;
    drop(dead.push("do it".to_owned()).unwrap());
    seen(&dead, is_named).await;
    server.came(1).await;
    world.dies(process);

    let next = world.open(2, &server).await;
    assert!(next.resume().await);
    wait::so("it is followed", || server.asked("SubscribeToTask") > 0).await;
    drop(next.stop_turn(None, StopRequest::now()));
    seen(&next, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Interrupted(_), .. }))
        .await;
    assert_eq!((server.begun(), server.asked("CancelTask")), (1, 1));
    assert_eq!(server.deeds(), ["began", "said half", "torn down"]);
}

/// S7.3, S8.2, S8.4: what a peer asks when the process ends is asked anew by the next one, and the answer goes on with the
/// same task.
#[tokio::test]
async fn a_question_outlives_the_process() {
    let plan = [WorkStep::Ask("which city?".into()), WorkStep::Say("it rains".into())];
    let (world, process) = (World::new(), Process::new());
    let server = server(A2aManners::honest(A2aWire::V1).plan(plan));
    let dead = world.open_in(&process, &server).await;
    drop(dead.push("weather?".to_owned()).unwrap());
    seen(&dead, is_question).await;
    world.dies(process);

    let next = world.open(2, &server).await;
    assert!(next.resume().await);
    seen(&next, is_question).await;
    let open = next.approvals().await;
    assert_eq!(open.len(), 1, "the one of the process that is gone is taken back");
    next.decide(&open[0].id, Decision::Respond { result: "Bern".into() }).await.unwrap();
    seen(&next, |event| matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }))
        .await;
    assert_eq!(server.begun(), 1, "one task");
    assert_eq!(server.deeds(), ["began", "got Bern", "said it rains", "ended"]);
}

/// S7.2, S7.3, S10.3, S10.42 / T10: the message is not sent again, and the answer that the peer comes to is the turn's, also where a
/// stream that is taken up again tells nothing of what was before.
#[tokio::test]
async fn work_that_outlives_the_process_is_asked_for_by_its_name() {
    for (wire, tells) in
        [(A2aWire::V1, Tells::Task), (A2aWire::V03, Tells::Task), (A2aWire::V1, Tells::Looks)]
    {
        let (world, process) = (World::new(), Process::new());
        let server = server(A2aManners::honest(wire).tells(tells));
        let dead = world.open_in(&process, &server).await;
        drop(dead.push("do it".to_owned()).unwrap());
        seen(&dead, is_named).await;
        server.came(1).await;
        world.dies(process);

        let next = world.open(2, &server).await;
        assert!(next.resume().await);
        wait::so("it is looked at", || wire != A2aWire::V03 || server.asked("GetTask") > 0).await;
        server.let_on();
        assert_eq!(said(&next).await, "half done", "{wire:?} {tells:?}");
        assert_eq!(server.begun(), 1, "one task, begun once");
        assert_eq!(server.asked("SendStreamingMessage") + server.asked("SendMessage"), 1);
        assert_eq!(server.deeds(), ["began", "said half", "said  done", "ended"]);
    }
}
