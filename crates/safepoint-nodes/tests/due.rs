//! What wants an owner wakes the placement, whatever becomes of single wakes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::sync::{Arc, Mutex};

use futures_core::future::BoxFuture;
use futures_util::FutureExt as _;
use safepoint::{
    raw::store::{NewItem, NewSession},
    store::{MemoryStore, Store},
};
use safepoint_nodes::{NodeCapacity, Placement, PlacementError, Taker, Wake, wake_due};
use safepoint_testkit::wait;
use tokio::sync::{Notify, watch};

/// Notes what it is woken for, and fails or has no room as is said.
#[derive(Debug)]
struct Noted {
    wakes: Mutex<Vec<Vec<String>>>,
    is_away: Mutex<bool>,
    wanted: Mutex<usize>,
}

impl Placement for Noted {
    fn wake(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>> {
        {
            let mut wanted = self.wanted.lock().unwrap();
            *wanted = if *wanted == usize::MAX { *wanted } else { wanted.saturating_sub(wakes.len()) };
        }
        let names = wakes.iter().map(|wake| wake.session.to_string()).collect();
        self.wakes.lock().unwrap().push(names);
        let is_away = *self.is_away.lock().unwrap();
        let answer = if is_away { Err(PlacementError::new("the queue is away")) } else { Ok(()) };
        std::future::ready(answer).boxed()
    }

    fn serve(
        &self,
        _: Arc<dyn Taker>,
        _: NodeCapacity,
        _: BoxFuture<'static, ()>,
    ) -> BoxFuture<'_, Result<(), PlacementError>> {
        std::future::ready(Ok(())).boxed()
    }

    fn wanted(&self) -> usize {
        *self.wanted.lock().unwrap()
    }
}

impl Noted {
    fn of(wanted: usize) -> Arc<Self> {
        Arc::new(Self { wakes: Mutex::default(), is_away: Mutex::default(), wanted: Mutex::new(wanted) })
    }

    fn names(&self) -> Vec<String> {
        self.wakes.lock().unwrap().concat()
    }

    async fn until(&self, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        wait::asked("what is woken", async || if is_so(&self.names()) { Ok(()) } else { Err(self.names()) })
            .await;
        self.names()
    }
}

fn item() -> NewItem {
    NewItem { client_id: None, digest: "0".into(), bytes: b"hello".to_vec(), capacity: 10 }
}

async fn due_sessions(store: &MemoryStore, names: impl IntoIterator<Item = String>) {
    for name in names {
        let session = store.create(NewSession::of(name.as_str())).await.unwrap().id;
        store.push(&session, item()).await.unwrap();
    }
}

fn looks(store: &Arc<MemoryStore>, noted: &Arc<Noted>) -> Arc<Notify> {
    let leave = Arc::<Notify>::default();
    let (store, noted, left) = (Arc::clone(store), Arc::clone(noted), Arc::clone(&leave));
    drop(tokio::spawn(async move {
        wake_due(&*store, &[], &*noted, watch::Sender::new(()).subscribe(), left.notified()).await;
    }));
    leave
}

/// S7.61: a wake that the placement did not take is asked for again.
#[tokio::test]
async fn a_session_whose_wake_was_lost_is_woken_again() {
    let (store, noted) = (Arc::<MemoryStore>::default(), Noted::of(usize::MAX));
    *noted.is_away.lock().unwrap() = true;
    due_sessions(&store, ["a".to_owned()]).await;
    let leave = looks(&store, &noted);
    noted.until(|names| names.len() == 1).await;
    *noted.is_away.lock().unwrap() = false;
    let names = noted.until(|names| names.len() == 2).await;
    assert_eq!(names, ["a", "a"]);
    leave.notify_one();
}

/// S7.62: a node is asked for no more than it wants, so that others find the rest.
#[tokio::test]
async fn what_a_node_has_no_room_for_is_left_for_others() {
    let (store, noted) = (Arc::<MemoryStore>::default(), Noted::of(1));
    due_sessions(&store, ["a", "b", "c"].map(str::to_owned)).await;
    let leave = looks(&store, &noted);
    let names = noted.until(|names| !names.is_empty()).await;
    assert_eq!(names.len(), 1);
    assert_eq!(store.due(100, Vec::new()).await.unwrap().len(), 2);
    leave.notify_one();
}

/// S7.47: hundreds that are due at once are woken in one look.
#[tokio::test]
async fn one_look_wakes_all_that_is_due() {
    let (store, noted) = (Arc::<MemoryStore>::default(), Noted::of(usize::MAX));
    due_sessions(&store, (0..350).map(|at| format!("s{at}"))).await;
    let leave = looks(&store, &noted);
    let mut names = noted.until(|names| names.len() >= 350).await;
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 350);
    assert!(noted.wakes.lock().unwrap().iter().all(|wakes| wakes.len() <= 100));
    leave.notify_one();
}
