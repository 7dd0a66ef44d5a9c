//! Many nodes on one server at once: S7.4, S7.13, S7.44, S7.48, S7.52.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{
    StreamExt as _,
    future::{join, join_all, join3, try_join_all},
};
use safepoint::{
    ids::SessionId,
    raw::store::{Among, ApprovalsToWithdraw, Durability, Lease, Liveness, NewSession, StopIntent, Write},
    store::{Error, NewNode, OwnerProcess, Store},
};
use safepoint_stores::PostgresStore;
use safepoint_testkit::{
    store_suite::{acquire, item, owner, record},
    wait::InTime as _,
};

use tokio::sync::mpsc;

use super::{
    cluster::Cluster,
    proxy::{Lost, Proxy},
    support::{fresh, open, options, schema, through, transactions, world},
};

const TTL: Duration = Duration::from_secs(60);

fn says(what: &str) -> Vec<Write> {
    vec![Write::Record(record(what))]
}

fn stop() -> StopIntent {
    StopIntent { bytes: b"stop".to_vec(), approvals: ApprovalsToWithdraw::Stay }
}

/// S7.4, S7.13: of eight nodes, each with a handle, that take the session of a dead one at once, one gets it, and the others learn of
/// it. What the dead one still writes changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_eight_takes_the_session_of_a_dead_node() {
    const ROUNDS: usize = 5;
    let (_, lives, outside) = world();
    let schema = schema();
    let handles: Vec<PostgresStore> = (0..8).map(|_| open(&schema, &outside)).collect();
    for round in 0..ROUNDS {
        let session = handles[0].create(NewSession::of(format!("session {round}"))).await.unwrap().id;
        lives.say(100, Liveness::Alive);
        let dead = acquire(&handles[0], &session, owner(100), TTL).await.unwrap();
        handles[0].append(&dead, says("by the first"), Durability::Durable).await.unwrap();
        lives.say(100, Liveness::Dead);
        let tries = (1..).zip(&handles).map(|(pid, store)| acquire(store, &session, owner(pid), TTL));
        let late = handles[0].append(&dead, says("late"), Durability::Durable);
        let (tries, _) = join(join_all(tries), late).await;
        let row = handles[0].open(&session).await.unwrap();
        let holder = row.holder.clone().unwrap().owner;
        for (pid, taken) in (1..).zip(tries) {
            match taken {
                Ok(lease) => assert_eq!((owner(pid), lease.epoch()), (holder.clone(), row.epoch)),
                Err(Error::Held(_, by)) => assert_eq!(by.owner, holder),
                Err(other) => panic!("{other}"),
            }
        }
        let refused = handles[0].append(&dead, says("later"), Durability::Durable).await;
        assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
        assert_eq!(handles[1].open(&session).await.unwrap(), row, "nothing was written");
    }
}

/// S7.13: the append of a node that is buried at the same moment is written before that, or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_beside_a_burial_comes_before_it_or_not_at_all() {
    const SESSIONS: usize = 40;
    let (_, lives, outside) = world();
    let [store, other] = fresh(outside);
    let node = store.join(NewNode::of(owner(1), TTL)).await.unwrap();
    let mut leases = Vec::new();
    for number in 0..SESSIONS {
        let session = store.create(NewSession::of(format!("session {number}"))).await.unwrap().id;
        leases.push(store.acquire(&session, &node).await.unwrap());
    }
    lives.say(1, Liveness::Dead);
    let write = |lease: Lease| {
        let store = Arc::clone(&store);
        async move {
            let mut written = 0;
            while store.append(&lease, says("beside it"), Durability::Recorded).await.is_ok() {
                written += 1;
            }
            (lease, written)
        }
    };
    let (written, buried) = join(join_all(leases.into_iter().map(write)), other.bury()).await;
    assert_eq!(buried.unwrap(), [node.id().clone()]);
    for (lease, written) in written {
        let row = other.open(lease.session()).await.unwrap();
        assert_eq!((row.head, row.holder), (written, None), "as many as were acknowledged");
    }
}

/// S7.48, S7.52: stops of all beside appends and pushes to each: none waits without end, and each has its intents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stops_of_many_beside_appends_get_through() {
    const SESSIONS: usize = 24;
    const STOPS: usize = 30;
    const APPENDS: u64 = 40;
    const DEADLOCKS: &str = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let cluster = Cluster::start(&[]);
    let [store, other] =
        [0, 1].map(|_| Arc::new(PostgresStore::open(&cluster.address()).unwrap()) as Arc<dyn Store>);
    let node = store.join(NewNode::of(OwnerProcess::here(), TTL)).await.unwrap();
    // In one order made, in another one taken.
    let ids: Vec<SessionId> =
        (0..SESSIONS).map(|number| format!("{}", number * 7 % SESSIONS).into()).collect();
    let mut leases = Vec::new();
    for id in &ids {
        store.create(NewSession::of(id.clone())).await.unwrap();
        leases.push(store.acquire(id, &node).await.unwrap());
    }
    let write = |(number, lease): (usize, &Lease)| {
        let (store, other, lease) = (Arc::clone(&store), Arc::clone(&other), lease.clone());
        async move {
            for place in 0..APPENDS {
                let class = if place % 2 == 0 { Durability::Recorded } else { Durability::Durable };
                store.append(&lease, says(&place.to_string()), class).await?;
                if place % 10 == 0 {
                    other.push(lease.session(), item(&format!("{number} {place}"), "more")).await?;
                }
            }
            Ok::<_, Error>(())
        }
    };
    let stops = |among: Among| {
        let other = Arc::clone(&other);
        async move {
            for _ in 0..STOPS {
                assert_eq!(other.ask_stops(among.clone(), stop()).await?, SESSIONS as u64);
            }
            Ok::<_, Error>(())
        }
    };
    let these = Among::These(ids.iter().rev().cloned().collect());
    let (appended, asked) = join(
        try_join_all(leases.iter().enumerate().map(write)),
        try_join_all([Among::Held, these].map(stops)),
    )
    .await;
    appended.unwrap();
    asked.unwrap();
    for lease in &leases {
        assert_eq!(store.stops(lease.session(), 0).await.unwrap().len(), 2 * STOPS);
        assert_eq!(store.open(lease.session()).await.unwrap().head, APPENDS);
    }
    let deadlocks: i64 = cluster.connect().await.query_one(DEADLOCKS, &[]).await.unwrap().get(0);
    assert_eq!(deadlocks, 0, "one waited for another in a circle");
}

/// How long each of these many changes took to reach the node, the shortest first.
async fn noticed_after(store: &PostgresStore, other: &dyn Store, times: u32) -> Vec<Duration> {
    /// Requests that take longer than the look that follows a change at once.
    const PAUSE: usize = 5;
    let session = store.create(NewSession::of("a")).await.unwrap().id;
    let lease = acquire(store, &session, owner(1), TTL).await.unwrap();
    let (sees, mut seen) = mpsc::unbounded_channel();
    let mut changes = store.changes(lease.node());
    let reader = tokio::spawn(async move {
        while let Some(Ok(change)) = changes.next().await {
            if sees.send((change.changes.stops, Instant::now())).is_err() {
                return;
            }
        }
    });
    let mut after = Vec::new();
    for _ in 0..times {
        for _ in 0..PAUSE {
            other.nodes().await.unwrap();
        }
        let number = other.ask_stop(&session, stop()).await.unwrap();
        let asked = Instant::now();
        loop {
            let (stops, at) = seen.recv().in_time("the change is noticed").await.unwrap();
            if stops >= number {
                after.push(at.saturating_duration_since(asked));
                break;
            }
        }
    }
    drop(seen);
    other.ask_stop(&session, stop()).await.unwrap();
    reader.in_time("the reader ends").await.unwrap();
    after.sort();
    after
}

/// S7.44, S1.5: a notice tells the node at once: sooner than its next look would.
#[tokio::test]
async fn a_notice_comes_before_the_next_look() {
    let (_, _, outside) = world();
    let schema = schema();
    let (store, other) = (open(&schema, &outside), open(&schema, &outside));
    let after = noticed_after(&store, &other, 21).await;
    // Without notices each would be found by the look that comes 200 ms after the one before.
    assert!(after[18] < Duration::from_millis(150), "{after:?}");
}

/// S7.44: where notices are lost, what others do is found by a look.
#[tokio::test]
async fn what_is_not_noticed_is_found_by_a_look() {
    let (_, _, outside) = world();
    let schema = schema();
    let proxy = Proxy::before(Cluster::shared().port, Lost::Answer);
    proxy.be_deaf();
    let store = PostgresStore::open_with(&through(&proxy), options(&schema, &outside)).unwrap();
    let other = open(&schema, &outside);
    let after = noticed_after(&store, &other, 11).await;
    assert!(after[10] > Duration::from_millis(100), "a notice came through: {after:?}");
}

/// S7.66: nothing is written for a session that no node holds, however often nodes look; what is due is written when it is named.
#[tokio::test]
async fn a_session_that_no_node_holds_is_not_written() {
    const LOOKS: usize = 20;
    let (_, _, outside) = world();
    let schema = schema();
    let store = open(&schema, &outside);
    let session = store.create(NewSession::of("rests")).await.unwrap().id;
    let lease = acquire(&store, &session, owner(1), TTL).await.unwrap();
    store.append(&lease, says("it has done something"), Durability::Durable).await.unwrap();
    safepoint_testkit::store_suite::give_back(&store, &lease).await.unwrap();
    let database = Cluster::shared().connect().await;
    let sql = format!("SELECT ctid::text || xmin::text FROM {schema}.sessions WHERE id = 'rests'");
    let written = async || database.query_one(&sql, &[]).await.unwrap().get::<_, String>(0);
    let before = written().await;
    let node = store.join(NewNode::of(owner(2), TTL)).await.unwrap();
    for _ in 0..LOOKS {
        store.beat(&node, 0).await.unwrap();
        assert!(store.bury().await.unwrap().is_empty());
        assert!(store.due(10, Vec::new()).await.unwrap().is_empty());
    }
    assert_eq!(written().await, before);
    store.push(&session, item("client", "something to do")).await.unwrap();
    let pushed = written().await;
    assert_eq!(store.due(10, Vec::new()).await.unwrap().len(), 1);
    assert!(pushed != before && written().await != pushed, "what is written can be seen");
}

/// S7.52, S7.1: appends of many sessions that wait share a statement, and its commit.
#[tokio::test]
async fn appends_that_wait_share_a_commit() {
    const SESSIONS: usize = 64;
    let cluster = Cluster::start(&["autovacuum = off"]);
    let store = PostgresStore::open(&cluster.address()).unwrap();
    let mut leases = Vec::new();
    for number in 0..SESSIONS {
        let session = store.create(NewSession::of(format!("session {number}"))).await.unwrap().id;
        leases.push(acquire(&store, &session, OwnerProcess::here(), TTL).await.unwrap());
    }
    let client = PostgresStore::open(&cluster.address()).unwrap();
    for lease in &leases {
        client.push(lease.session(), item("client", "do")).await.unwrap();
        client.ask_stop(lease.session(), stop()).await.unwrap();
    }
    // Each of its notices is a transaction, too: now all are given.
    client.close();
    let database = cluster.connect().await;
    let begins = [Write::TakeItem(1), Write::Label("running".into()), Write::AtWork];
    let ends = [Write::StopSeen(1), Write::Label("idle".into()), Write::AtRest];
    for (first, more) in [&[][..], &begins, &ends].into_iter().enumerate() {
        let before = transactions(&database).await;
        let writes = [says("said"), more.to_vec()].concat();
        let appends = leases.iter().map(|lease| store.append(lease, writes.clone(), Durability::Durable));
        for appended in join_all(appends).await {
            assert_eq!(appended.unwrap().first, first as u64);
        }
        let more = transactions(&database).await - before;
        assert!(more < SESSIONS as i64 / 3, "{more} transactions for {SESSIONS} appends");
    }
}

/// S7.52: looks of many sessions that wait share a statement, and each is answered as one alone is, also where there is no session.
#[tokio::test]
async fn looks_that_wait_share_a_statement() {
    const SESSIONS: usize = 64;
    const ASKED: &str = "SELECT coalesce(sum(xact_commit), 0)::bigint FROM pg_stat_database WHERE datname = current_database()";
    let cluster = Cluster::start(&["autovacuum = off"]);
    let store = PostgresStore::open(&cluster.address()).unwrap();
    let mut ids = Vec::new();
    for number in 0..SESSIONS {
        let session = store.create(NewSession::of(format!("session {number}"))).await.unwrap().id;
        for client in 0..number % 3 {
            store.ask_stop(&session, stop()).await.unwrap();
            store.push(&session, item(&client.to_string(), "said")).await.unwrap();
        }
        ids.push(session);
    }
    ids.insert(SESSIONS / 2, "nowhere".into());
    let (notices, stops, inboxes) = join3(
        join_all(ids.iter().map(|id| store.notice(id))),
        join_all(ids.iter().map(|id| store.stops(id, 1))),
        join_all(ids.iter().map(|id| store.inbox(id))),
    )
    .await;
    for (((id, notice), stops), inbox) in ids.iter().zip(notices).zip(stops).zip(inboxes) {
        let Some(number) = id.as_str().strip_prefix("session ") else {
            assert!(matches!((notice, stops), (Err(Error::NoSession(_)), Err(Error::NoSession(_)))));
            assert!(matches!(inbox, Err(Error::NoSession(_))), "{inbox:?}");
            continue;
        };
        let asked = number.parse::<u64>().unwrap() % 3;
        assert_eq!((notice.unwrap().stops, stops.unwrap().len() as u64), (asked, asked.saturating_sub(1)));
        let numbers: Vec<u64> = inbox.unwrap().iter().map(|item| item.number).collect();
        assert_eq!(numbers, (1..=asked).collect::<Vec<_>>(), "in order");
    }
    // The server counts what a connection has asked when that ends.
    store.close();
    let database = cluster.connect().await;
    let asked: i64 = database.query_one(ASKED, &[]).await.unwrap().get(0);
    let (before, after) = (3 * SESSIONS as i64, 4 * SESSIONS as i64);
    assert!((before..after).contains(&asked), "{asked} statements");
}

/// S7.52: appends of many sessions that wait share a statement, and one that cannot be done takes nothing of the others with it.
#[tokio::test]
async fn one_append_that_fails_takes_nothing_of_the_others_with_it() {
    const SESSIONS: usize = 64;
    let (_, _, outside) = world();
    let [store, other] = fresh(outside);
    let mut leases = Vec::new();
    for number in 0..SESSIONS {
        let session = store.create(NewSession::of(format!("session {number}"))).await.unwrap().id;
        leases.push(acquire(&*store, &session, owner(1), TTL).await.unwrap());
    }
    // This one's place is known to the other handle alone, and that one has no lease any more.
    other.append(&leases[7], says("by another handle"), Durability::Durable).await.unwrap();
    safepoint_testkit::store_suite::give_back(&*other, &leases[9]).await.unwrap();
    let appends = leases.iter().map(|lease| store.append(lease, says("said"), Durability::Durable));
    for (number, appended) in join_all(appends).await.into_iter().enumerate() {
        match number {
            7 => assert_eq!(appended.unwrap().first, 1),
            9 => assert!(matches!(appended, Err(Error::Fenced { .. })), "{appended:?}"),
            _ => assert_eq!(appended.unwrap().first, 0),
        }
    }
}
