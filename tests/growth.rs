//! What a turn costs in a long conversation, by counts: they do not depend on how busy a machine is.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, History, Model, Session,
    approval::ApprovalMode,
    ids::SessionId,
    message::ToolCall,
    model::{Conversation, Delta, DeltaStream, Finish, ModelSpec},
    session::{ChatPlanner, ItemOutcome, SessionStop},
    store::{OwnerProcess, Store},
    tool::{self, EffectClass},
};
use safepoint_stores::SqliteStore;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that were asked for so far.
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, and a count of what it is asked for.
struct Counting;

fn count(bytes: usize) {
    // Relaxed: a sum, and nothing else is read by it.
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

#[expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; each method only counts and hands on to the system's"
)]
// SAFETY: every method hands its arguments unchanged to `System`, which fulfils the contract of the trait.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Asks for one call, and answers when it has its result. It does not look at the history: what a request costs grows with the
/// conversation, and is not counted here.
#[derive(Clone, Default)]
struct Asks(Arc<AtomicUsize>);

impl Model for Asks {
    fn name(&self) -> &str {
        "asks"
    }

    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for Asks {
    fn stream(&mut self, _: &History) -> DeltaStream {
        // Relaxed: only this model counts, one request after the other.
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let said = if number.is_multiple_of(2) {
            let id = format!("c{number}").into();
            Delta::CallReady(ToolCall { id, name: "work".into(), args: "{}".into() })
        } else {
            Delta::Text("done".into())
        };
        stream::iter([Delta::Sent, Delta::Opened, said, Delta::Ended(Finish::Natural)].map(Ok)).boxed()
    }
}

/// The bytes allocated in the course of a turn, in the middle of as many as are counted.
async fn of_a_turn(session: &Session<String>) -> u64 {
    const COUNTED: usize = 25;
    let mut counts = Vec::new();
    for _ in 0..COUNTED {
        // Relaxed: a task that has not ended yet is counted with the next turn.
        let before = BYTES.load(Ordering::Relaxed);
        turn(session).await;
        counts.push(BYTES.load(Ordering::Relaxed) - before);
    }
    counts.sort_unstable();
    counts[COUNTED / 2]
}

async fn turn(session: &Session<String>) {
    let outcome = session.push("go".to_owned()).expect("an open session").outcome().await;
    assert!(matches!(outcome, ItemOutcome::Completed(_)), "{outcome:?}");
}

/// S12.43: no turn copies the conversation before it.
#[tokio::test]
async fn a_turn_costs_no_more_late_in_a_long_session_than_early() {
    const EARLY: usize = 100;
    const LATE: usize = 2000;
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("long.db")).unwrap());
    let work = tool::from_fn("work", "works", |_cx, (): ()| async { Ok("ok") })
        .with(|spec| spec.effect(EffectClass::ReadOnly));
    let agent = Agent::builder(Asks::default()).tool(work).approvals(ApprovalMode::Auto).build();
    let session = Session::builder(ChatPlanner::new(agent));
    let session = session.open(store, SessionId::from("long"), OwnerProcess::here()).await.unwrap();
    for _ in 0..EARLY {
        turn(&session).await;
    }
    let early = of_a_turn(&session).await;
    for _ in EARLY..LATE {
        turn(&session).await;
    }
    let late = of_a_turn(&session).await;
    drop(session.stop(SessionStop::at_turn_end()));
    session.done().await;
    assert!(late <= early + early / 4, "{early} bytes at turn {EARLY}, {late} at turn {LATE}");
}
