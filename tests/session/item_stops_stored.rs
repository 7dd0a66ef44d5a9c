//! One item is stopped through the store, by a process that does not have the session.

use std::sync::Arc;

use safepoint::{
    Agent, Session, StopRequest,
    approval::ApprovalMode,
    ids::SessionId,
    raw::{
        StoredStop, encode_item,
        store::{ApprovalState, Environment, ItemState, Liveness, Pushed},
        store_stop,
    },
    session::{
        ChatPlanner, IfUndelivered, ItemOutcome, OnRestart, PendingItems, Policy, Push, QueueAfterStop,
        SessionEvent, SessionStop,
    },
    steer::SteerTiming,
    store::{Error, Store},
    tool::EffectClass,
};
use safepoint_stores::{SqliteStore, sqlite::SqliteOptions};
use safepoint_testkit::{
    fault_store::{FaultStore, OperationFault},
    script::Reply,
    store_suite::{Population, Time, outside, owner},
    tool_gate::ToolGate,
    wait::{self, InTime as _},
};

use super::{
    desk::{Desk, Planning, accounted, answers, asks, one_after_the_other, pays, said, turn},
    dice::Dice,
    world::{mortals, seen},
};

use QueueAfterStop::{Continues, Holds};

/// A store as two processes see it, and who of them lives.
struct World {
    here: Arc<dyn Store>,
    there: Arc<dyn Store>,
    lives: Population,
    _folder: Option<tempfile::TempDir>,
}

impl World {
    fn memory() -> Self {
        let (store, lives) = mortals();
        Self { here: Arc::clone(&store), there: store, lives, _folder: None }
    }

    fn file() -> Self {
        let (folder, lives) = (tempfile::tempdir().unwrap(), Population::default());
        let open = || -> Arc<dyn Store> {
            let mut options = SqliteOptions::default();
            let Environment { clock, .. } = Environment::default();
            options.outside = Environment { clock, ..outside(&Time::default(), &lives) };
            Arc::new(SqliteStore::open_with(folder.path().join("s.db"), options).unwrap())
        };
        Self { here: open(), there: open(), lives: lives.clone(), _folder: Some(folder) }
    }

    fn each() -> [Self; 2] {
        [Self::memory(), Self::file()]
    }

    async fn open(&self, pid: u32, desk: &Desk) -> Session<String> {
        desk.chat().open(Arc::clone(&self.here), id(), owner(pid)).await.unwrap()
    }

    /// Stops an item from the other process.
    async fn stop(&self, item: u64, queue: QueueAfterStop) -> u64 {
        let stop = StoredStop::Item(item, StopRequest::now(), queue);
        store_stop(&*self.there, &id(), &stop).await.unwrap()
    }

    async fn unseen(&self) -> usize {
        self.there.stops(&id(), 0).await.unwrap().iter().filter(|stop| !stop.seen).count()
    }

    /// Until each stop is applied.
    async fn applied(&self) {
        wait::asked("the stops are applied", async || self.unseen().await == 0).await;
    }

    async fn waiting(&self) -> Vec<u64> {
        let rows = self.there.inbox(&id()).await.unwrap();
        rows.iter().filter(|row| row.state == ItemState::Waiting).map(|row| row.number).collect()
    }

    async fn questions(&self) -> Vec<ApprovalState> {
        self.there.approvals(&id()).await.unwrap().into_iter().map(|row| row.state).collect()
    }
}

fn id() -> SessionId {
    SessionId::from("s")
}

/// S6.20, S6.19: an owner that lives in another process is reached: an item that waits is withdrawn, the turn that has one is
/// stopped, what is over stays as it is, and what waits behind runs.
#[tokio::test]
async fn an_item_is_stopped_in_the_process_that_has_the_session() {
    for world in World::each() {
        let desk = Desk::new([]);
        let (mut one, mut two) = (desk.model.gate(), desk.model.gate());
        let session = world.open(1, &desk).await;
        let first = session.push("a".to_owned()).unwrap();
        one.request().await;
        let (waits, other) = (session.push("b".to_owned()).unwrap(), session.push("c".to_owned()).unwrap());
        other.recorded().await;
        assert_eq!(world.stop(2, Continues).await, 1);
        assert_eq!(world.waiting().await, [3], "it waits for nothing any more, whatever the owner does");
        assert_eq!(waits.outcome().in_time("its outcome").await, ItemOutcome::Withdrawn);
        assert_eq!(world.stop(1, Continues).await, 2);
        assert_eq!(first.outcome().in_time("its outcome").await, ItemOutcome::Interrupted(turn(1)));
        two.request().in_time("what waits behind it is asked").await;
        assert_eq!(world.stop(1, Holds).await, 3, "it is over");
        world.applied().await;
        answers(&two, "here");
        assert_eq!(other.outcome().await, ItemOutcome::Completed(turn(2)));
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[first, waits, other]).await;
        one_after_the_other(&session).await;
    }
}

/// S6.20, S5.3: where the caller wants it so, what waits behind a stopped item waits on for something newer.
#[tokio::test]
async fn a_stored_stop_of_an_item_can_hold_the_queue() {
    for world in World::each() {
        let desk = Desk::new([]);
        let (mut one, mut two) = (desk.model.gate(), desk.model.gate());
        let session = world.open(1, &desk).await;
        let first = session.push("a".to_owned()).unwrap();
        one.request().await;
        let behind = session.push("b".to_owned()).unwrap();
        behind.recorded().await;
        world.stop(1, Holds).await;
        assert_eq!(first.outcome().in_time("its outcome").await, ItemOutcome::Interrupted(turn(1)));
        world.applied().await;
        assert_eq!(session.queued().await.len(), 1, "nothing begins");
        let newer = session.push("c".to_owned()).unwrap();
        two.request().in_time("a newer item begins a turn").await;
        answers(&two, "here");
        behind.outcome().in_time("its turn").await;
        session.stop(SessionStop::now());
        accounted(&session, &[first, behind, newer]).await;
    }
}

/// S6.20, S6.19: an item that a turn is planned on is withdrawn.
#[tokio::test]
async fn an_item_that_is_planned_is_withdrawn() {
    for world in World::each() {
        let desk = Desk::new([]);
        let chat = desk.planned(Planning::Hangs);
        let session = chat.open(Arc::clone(&world.here), id(), owner(1)).await.unwrap();
        let item = session.push("a".to_owned()).unwrap();
        item.recorded().await;
        world.stop(1, Continues).await;
        assert_eq!(item.outcome().in_time("its outcome").await, ItemOutcome::Withdrawn);
        world.applied().await;
        session.stop(SessionStop::now());
        accounted(&session, &[item]).await;
        assert!(desk.model.requests().is_empty());
    }
}

/// S6.20, S8.3: the turn that waits for a decision and has the item is stopped, its question is withdrawn in the same moment, and what
/// waits behind runs.
#[tokio::test]
async fn a_suspended_turn_is_stopped_by_its_item() {
    for world in World::each() {
        let desk = Desk::new([asks(), Reply::text("behind")]);
        let session = world.open(1, &desk).await;
        let asked = session.push("may I?".to_owned()).unwrap();
        assert_eq!(asked.outcome().await, ItemOutcome::Suspended(turn(1)));
        let behind = session.push("b".to_owned()).unwrap();
        behind.recorded().await;
        world.stop(1, Continues).await;
        assert_eq!(world.questions().await, [ApprovalState::Withdrawn]);
        assert_eq!(behind.outcome().in_time("its outcome").await, ItemOutcome::Completed(turn(2)));
        assert_eq!(asked.final_outcome().await, ItemOutcome::Interrupted(turn(1)));
        world.applied().await;
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[asked, behind]).await;
    }
}

/// S6.20: with no owner, an item that waits is withdrawn at once, and no owner after that runs it.
#[tokio::test]
async fn an_item_that_waits_for_an_owner_runs_under_none() {
    for world in World::each() {
        let desk = Desk::new([Reply::text("here")]);
        world.open(1, &desk).await.stop(SessionStop::now());
        for text in ["a", "b"] {
            let item = encode_item(&text.to_owned(), Policy::Enqueue, None, 8).unwrap();
            world.there.push(&id(), item).await.unwrap();
        }
        world.stop(1, Continues).await;
        assert_eq!(world.waiting().await, [2]);
        let next = wait::asked("the next owner", async || {
            desk.chat().open(Arc::clone(&world.here), id(), owner(2)).await.ok()
        })
        .await;
        let completed = |event: &SessionEvent| {
            matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
        };
        seen(&next, completed).await;
        world.applied().await;
        next.stop(SessionStop::at_turn_end());
        assert_eq!(said(next.done().await.history()), ["b"]);
    }
}

/// S6.20, S8.3: with no owner, a turn that waits for a decision is over with its item: its question is withdrawn at once, and under the
/// next owner what waits behind runs, or waits on.
#[tokio::test]
async fn a_suspended_turn_without_an_owner_is_stopped_by_its_item() {
    for queue in [Continues, Holds] {
        for world in World::each() {
            let desk = Desk::new([asks(), Reply::text("behind")]);
            let first = world.open(1, &desk).await;
            let asked = first.push("may I?".to_owned()).unwrap();
            assert_eq!(asked.outcome().await, ItemOutcome::Suspended(turn(1)));
            first.push("b".to_owned()).unwrap().recorded().await;
            first.stop(SessionStop::at_turn_end());
            first.done().await;
            world.stop(1, queue).await;
            assert_eq!(world.questions().await, [ApprovalState::Withdrawn]);
            let next = world.open(2, &desk).await;
            behind(&world, &next, queue).await;
            assert_eq!(desk.model.requests().len(), if queue == Continues { 2 } else { 1 });
            assert!(desk.tools.ledger().lines().is_empty(), "what was asked about does not run");
        }
    }
}

/// What waits behind an item that was stopped runs, or waits on.
async fn behind(world: &World, next: &Session<String>, queue: QueueAfterStop) {
    let completed = |event: &SessionEvent| {
        matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. })
    };
    world.applied().await;
    if queue == Continues {
        seen(next, completed).await;
    } else {
        // A request that goes through the planner's queue: nothing was begun before it.
        assert_eq!(next.queued().await.len(), 1);
        assert!(next.current_turn().is_none());
    }
    next.stop(SessionStop::at_turn_end());
    next.done().in_time("the end").await;
}

fn restarting(desk: &Desk) -> Agent {
    let pay = desk.tools.gated("pay").with(|spec| spec.effect(EffectClass::Idempotent));
    Agent::builder(desk.model.clone())
        .approvals(ApprovalMode::Auto)
        .on_restart(OnRestart::Resume)
        .tool(pay)
        .build()
}

/// S6.20, S7.8: a turn that was cut by the end of its process is not restarted if its item was stopped, and what waits behind runs or
/// waits on; a stop of another item changes nothing of it.
#[tokio::test]
async fn a_turn_that_was_cut_is_stopped_by_its_item() {
    for (item, queue) in [(1, Continues), (1, Holds), (2, Continues)] {
        for world in World::each() {
            let desk = Desk::new([pays(), Reply::text("after"), Reply::text("more")]);
            let open = async |pid: u32| {
                let chat = Session::<String>::builder(ChatPlanner::new(restarting(&desk)));
                chat.open(Arc::clone(&world.here), id(), owner(pid)).await.unwrap()
            };
            let first = open(1).await;
            first.push("pay".to_owned()).unwrap();
            desk.tools.gate().came(1).await;
            first.push("b".to_owned()).unwrap().recorded().await;
            world.lives.say(1, Liveness::Dead);
            // The dead one does not look any more: its node is taken by the next.
            let stop = StoredStop::Item(item, StopRequest::now(), queue);
            world.there.bury().await.unwrap();
            store_stop(&*world.there, &id(), &stop).await.unwrap();
            let next = open(2).await;
            if item == 1 {
                behind(&world, &next, queue).await;
                assert_eq!(desk.model.requests().len(), if queue == Continues { 2 } else { 1 });
            } else {
                desk.tools.gate().open_for_all();
                seen(&next, |event| {
                    matches!(event, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(of), .. } if *of == turn(1))
                })
                .await;
                assert!(world.waiting().await.is_empty());
                next.stop(SessionStop::at_turn_end());
                next.done().in_time("the end").await;
            }
        }
    }
}

/// S6.20: where a program wants all to wait that it finds, a stop that holds nothing back begins nothing either.
#[tokio::test]
async fn a_stop_begins_nothing_that_a_program_holds() {
    let (world, desk) = (World::memory(), Desk::new([asks()]));
    let first = world.open(1, &desk).await;
    assert_eq!(first.push("may I?".to_owned()).unwrap().outcome().await, ItemOutcome::Suspended(turn(1)));
    first.push("b".to_owned()).unwrap().recorded().await;
    first.stop(SessionStop::at_turn_end());
    first.done().await;
    world.stop(1, Continues).await;
    let chat = desk.chat().pending_items(PendingItems::Wait);
    let next = chat.open(Arc::clone(&world.here), id(), owner(2)).await.unwrap();
    behind(&world, &next, Holds).await;
    assert_eq!(desk.model.requests().len(), 1);
}

/// S6.20: an item that is over stays so, and the turn of another one runs on, under its owner and under the next one.
#[tokio::test]
async fn an_item_that_is_over_stays_as_it_is() {
    for world in World::each() {
        let desk = Desk::new([Reply::text("done"), pays(), Reply::text("paid")]);
        let session = world.open(1, &desk).await;
        let first = session.push("a".to_owned()).unwrap();
        assert_eq!(first.outcome().await, ItemOutcome::Completed(turn(1)));
        let second = session.push("pay".to_owned()).unwrap();
        desk.tools.gate().came(1).await;
        world.stop(1, Continues).await;
        world.applied().await;
        desk.tools.gate().open_for_all();
        assert_eq!(second.outcome().await, ItemOutcome::Completed(turn(2)));
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[first, second]).await;
    }
}

/// S6.20, S8.3: a stop of an item whose turn ends while the stop is written leaves the question of the next turn open.
#[tokio::test]
async fn the_stop_of_an_item_leaves_the_question_of_a_later_turn() {
    for world in World::each() {
        let desk = Desk::new([pays(), Reply::text("paid"), asks()]);
        let session = world.open(1, &desk).await;
        let first = session.push("pay".to_owned()).unwrap();
        desk.tools.gate().came(1).await;
        let second = session.push("may I?".to_owned()).unwrap();
        second.recorded().await;
        let look = ToolGate::shut();
        let held =
            Arc::new(FaultStore::unarmed(Arc::clone(&world.there), OperationFault::Held(look.clone())));
        held.arm_named("approvals", 0);
        let stops = tokio::spawn(async move {
            store_stop(&*held, &id(), &StoredStop::Item(1, StopRequest::now(), Continues)).await
        });
        look.came(1).in_time("the look for its questions").await;
        desk.tools.gate().let_pass(1);
        assert_eq!(first.outcome().await, ItemOutcome::Completed(turn(1)));
        assert_eq!(second.outcome().in_time("the question").await, ItemOutcome::Suspended(turn(2)));
        look.open_for_all();
        stops.in_time("the stop").await.unwrap().unwrap();
        world.applied().await;
        assert_eq!(world.questions().await, [ApprovalState::Open]);
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[first, second]).await;
    }
}

/// S6.20: an item that there never was is an error, and stops no later one that gets its number.
#[tokio::test]
async fn an_item_that_there_never_was_is_an_error() {
    for world in World::each() {
        let desk = Desk::new([Reply::text("done")]);
        let session = world.open(1, &desk).await;
        let stop = StoredStop::Item(1, StopRequest::now(), Continues);
        let refused = store_stop(&*world.there, &id(), &stop).await;
        assert!(matches!(refused, Err(Error::ItemElsewhere(1))), "{refused:?}");
        assert!(world.there.stops(&id(), 0).await.unwrap().is_empty());
        let item = session.push("a".to_owned()).unwrap();
        assert_eq!(item.outcome().await, ItemOutcome::Completed(turn(1)));
    }
}

/// S6.20, S6.15: a steer that waits with its turn for a decision is withdrawn, and the turn waits on.
#[tokio::test]
async fn a_steer_of_a_suspended_turn_is_withdrawn() {
    for world in World::each() {
        let desk = Desk::new([asks()]);
        let session = world.open(1, &desk).await;
        let asked = session.push("may I?".to_owned()).unwrap();
        assert_eq!(asked.outcome().await, ItemOutcome::Suspended(turn(1)));
        let policy = Policy::Steer(SteerTiming::NextRequest, IfUndelivered::Queue);
        let steer = session.push(Push::new("steer".to_owned()).policy(policy)).unwrap();
        steer.recorded().await;
        world.stop(2, Continues).await;
        assert_eq!(steer.outcome().in_time("its outcome").await, ItemOutcome::Withdrawn);
        world.applied().await;
        assert_eq!(world.questions().await, [ApprovalState::Open], "its turn is not meant");
        session.stop(SessionStop::at_turn_end());
        accounted(&session, &[asked, steer]).await;
    }
}

/// S6.20: a stop right behind a push, both through the store: whatever the owner has done with the item by then, it has not run when
/// the stop is applied, or its turn is stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_right_behind_a_push_reaches_the_item() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let (world, desk) = (World::memory(), Desk::new([pays(), pays()]));
        let session = world.open(1, &desk).await;
        let item = encode_item(&"pay".to_owned(), Policy::Enqueue, None, 8).unwrap();
        let pushed = world.there.push(&id(), item).await.unwrap();
        assert_eq!(pushed, Pushed::Accepted(1));
        for _ in 0..dice.below(40) {
            tokio::task::yield_now().await;
        }
        world.stop(1, Continues).await;
        world.applied().await;
        session.stop(SessionStop::at_turn_end());
        let exit = session.done().in_time(format_args!("seed {seed}: the end")).await;
        let fits = exit.open().is_none_or(|open| matches!(open.fate, ItemOutcome::Interrupted(_)));
        assert!(fits && exit.unhandled().is_empty(), "seed {seed}");
        let committed = desk.tools.ledger().lines().len();
        assert!(committed <= 1, "seed {seed}: the payment was made");
    }
}
