//! Wakes of one process: each session is taken once at a time, within its room, and waking it while it is taken loses nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::FutureExt as _;
use safepoint_nodes::{Here, NodeCapacity, Placement, TakeResult, Taker, Wake};
use safepoint_testkit::wait::{self, InTime as _};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};

/// Takes what comes, and keeps each until the test lets it go.
#[derive(Debug, Default)]
struct Hands {
    /// How many takes of each session run, and how many ever began.
    takes: Mutex<BTreeMap<String, (usize, usize)>>,
    most: Mutex<usize>,
    changed: watch::Sender<()>,
    /// Lets one take go, whichever.
    let_go: Notify,
}

impl Taker for Hands {
    fn take(&self, wake: Wake) -> BoxFuture<'_, TakeResult> {
        async move {
            let name = wake.session.to_string();
            {
                let mut takes = self.takes.lock().unwrap();
                let take = takes.entry(name.clone()).or_default();
                *take = (take.0 + 1, take.1 + 1);
                assert_eq!(take.0, 1, "{name} is taken beside itself");
                let now: usize = takes.values().map(|take| take.0).sum();
                let mut most = self.most.lock().unwrap();
                *most = now.max(*most);
            }
            self.changed.send_replace(());
            self.let_go.notified().await;
            self.takes.lock().unwrap().get_mut(&name).unwrap().0 -= 1;
            self.changed.send_replace(());
            TakeResult::Released
        }
        .boxed()
    }
}

impl Hands {
    /// Waits until these sessions have been taken as often as is said, in all.
    async fn taken(&self, all: &[(&str, usize)]) {
        let is_so = |()| {
            let takes = self.takes.lock().unwrap();
            all.iter().all(|(name, times)| takes.get(*name).map_or(0, |take| take.1) == *times)
        };
        let mut changed = self.changed.subscribe();
        drop(changed.wait_for(|()| is_so(())).in_time(format_args!("{all:?} are taken")).await.unwrap());
    }
}

struct Served {
    here: Arc<Here>,
    hands: Arc<Hands>,
    leave: Arc<Notify>,
    task: JoinHandle<()>,
}

async fn served(room: usize) -> Served {
    let (here, hands, leave) = (Arc::<Here>::default(), Arc::<Hands>::default(), Arc::<Notify>::default());
    let capacity = NodeCapacity { pools: Vec::new(), room, lease: Duration::from_secs(4) };
    let (place, taker, left) = (Arc::clone(&here), Arc::clone(&hands), Arc::clone(&leave));
    let task = tokio::spawn(async move {
        place.serve(taker, capacity, async move { left.notified().await }.boxed()).await.unwrap();
    });
    wait::asked("it is served", async || here.wanted() == room).await;
    Served { here, hands, leave, task }
}

impl Served {
    async fn wake(&self, sessions: &[&str]) {
        self.here.wake(sessions.iter().map(|name| Wake::of(*name)).collect()).await.unwrap();
    }
}

/// S7.61: a doubled wake takes nothing twice, and one that comes while the session is taken is not lost.
#[tokio::test]
async fn a_session_that_is_woken_while_it_is_taken_is_taken_once_more_after_that() {
    let served = served(4).await;
    served.wake(&["a", "a"]).await;
    served.hands.taken(&[("a", 1)]).await;
    served.wake(&["a"]).await;
    served.wake(&["a", "b"]).await;
    served.hands.taken(&[("a", 1), ("b", 1)]).await;
    served.hands.let_go.notify_one();
    served.hands.taken(&[("a", 2), ("b", 1)]).await;
    assert_eq!(served.here.wanted(), 2);
}

/// S7.62: what has no room is not taken, and a node says how much more it wants.
#[tokio::test]
async fn no_more_sessions_are_taken_than_there_is_room_for() {
    let served = served(2).await;
    served.wake(&["a", "b", "c"]).await;
    served.hands.taken(&[("a", 1), ("b", 1)]).await;
    assert_eq!((served.here.wanted(), *served.hands.most.lock().unwrap()), (0, 2));
    served.hands.let_go.notify_one();
    wait::asked("there is room again", async || served.here.wanted() != 0).await;
    served.wake(&["c"]).await;
    served.hands.taken(&[("a", 1), ("b", 1), ("c", 1)]).await;
}

/// S7.61: who leaves takes nothing more, and waits for what it has.
#[tokio::test]
async fn who_leaves_takes_nothing_more_and_waits_for_what_it_has() {
    let served = served(4).await;
    served.wake(&["a"]).await;
    served.hands.taken(&[("a", 1)]).await;
    served.leave.notify_one();
    wait::asked("it takes nothing more", async || served.here.wanted() == 0).await;
    served.wake(&["a", "b"]).await;
    assert!(!served.task.is_finished());
    served.hands.let_go.notify_one();
    served.task.in_time("the end of who leaves").await.unwrap();
    assert_eq!(served.hands.takes.lock().unwrap().clone(), BTreeMap::from([("a".to_owned(), (0, 1))]));
}

/// S7.62: what a queue brings waits until there is room for it, and is left to others by who leaves.
#[tokio::test]
async fn what_is_given_waits_for_room() {
    let served = served(1).await;
    served.wake(&["a"]).await;
    served.hands.taken(&[("a", 1)]).await;
    served.here.is_full().in_time("it is full").await;
    served.here.give(Wake::of("a")).in_time("what is in hand needs no room").await;
    let mut gives = Box::pin(served.here.give(Wake::of("b")));
    assert!((&mut gives).now_or_never().is_none(), "there is no room");
    served.hands.let_go.notify_one();
    served.hands.taken(&[("a", 2)]).await;
    served.hands.let_go.notify_one();
    gives.in_time("there is room").await;
    served.hands.taken(&[("a", 2), ("b", 1)]).await;
    served.leave.notify_one();
    wait::asked("it takes nothing more", async || served.here.wanted() == 0).await;
    assert!(
        served.here.has_room().now_or_never().is_none()
            && served.here.give(Wake::of("c")).now_or_never().is_none()
    );
}
