//! A server that crashes, is away, or is another one after a failover: S7.51, S7.53, S7.54.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use safepoint::{
    raw::store::{
        ChainCheck, Damage, DamageKind, Durability, Environment, Lease, Liveness, NewSession, Write,
    },
    store::{Error, NewNode, Store},
};
use safepoint_stores::{PostgresStore, postgres::PostgresOptions};
use safepoint_testkit::{
    store_suite::{acquire, item, owner, record},
    wait,
};

use super::cluster::Cluster;

const TTL: Duration = Duration::from_secs(60);

/// Processes of which nothing is known but what they write, with this margin.
fn strangers(margin: Duration) -> PostgresOptions {
    let mut options = PostgresOptions::default();
    options.outside = Environment {
        witness: Arc::new(|_| Liveness::Unknown),
        uptime: Arc::new(|_| None),
        margin,
        ..Environment::default()
    };
    options
}

fn open(cluster: &Cluster) -> PostgresStore {
    PostgresStore::open_with(&cluster.address(), strangers(TTL)).unwrap()
}

async fn held(store: &PostgresStore, id: String, pid: u32) -> Lease {
    let session = store.create(NewSession::of(id)).await.unwrap().id;
    acquire(store, &session, owner(pid), TTL).await.unwrap()
}

fn says(what: &str) -> Vec<Write> {
    vec![Write::Record(record(what))]
}

/// S7.51, S7.1: of what many write while the server crashes, what was acknowledged is there, once; and nothing is unknown in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_loses_and_repeats_nothing_durable() {
    const WRITERS: usize = 16;
    const APPENDS: usize = 150;
    const CRASHES: usize = 2;
    let cluster = Cluster::start(&[]);
    let store = open(&cluster);
    let mut leases = Vec::new();
    for number in 0..WRITERS {
        leases.push(held(&store, format!("session {number}"), 1).await);
    }
    let written = AtomicUsize::new(0);
    let write = |lease: &Lease| {
        let (store, written, lease) = (&store, &written, lease.clone());
        async move {
            for number in 0..APPENDS {
                let appended =
                    store.append(&lease, says(&number.to_string()), Durability::Durable).await.unwrap();
                assert_eq!(appended.first, number as u64);
                written.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for crash in 1..=CRASHES {
                let after = crash * WRITERS * APPENDS / (CRASHES + 1);
                wait::until("the appends continue", || written.load(Ordering::SeqCst) >= after);
                cluster.crash();
            }
        });
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(join_all(leases.iter().map(write)));
        });
    });
    for lease in &leases {
        let read = store.read(lease.session(), 0, 2 * APPENDS).await.unwrap();
        let said: Vec<_> = read.entries.into_iter().map(|entry| entry.record.unwrap()).collect();
        assert_eq!(said, (0..APPENDS).map(|number| record(&number.to_string())).collect::<Vec<_>>());
        assert!(matches!(store.check(lease.session()).await.unwrap(), ChainCheck::Intact(_)));
    }
}

/// S7.53: what was recorded and not durable may be lost with the server. Its owner learns it, and writes nothing more; the next owner
/// continues from what is there.
#[tokio::test]
async fn an_owner_that_knows_more_than_the_server_writes_nothing() {
    // So long is what is not durable in the server's memory alone.
    let cluster = Cluster::start(&["wal_writer_delay = 10s", "autovacuum = off"]);
    let store = open(&cluster);
    let lease = held(&store, "a".into(), 1).await;
    store.append(&lease, says("durable"), Durability::Durable).await.unwrap();
    store.append(&lease, says("recorded"), Durability::Recorded).await.unwrap();
    cluster.crash();
    for class in [Durability::Durable, Durability::Recorded] {
        let refused = store.append(&lease, says("more"), class).await.unwrap_err();
        let Error::Damaged(session, Damage { position, flaw }) = &refused else { panic!("{refused}") };
        assert_eq!((session.as_str(), *position, flaw), ("a", 1, &DamageKind::TailLost { head: 2 }));
    }
    let row = store.open(lease.session()).await.unwrap();
    assert_eq!(row.head, 1, "nothing was written");
    safepoint_testkit::store_suite::give_back(&store, &lease).await.unwrap();
    let next = acquire(&store, lease.session(), owner(2), TTL).await.unwrap();
    assert!(next.epoch() > lease.epoch());
    assert_eq!(store.append(&next, says("again"), Durability::Durable).await.unwrap().first, 1);
    assert!(matches!(store.check(lease.session()).await.unwrap(), ChainCheck::Intact(_)));
}

/// S7.54: while the server is away a request waits for a bounded time, and says then that nothing was done; once it is back, the same
/// store is used as before.
#[tokio::test]
async fn a_server_that_is_away_is_waited_for_and_comes_back() {
    let cluster = Cluster::start(&[]);
    let mut options = strangers(TTL);
    options.patience = Duration::from_secs(1);
    let store = PostgresStore::open_with(&cluster.address(), options).unwrap();
    let lease = held(&store, "a".into(), 1).await;
    cluster.control(&["stop", "--mode=fast"]);
    let began = Instant::now();
    let away = store.open(lease.session()).await.unwrap_err();
    assert!(matches!(&away, Error::Failed(_)) && away.to_string().contains("cannot be reached"), "{away}");
    let append = store.append(&lease, says("while it is away"), Durability::Durable).await.unwrap_err();
    assert!(!append.is_uncertain(), "{append}");
    let beat = store.beat(lease.node(), 0).await.unwrap_err();
    assert!(!beat.is_uncertain(), "{beat}");
    // Those that wait for one another wait no longer than two.
    let asked = Instant::now();
    let pushes = (0..20).map(|number| store.push(lease.session(), item(&number.to_string(), "more")));
    for pushed in join_all(pushes).await {
        assert!(matches!(&pushed, Err(error) if !error.is_uncertain()), "{pushed:?}");
    }
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    cluster.control(&["start"]);
    store.beat(lease.node(), 0).await.unwrap();
    assert_eq!(store.append(&lease, says("afterwards"), Durability::Durable).await.unwrap().first, 0);
}

/// How long it takes until the node is buried, from when the server could be used again.
async fn buried_after(store: &PostgresStore, node: &safepoint::ids::NodeId, since: Instant) -> Duration {
    let buried = wait::asked("the silent node is buried", || async {
        let buried = store.bury().await.unwrap();
        (!buried.is_empty()).then_some(buried)
    });
    assert_eq!(buried.await.first(), Some(node));
    since.elapsed()
}

/// S7.54: after a restart a node whose lease ended while the server was away is not buried before it could beat again; one that beats
/// is not buried at all.
#[tokio::test]
async fn after_a_restart_each_node_may_beat_before_it_is_buried() {
    const LEASE: Duration = Duration::from_secs(2);
    const MARGIN: Duration = Duration::from_millis(500);
    let cluster = Cluster::start(&[]);
    let store = PostgresStore::open_with(&cluster.address(), strangers(MARGIN)).unwrap();
    let silent = store.join(NewNode::of(owner(1), LEASE)).await.unwrap();
    let lively = store.join(NewNode::of(owner(2), LEASE)).await.unwrap();
    let joined = Instant::now();
    cluster.control(&["stop", "--mode=immediate"]);
    wait::so("both leases and the margin are over", || joined.elapsed() > LEASE + 2 * MARGIN).await;
    cluster.control(&["start"]);
    let back = Instant::now();
    // Another handle, that knows nothing of the gap.
    let other = PostgresStore::open_with(&cluster.address(), strangers(MARGIN)).unwrap();
    if back.elapsed() < LEASE {
        assert_eq!(other.bury().await.unwrap(), [], "it could not beat yet");
    }
    store.beat(&lively, 0).await.unwrap();
    let after = buried_after(&other, silent.id(), back).await;
    assert!(after > LEASE, "after {after:?}");
    store.beat(&lively, 0).await.unwrap();
    assert!(matches!(store.beat(&silent, 0).await, Err(Error::Buried(_))));
}

/// S7.54: a standby that is promoted is the same store, and as after a restart no node is buried early.
#[tokio::test]
async fn a_promoted_standby_is_the_same_store_after_a_gap() {
    const LEASE: Duration = Duration::from_secs(2);
    const MARGIN: Duration = Duration::from_millis(500);
    let cluster = Cluster::start(&[]);
    let store = PostgresStore::open_with(&cluster.address(), strangers(MARGIN)).unwrap();
    let lease = held(&store, "a".into(), 1).await;
    store.append(&lease, says("before"), Durability::Durable).await.unwrap();
    let node = store.join(NewNode::of(owner(2), LEASE)).await.unwrap();
    cluster.control(&["stop", "--mode=fast"]);
    std::fs::write(cluster.folder().join("data/standby.signal"), "").unwrap();
    cluster.control(&["start"]);
    let standby = store.append(&lease, says("to a standby"), Durability::Durable).await;
    assert!(
        matches!(&standby, Err(error) if !error.is_uncertain()),
        "a standby takes no writes: {standby:?}"
    );
    cluster.control(&["promote"]);
    let promoted = Instant::now();
    assert_eq!(store.append(&lease, says("after"), Durability::Durable).await.unwrap().first, 1);
    let after = buried_after(&store, node.id(), promoted).await;
    assert!(after > LEASE, "after {after:?}");
}
