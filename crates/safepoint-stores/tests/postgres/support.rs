//! What the tests of the store in PostgreSQL share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use safepoint::{
    raw::store::Environment,
    store::{MemoryStore, Store},
};
use safepoint_stores::{
    PostgresStore,
    postgres::{PostgresOptions, StoreClock},
};
use safepoint_testkit::{
    store_suite::{Population, Time, outside, play::Player},
    wait,
};
use tokio_postgres::error::SqlState;

use super::{cluster::Cluster, proxy::Proxy};

/// The name of a schema that no other test has.
pub(crate) fn schema() -> String {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    format!("s{}", MADE.fetch_add(1, Ordering::Relaxed))
}

/// Makes stores in the shared server, each open twice.
pub(crate) fn fresh(outside: Environment) -> [Arc<dyn Store>; 2] {
    let schema = schema();
    [0, 1].map(|_| {
        let store: Arc<dyn Store> = Arc::new(open(&schema, &outside));
        store
    })
}

/// The same in one schema, which is emptied each time: for many stores, one after the other.
pub(crate) fn emptied() -> impl Fn(Environment) -> [Arc<dyn Store>; 2] + Sync {
    let schema = schema();
    let (_, _, outside) = world();
    open(&schema, &outside).close();
    move |outside| {
        let empty = format!(
            "TRUNCATE {schema}.nodes, {schema}.sessions, {schema}.tenures, {schema}.records, {schema}.items, {schema}.stops, \
             {schema}.approvals; ALTER SEQUENCE {schema}.epochs RESTART"
        );
        // Again after a deadlock: what a store before asked for last may still be running, and has other tables first.
        let look = move || {
            let ran =
                runtime().block_on(async { Cluster::shared().connect().await.batch_execute(&empty).await });
            ran.inspect_err(|refused| {
                assert_eq!(refused.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED), "{refused}");
            })
        };
        // The suite asks for a store within its own runtime.
        thread::spawn(|| wait::until("the schema is empty", look)).join().unwrap();
        [0, 1].map(|_| Arc::new(open(&schema, &outside)) as Arc<dyn Store>)
    }
}

/// Options in a world of the suite's.
pub(crate) fn options(schema: &str, outside: &Environment) -> PostgresOptions {
    let mut options = PostgresOptions::default();
    (options.schema, options.outside, options.clock) =
        (schema.into(), outside.clone(), StoreClock::Environment);
    options
}

pub(crate) fn open(schema: &str, outside: &Environment) -> PostgresStore {
    PostgresStore::open_with(&Cluster::shared().address(), options(schema, outside)).unwrap()
}

/// A separate clock, population and environment.
pub(crate) fn world() -> (Time, Population, Environment) {
    let (time, lives) = (Time::default(), Population::default());
    let outside = outside(&time, &lives);
    (time, lives, outside)
}

/// How many transactions have written to the server.
pub(crate) async fn transactions(server: &tokio_postgres::Client) -> i64 {
    const NEWEST: &str = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
    server.query_one(NEWEST, &[]).await.unwrap().get(0)
}

/// A model of a store in a separate environment.
pub(crate) fn model() -> Player {
    let (time, lives, outside) = world();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(outside));
    Player::of(store, &time, &lives)
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The shared server, behind this proxy.
pub(crate) fn through(proxy: &Proxy) -> String {
    format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port)
}
