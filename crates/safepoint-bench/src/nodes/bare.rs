//! The same statements by hand: one connection, one session at a time, and no grouping.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use crate::timing::join;

/// Tables as the store's, without what other requests need.
const TABLES: &str = "DROP SCHEMA IF EXISTS safepoint_bench CASCADE; CREATE SCHEMA safepoint_bench; \
    CREATE TABLE safepoint_bench.nodes (id text PRIMARY KEY, state smallint NOT NULL); \
    CREATE TABLE safepoint_bench.sessions (key bigint PRIMARY KEY, epoch bigint NOT NULL, holder text, head bigint NOT NULL, chain bytea, \
        updated timestamptz) WITH (fillfactor = 70); \
    CREATE TABLE safepoint_bench.records (session bigint, position bigint, path text NOT NULL, kind text NOT NULL, version int NOT NULL, \
        bytes bytea NOT NULL, chain bytea NOT NULL, PRIMARY KEY (session, position)); \
    INSERT INTO safepoint_bench.nodes VALUES ('node', 0)";

/// An append under the fence, as the store's: by the holder, in its epoch, at the end that it knows.
const APPEND: &str = "WITH s AS (UPDATE safepoint_bench.sessions s SET head = s.head + 1, chain = $3, updated = clock_timestamp() FROM safepoint_bench.nodes n \
    WHERE s.key = $1 AND s.epoch = 1 AND s.holder = 'node' AND s.head = $2 AND n.id = 'node' AND n.state < 2 RETURNING s.key) \
    INSERT INTO safepoint_bench.records SELECT s.key, $2, '1', 'call started', 1, $4, $3 FROM s";

/// A connection, and the append that is prepared on it.
pub(super) struct Bare {
    client: Client,
    append: Statement,
}

impl Bare {
    /// The first connection, which makes the tables anew.
    pub(super) async fn begin(address: &str) -> anyhow::Result<Self> {
        connected(address).await?.batch_execute(TABLES).await?;
        Self::connect(address).await
    }

    /// Another one.
    pub(super) async fn connect(address: &str) -> anyhow::Result<Self> {
        let client = connected(address).await?;
        let append = client.prepare(APPEND).await?;
        Ok(Self { client, append })
    }

    pub(super) async fn session(&self, key: i64) -> anyhow::Result<()> {
        const INSERT: &str = "INSERT INTO safepoint_bench.sessions VALUES ($1, 1, 'node', 0, '', now()) \
            ON CONFLICT (key) DO UPDATE SET head = 0";
        self.client.execute("DELETE FROM safepoint_bench.records WHERE session = $1", &[&key]).await?;
        self.client.execute(INSERT, &[&key]).await?;
        Ok(())
    }

    pub(super) async fn append(&self, key: i64, head: i64, bytes: &[u8]) -> anyhow::Result<()> {
        const CHAIN: [u8; 32] = [7; 32];
        let written = self.client.execute(&self.append, &[&key, &head, &&CHAIN[..], &bytes]).await?;
        anyhow::ensure!(written == 1, "an append by hand was refused");
        Ok(())
    }
}

async fn connected(address: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tokio::spawn(async move {
        if connection.await.is_err() {
            // The next request says so.
        }
    });
    Ok(client)
}

/// Appends this often to each of these many sessions, by these many connections.
pub(super) async fn appends(
    connections: &[Arc<Bare>],
    sessions: usize,
    each: i64,
    bytes: &[u8],
) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    for (at, connection) in connections.iter().enumerate() {
        let (connection, bytes) = (Arc::clone(connection), bytes.to_vec());
        let own: Vec<i64> = (at..sessions).step_by(connections.len()).map(|key| key as i64).collect();
        running.spawn(async move {
            for head in 0..each {
                for key in &own {
                    connection.append(*key, head, &bytes).await?;
                }
            }
            Ok(())
        });
    }
    join(running).await
}
