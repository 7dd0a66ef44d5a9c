//! What a statement reads does not depend on what the server believes of its tables: S7.52.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use safepoint::{
    raw::store::{Durability, NewSession, Write},
    store::{NewNode, Store},
};
use safepoint_testkit::{
    store_suite::{owner, record},
    wait,
};

use super::{
    cluster::Cluster,
    support::{open, schema, world},
};

/// S7.52: where the server last counted when no session was held, an append of many still finds each session by its id, and does not look
/// at all that the node holds.
#[tokio::test]
async fn an_append_looks_at_no_session_but_its_own() {
    const SESSIONS: u64 = 300;
    const APPENDS: u64 = 3;
    /// Each was held by an update, and is looked at once as the node leaves; no look of an append comes to that.
    const FEW: u64 = 10 * SESSIONS;
    let (_, _, outside) = world();
    let schema = schema();
    let store = open(&schema, &outside);
    let server = Cluster::shared().connect().await;
    let ids = (0..SESSIONS).map(|number| store.create(NewSession::of(format!("s{number}"))));
    let ids: Vec<_> = try_join_all(ids).await.unwrap().into_iter().map(|row| row.id).collect();
    server.batch_execute(&format!("VACUUM ANALYZE {schema}.sessions")).await.unwrap();
    let node = store.join(NewNode::of(owner(1), Duration::from_secs(60))).await.unwrap();
    let leases = try_join_all(ids.iter().map(|id| store.acquire(id, &node))).await.unwrap();
    for _ in 0..APPENDS {
        let append = |lease| store.append(lease, vec![Write::Record(record("it"))], Durability::Durable);
        let done = join_all(leases.iter().map(append)).await;
        assert!(done.iter().all(Result::is_ok), "{done:?}");
    }
    drop(leases);
    store.close();
    // What a connection has read is counted once it is closed: each of the appends has found its session by then.
    let read = async |index: &str| {
        let read = "SELECT idx_tup_read FROM pg_stat_all_indexes WHERE schemaname = $1 AND indexrelname = $2";
        let row = server.query_one(read, &[&schema, &index]).await.unwrap();
        u64::try_from(row.get::<_, i64>(0)).unwrap()
    };
    // By the one index or the other.
    let is_counted =
        async || read("sessions_id_key").await + read("sessions_held").await >= APPENDS * SESSIONS;
    wait::asked("what was read is counted", is_counted).await;
    let held = read("sessions_held").await;
    assert!(held < FEW, "{held} entries were looked at");
}
