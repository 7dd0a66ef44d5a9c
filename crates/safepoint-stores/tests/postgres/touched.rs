//! What a look finds of what others did where no notice says it: S7.44.

use std::time::Duration;

use futures_util::StreamExt as _;
use safepoint::{
    ids::SessionId,
    raw::store::{ApprovalsToWithdraw, ChangeStream, NewSession, StopIntent},
    store::{NewNode, Store},
};
use safepoint_stores::PostgresStore;
use safepoint_testkit::{store_suite::owner, wait::InTime as _};

use super::{
    cluster::Cluster,
    support::{open, schema, world},
};

/// A stop of this session, as another process asks for it that dies before it notifies the node.
const STOP: &str = "SELECT ask_stop_1($1, 'stop', false, NULL, NULL)";

/// A node that holds two sessions and listens, and what it learns.
struct Listening {
    other: PostgresStore,
    changes: ChangeStream,
    _store: PostgresStore,
}

impl Listening {
    async fn begin(store: PostgresStore, other: PostgresStore) -> Self {
        const TTL: Duration = Duration::from_secs(60);
        let node = store.join(NewNode::of(owner(1), TTL)).await.unwrap();
        for id in ["a", "b"] {
            let session = store.create(NewSession::of(id)).await.unwrap().id;
            store.acquire(&session, &node).await.unwrap();
        }
        let mut listening = Self { other, changes: store.changes(&node), _store: store };
        // A second look knows what the first one saw.
        for _ in 0..2 {
            listening.finds_none_but_b().await;
        }
        listening
    }

    /// Waits until a look has found something else, and no other session than that.
    async fn finds_none_but_b(&mut self) {
        let stop = StopIntent { bytes: b"stop".to_vec(), approvals: ApprovalsToWithdraw::Stay };
        let number = self.other.ask_stop(&SessionId::from("b"), stop).await.unwrap();
        loop {
            let (session, stops) = self.next().await;
            assert_eq!(session, "b", "nothing was done to another one, as far as can be seen");
            if stops >= number {
                return;
            }
        }
    }

    /// The next session that changed, and how many stops it had: past errors that pass.
    async fn next(&mut self) -> (String, u64) {
        loop {
            let found = self.changes.next().in_time("a look finds a change").await.unwrap();
            if let Ok(change) = found {
                return (change.session.as_str().to_owned(), change.changes.stops);
            }
        }
    }
}

/// S7.44: what is committed long after it was written is found by the look that comes next, and was found by none before.
#[tokio::test]
async fn what_was_long_in_being_committed_is_found_by_the_next_look() {
    const LOOKS: usize = 5;
    let (_, _, outside) = world();
    let schema = schema();
    let mut listening = Listening::begin(open(&schema, &outside), open(&schema, &outside)).await;
    let slow = Cluster::shared().connect().await;
    slow.batch_execute(&format!("SET search_path TO {schema}; BEGIN")).await.unwrap();
    slow.query(STOP, &[&"a"]).await.unwrap();
    for _ in 0..LOOKS {
        listening.finds_none_but_b().await;
    }
    slow.batch_execute("COMMIT").await.unwrap();
    assert_eq!(listening.next().await, ("a".to_owned(), 1));
    // It is found once.
    listening.finds_none_but_b().await;
}

/// S7.44: a server that has crashed may give the number of a transaction again that it had given before. What a look saw of it before
/// says nothing of what is done now.
#[tokio::test]
async fn after_a_crash_a_look_assumes_nothing_of_what_it_had_seen() {
    const IS_GIVEN_AGAIN: &str = "UPDATE sessions SET touched = '3' WHERE id = 'a'";
    let cluster = Cluster::start(&[]);
    let [store, other] = [0, 1].map(|_| PostgresStore::open(&cluster.address()).unwrap());
    let mut listening = Listening::begin(store, other).await;
    let client = cluster.connect().await;
    client.batch_execute("SET search_path TO safepoint; BEGIN").await.unwrap();
    client.query(STOP, &[&"a"]).await.unwrap();
    client.batch_execute(IS_GIVEN_AGAIN).await.unwrap();
    client.batch_execute("COMMIT").await.unwrap();
    listening.finds_none_but_b().await;
    cluster.crash();
    // Over new connections all is looked at, in no order.
    while listening.next().await != ("a".to_owned(), 1) {}
}
