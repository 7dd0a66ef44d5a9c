//! A database for one test, and nodes over it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use safepoint::store::Store;
use safepoint_nodes::GraphileQueue;
use safepoint_stores::{PostgresStore, postgres::PostgresOptions};
use safepoint_testkit::wait;
use tokio_postgres::error::SqlState;

use crate::{
    cluster::Cluster,
    nodes::{self, QueueNode},
};

/// In every address of a database here, and in nothing that is ever said.
pub(super) const PASSWORD: &str = "Zq9hunter2";

pub(super) struct World {
    pub(super) name: String,
    pub(super) store: Arc<PostgresStore>,
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(PostgresOptions::default()).await
    }

    /// With these options of the store.
    pub(super) async fn with(options: PostgresOptions) -> Self {
        // Relaxed: each number is given once, and orders nothing else.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("work{}", MADE.fetch_add(1, Ordering::Relaxed));
        sql("postgres", &format!("CREATE DATABASE {name}")).await;
        let store = PostgresStore::open_with(&address("postgres", &name), options).unwrap();
        Self { name, store: Arc::new(store) }
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    /// The address of the database, as this role.
    pub(super) fn address_of(&self, role: &str) -> String {
        address(role, &self.name)
    }

    pub(super) async fn sql(&self, statements: &str) {
        sql(&self.name, statements).await;
    }

    /// The one number that this asks for.
    pub(super) async fn count(&self, question: &str) -> i64 {
        client(&self.name).await.query_one(question, &[]).await.unwrap().get(0)
    }

    /// How many jobs there are.
    pub(super) async fn jobs(&self) -> i64 {
        self.count("SELECT count(*) FROM safepoint_work._private_jobs").await
    }

    /// Sessions of this pool that want an owner.
    pub(super) async fn due(&self, pool: &str, names: &[&str]) {
        nodes::due(&*self.store, pool, names).await;
    }

    /// How many owners the session had.
    pub(super) async fn owners(&self, session: &str) -> usize {
        self.store.tenures(&session.into()).await.unwrap().len()
    }

    pub(super) async fn queue(&self) -> GraphileQueue {
        GraphileQueue::open(&self.address_of("postgres")).await.unwrap()
    }

    /// A role without rights in this database.
    pub(super) async fn role(&self, name: &str) -> String {
        let role = format!("{}_{name}", self.name);
        let of_all = format!("REVOKE CREATE ON DATABASE {} FROM PUBLIC", self.name);
        self.sql(&format!("CREATE ROLE {role} LOGIN; {of_all}")).await;
        role
    }

    /// A node that takes what the queue brings.
    pub(super) async fn node(&self, pools: &[&str], room: usize) -> QueueNode {
        QueueNode::of(&self.store(), self.queue().await, pools, room).await
    }
}

fn address(role: &str, database: &str) -> String {
    format!("postgres://{role}:{PASSWORD}@127.0.0.1:{}/{database}", Cluster::shared().port)
}

async fn client(database: &str) -> tokio_postgres::Client {
    let connected = tokio_postgres::connect(&address("postgres", database), tokio_postgres::NoTls).await;
    let (client, connection) = connected.unwrap();
    drop(tokio::spawn(connection));
    client
}

/// Runs statements: again after a deadlock, as those that drop tables in use take locks in an order of their own.
async fn sql(database: &str, statements: &str) {
    let client = client(database).await;
    let look = || async {
        client.batch_execute(statements).await.inspect_err(|refused| {
            assert_eq!(refused.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED), "{statements}: {refused}");
        })
    };
    wait::asked(format_args!("{statements} is done"), look).await;
}
