//! A placement by a queue: wakes go through it while it works, and no session waits for one that does not (S7.70).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::{
    FutureExt as _,
    future::{pending, select},
};
use safepoint::{
    raw::store::{NewItem, NewSession},
    store::{MemoryStore, Store as _},
};
use safepoint_nodes::{
    Here, NodeCapacity, Placement as _, PlacementError, QueuePlacement, TakeResult, Taker, Wake, WakeQueue,
    wake_due,
};
use safepoint_testkit::wait::{self, InTime as _};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
};

/// What a queue of these tests does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It brings each message to the one node.
    Bring,
    /// It takes each message, and brings none.
    Lose,
    /// It refuses each message.
    Refuse,
    /// It answers nothing.
    Hang,
    /// It takes messages, and cannot be received from.
    Deafen,
}

/// A queue that does as is said.
struct Faked {
    does: Mutex<Does>,
    /// What it was asked to bring.
    asked: Mutex<Vec<String>>,
    line: mpsc::UnboundedSender<Wake>,
    received: tokio::sync::Mutex<mpsc::UnboundedReceiver<Wake>>,
    left: Mutex<bool>,
}

#[derive(Clone)]
struct Queue(Arc<Faked>);

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.does.lock().unwrap().fmt(f)
    }
}

impl WakeQueue for Queue {
    fn send(&self, wakes: Vec<Wake>) -> BoxFuture<'_, Result<(), PlacementError>> {
        async move {
            let does = *self.0.does.lock().unwrap();
            self.0.asked.lock().unwrap().extend(wakes.iter().map(|wake| wake.session.to_string()));
            match does {
                Does::Bring => wakes.into_iter().for_each(|wake| self.0.line.send(wake).unwrap()),
                Does::Lose | Does::Deafen => {}
                Does::Refuse => return Err(PlacementError::new("the queue is away")),
                Does::Hang => pending().await,
            }
            Ok(())
        }
        .boxed()
    }

    fn receive(
        &self,
        here: Arc<Here>,
        _: NodeCapacity,
        leave: BoxFuture<'static, ()>,
    ) -> BoxFuture<'_, Result<(), PlacementError>> {
        async move {
            if *self.0.does.lock().unwrap() == Does::Deafen {
                return Err(PlacementError::new("nothing can be received"));
            }
            let mut received = self.0.received.lock().await;
            let gives = async {
                loop {
                    here.has_room().await;
                    here.give(received.recv().await.unwrap()).await;
                }
            };
            select(leave, Box::pin(gives)).await;
            *self.0.left.lock().unwrap() = true;
            Ok(())
        }
        .boxed()
    }
}

/// Takes each session, counts that, and gives it back when it is let go.
#[derive(Debug, Default)]
struct Hands {
    takes: Mutex<BTreeMap<String, usize>>,
    let_go: Notify,
}

impl Taker for Hands {
    fn take(&self, wake: Wake) -> BoxFuture<'_, TakeResult> {
        async move {
            *self.takes.lock().unwrap().entry(wake.session.to_string()).or_default() += 1;
            self.let_go.notified().await;
            TakeResult::Released
        }
        .boxed()
    }
}

struct Served {
    queue: Queue,
    placement: Arc<QueuePlacement>,
    hands: Arc<Hands>,
    leave: Arc<Notify>,
    task: JoinHandle<()>,
}

async fn served(does: Does, room: usize) -> Served {
    let (line, received) = mpsc::unbounded_channel();
    let faked = Faked {
        does: Mutex::new(does),
        asked: Mutex::default(),
        line,
        received: received.into(),
        left: Mutex::default(),
    };
    let queue = Queue(Arc::new(faked));
    let placement = Arc::new(QueuePlacement::new(queue.clone()));
    let (hands, leave) = (Arc::<Hands>::default(), Arc::<Notify>::default());
    let capacity = NodeCapacity { pools: Vec::new(), room, lease: Duration::from_secs(4) };
    let (place, taker, left) = (Arc::clone(&placement), Arc::clone(&hands), Arc::clone(&leave));
    let begun = Arc::<Notify>::default();
    let begins = Arc::clone(&begun);
    let task = tokio::spawn(async move {
        let serves = place.serve(taker, capacity, async move { left.notified().await }.boxed());
        begins.notify_one();
        serves.await.unwrap();
    });
    begun.notified().in_time("it is served").await;
    Served { queue, placement, hands, leave, task }
}

impl Served {
    async fn wake(&self, sessions: &[&str]) {
        self.placement.wake(sessions.iter().map(|name| Wake::of(*name)).collect()).await.unwrap();
    }

    fn does(&self, does: Does) {
        *self.queue.0.does.lock().unwrap() = does;
    }

    fn asked(&self) -> Vec<String> {
        self.queue.0.asked.lock().unwrap().clone()
    }

    async fn taken(&self, all: &[(&str, usize)]) {
        let all: BTreeMap<String, usize> =
            all.iter().map(|(name, times)| ((*name).to_owned(), *times)).collect();
        let look = || {
            let takes = self.hands.takes.lock().unwrap().clone();
            if takes == all { Ok(()) } else { Err(takes) }
        };
        wait::so(format_args!("{all:?} are taken"), look).await;
    }

    fn failure(&self) -> Option<String> {
        self.placement.failure().borrow().as_ref().map(ToString::to_string)
    }
}

/// S7.61, S7.70: a queue that works brings each wake, and one that comes twice is taken once.
#[tokio::test(start_paused = true)]
async fn a_queue_that_works_brings_what_it_is_asked_for() {
    let served = served(Does::Bring, 4).await;
    served.wake(&["a", "b"]).await;
    served.wake(&[]).await;
    served.taken(&[("a", 1), ("b", 1)]).await;
    assert_eq!(served.asked(), ["a", "b"]);
    assert_eq!(served.placement.wanted(), usize::MAX, "others take what this node cannot");
    served.queue.0.line.send(Wake::of("a")).unwrap();
    served.queue.0.line.send(Wake::of("c")).unwrap();
    served.taken(&[("a", 1), ("b", 1), ("c", 1)]).await;
    assert_eq!(served.failure(), None);
}

/// S7.70: what cannot be put into the queue is taken by the node that found it, as far as it has room; the queue is left alone for a
/// while, and used again once it is back.
#[tokio::test(start_paused = true)]
async fn what_a_queue_refuses_is_taken_by_the_node_that_found_it() {
    let served = served(Does::Refuse, 2).await;
    served.wake(&["a"]).await;
    served.taken(&[("a", 1)]).await;
    assert_eq!(served.failure().as_deref(), Some("the queue is away"));
    assert_eq!(served.placement.wanted(), 1, "what it has no room for is left to others");
    served.wake(&["b", "c"]).await;
    served.taken(&[("a", 1), ("b", 1)]).await;
    assert_eq!(served.asked(), ["a"], "the queue is left alone");
    served.does(Does::Lose);
    tokio::time::advance(Duration::from_secs(5)).await;
    served.wake(&["d"]).await;
    assert_eq!(served.asked().last().unwrap(), "d");
    assert_eq!((served.failure(), served.placement.wanted()), (None, usize::MAX));
}

/// S7.61, S7.70: a queue that is back is known to be back, although nothing new is sent: what it did not take is sent again, every five
/// seconds until it takes it.
#[tokio::test(start_paused = true)]
async fn a_queue_is_known_to_be_back_by_what_it_did_not_take() {
    let served = served(Does::Refuse, 1).await;
    served.wake(&["a", "b"]).await;
    served.taken(&[("a", 1)]).await;
    let passes = || tokio::time::sleep(Duration::from_secs(6));
    passes().await;
    assert_eq!(served.asked(), ["a", "b", "a"], "it is tried again");
    assert!(served.failure().is_some());
    served.does(Does::Bring);
    passes().await;
    assert_eq!(served.failure(), None, "it is back");
    assert_eq!(served.asked(), ["a", "b", "a", "a"]);
    served.taken(&[("a", 1)]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(served.asked().len(), 4, "it is not sent any more");
}

/// S7.70: a queue that does not answer delays nothing for longer than two seconds.
#[tokio::test(start_paused = true)]
async fn a_queue_that_does_not_answer_is_waited_for_two_seconds() {
    let served = served(Does::Hang, 2).await;
    let asked = tokio::time::Instant::now();
    served.wake(&["a"]).await;
    assert_eq!(asked.elapsed().as_secs(), 2);
    served.wake(&["b"]).await;
    assert_eq!(asked.elapsed().as_secs(), 2, "it is away");
    served.taken(&[("a", 1), ("b", 1)]).await;
}

/// S7.70: a session that is found due again, though it is in the queue, is taken by the node that finds it.
#[tokio::test(start_paused = true)]
async fn what_a_queue_loses_is_taken_when_it_is_found_again() {
    let served = served(Does::Lose, 1).await;
    served.wake(&["a", "b"]).await;
    tokio::time::advance(Duration::from_secs(5)).await;
    served.wake(&["a", "c"]).await;
    served.taken(&[("a", 1)]).await;
    // There is no room for it here: it is for other nodes too.
    served.wake(&["b"]).await;
    assert_eq!(served.asked(), ["a", "b", "c", "b"]);
    served.hands.let_go.notify_one();
    wait::so("there is room", || served.placement.wanted() == usize::MAX).await;
    tokio::time::advance(Duration::from_secs(31)).await;
    served.wake(&["c"]).await;
    assert_eq!(served.asked(), ["a", "b", "c", "b", "c"], "it was in the queue too long ago");
}

/// S7.70: where nothing can be received, nothing is put into the queue, until it can be received again.
#[tokio::test(start_paused = true)]
async fn a_node_that_receives_nothing_takes_what_it_finds() {
    let served = served(Does::Deafen, 4).await;
    wait::so("it cannot receive", || served.failure().is_some()).await;
    served.wake(&["a"]).await;
    served.taken(&[("a", 1)]).await;
    assert_eq!((served.asked(), served.placement.wanted()), (Vec::new(), 3));
    served.does(Does::Bring);
    let passes = async || {
        tokio::time::advance(Duration::from_secs(1)).await;
        served.failure().is_none()
    };
    wait::asked("it receives again", passes).await;
    served.wake(&["b"]).await;
    served.taken(&[("a", 1), ("b", 1)]).await;
    assert_eq!(served.asked(), ["b"]);
}

/// S7.62, S7.70: a node that is full takes nothing out of the queue, and one that leaves neither.
#[tokio::test(start_paused = true)]
async fn what_there_is_no_room_for_stays_in_the_queue() {
    let served = served(Does::Bring, 1).await;
    served.wake(&["a"]).await;
    served.taken(&[("a", 1)]).await;
    served.wake(&["b", "c"]).await;
    served.taken(&[("a", 1)]).await;
    served.hands.let_go.notify_one();
    served.taken(&[("a", 1), ("b", 1)]).await;
    served.leave.notify_one();
    wait::so("it has left", || *served.queue.0.left.lock().unwrap()).await;
    served.hands.let_go.notify_one();
    served.task.in_time("the end of who leaves").await.unwrap();
    assert_eq!(served.hands.takes.lock().unwrap().len(), 2, "c is for others");
}

/// S7.70, S7.47: what is due is taken though the queue is away all the time.
#[tokio::test(start_paused = true)]
async fn what_is_due_is_taken_without_the_queue() {
    let served = served(Does::Hang, 10).await;
    let store = Arc::<MemoryStore>::default();
    for name in ["a", "b", "c"] {
        let session = store.create(NewSession::of(name)).await.unwrap().id;
        let item = NewItem { client_id: None, digest: "0".into(), bytes: b"hello".to_vec(), capacity: 10 };
        store.push(&session, item).await.unwrap();
    }
    let (looks, placement) = (Arc::clone(&store), Arc::clone(&served.placement));
    let task = tokio::spawn(async move {
        wake_due(&*looks, &[], &*placement, watch::Sender::new(()).subscribe(), pending()).await;
    });
    let passes = async || {
        tokio::time::advance(Duration::from_millis(100)).await;
        served.hands.takes.lock().unwrap().len() == 3
    };
    let began = tokio::time::Instant::now();
    wait::asked("all are taken", passes).await;
    assert!(began.elapsed() < Duration::from_secs(4) && !task.is_finished());
}
