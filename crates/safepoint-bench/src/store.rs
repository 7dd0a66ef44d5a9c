//! The store in a file: what a round costs, how sessions share commits, and what opening costs among a million.

use std::{
    fs::File,
    io::Write as _,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use futures_util::future::try_join_all;
use safepoint::{
    ids::SessionId,
    raw::store::{ChainCheck, Changes, Durability, Lease, NewSession, Record, Rest, Write},
    store::{NewNode, OwnerProcess, Store},
};
use safepoint_stores::SqliteStore;

use crate::{
    figures::median,
    table::Table,
    timing::{join, micros, took},
};

/// A lease that outlasts the benchmark.
const TTL: Duration = Duration::from_secs(3600);
/// About the size of a short message or of a call with its arguments.
const BYTES: usize = 600;

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let sync = one_at_a_time(table, &path("one.db"), &path("bare")).await?;
    many_at_once(table, &path("many.db"), sync).await?;
    long_session(table, &path("long.db")).await?;
    among_a_million(table, &path("million.db")).await
}

pub(crate) fn fact(kind: &str) -> Write {
    Write::Record(Record { path: "1".into(), kind: kind.into(), version: 1, bytes: text() })
}

/// What a record holds.
pub(crate) fn text() -> Vec<u8> {
    (0..BYTES).map(|at| b"abcdefghij klmnopqrst\n"[at % 22]).collect()
}

/// What the log of a round with one unsafe call asks of the store, as the engine asks it.
pub(crate) async fn round(store: &dyn Store, lease: &Lease) -> anyhow::Result<()> {
    store.append(lease, vec![fact("model started")], Durability::Recorded).await?;
    store.append(lease, vec![fact("model ended")], Durability::Recorded).await?;
    store.append(lease, vec![fact("call started")], Durability::Durable).await?;
    store.append(lease, vec![fact("call ended")], Durability::Durable).await?;
    Ok(())
}

/// A file that is written to without a store: what it has is overwritten in place, so that a sync has no new length to write down.
pub(crate) struct BareFile {
    file: File,
    next: u64,
}

/// What a commit writes.
const COMMIT: usize = 4 * 4096;
/// Commits until the first is overwritten again.
const COMMITS: u64 = 256;

impl BareFile {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let mut file = File::create(path)?;
        for _ in 0..COMMITS {
            file.write_all(&[0; COMMIT])?;
        }
        file.sync_all()?;
        Ok(Self { file, next: 0 })
    }

    /// Microseconds of writing what a commit writes, and of its sync.
    pub(crate) fn sync(&mut self) -> anyhow::Result<f64> {
        let began = Instant::now();
        self.file.write_all_at(&[7; COMMIT], self.next * COMMIT as u64)?;
        self.file.sync_data()?;
        self.next = (self.next + 1) % COMMITS;
        Ok(micros(began.elapsed()))
    }
}

/// Takes a session as any opening of one does: as a node for that alone.
async fn acquire(store: &dyn Store, session: &SessionId) -> anyhow::Result<Lease> {
    let node = store.join(NewNode::of(OwnerProcess::here(), TTL)).await?;
    Ok(store.acquire(session, &node).await?)
}

pub(crate) async fn held(store: &dyn Store, id: &str) -> anyhow::Result<Lease> {
    let session = store.create(NewSession::of(id)).await?.id;
    acquire(store, &session).await
}

async fn one_at_a_time(table: &mut Table, path: &Path, bare: &Path) -> anyhow::Result<f64> {
    const ROUNDS: usize = 1000;
    let store = SqliteStore::open(path)?;
    let lease = held(&store, "one").await?;
    let mut file = BareFile::create(bare)?;
    let (mut ours, mut syncs, mut appends) = (Vec::new(), Vec::new(), Vec::new());
    let before = store.commits();
    for _ in 0..ROUNDS {
        syncs.push(file.sync()?);
        ours.push(took(round(&store, &lease)).await?);
    }
    let durable = (store.commits().durable - before.durable) as f64 / ROUNDS as f64;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        store.append(&lease, vec![fact("recorded")], Durability::Recorded).await?;
        appends.push(micros(began.elapsed()));
    }
    let sync = median(syncs);
    // 0.4 ms where a sync costs 0.13 ms.
    let most = 0.4 / 0.13;
    let what = "store: a round with one unsafe call, beside one bare sync";
    table.ratio(what, "µs", (median(ours), sync), most);
    table.alone("store: syncs of such a round", "syncs", durable, 2.0);
    table.alone("store: one append that is recorded", "µs", median(appends), 100.0);
    Ok(sync)
}

async fn many_at_once(table: &mut Table, path: &Path, sync: f64) -> anyhow::Result<()> {
    const SESSIONS: usize = 64;
    const ROUNDS: usize = 100;
    let store = Arc::new(SqliteStore::open(path)?);
    let leases = try_join_all((0..SESSIONS).map(|number| {
        let store = Arc::clone(&store);
        async move { held(&*store, &format!("session {number}")).await }
    }))
    .await?;
    let before = store.commits();
    let began = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for lease in leases {
        let store = Arc::clone(&store);
        running.spawn(async move {
            for _ in 0..ROUNDS {
                round(&*store, &lease).await?;
            }
            anyhow::Ok(())
        });
    }
    join(running).await?;
    let each = micros(began.elapsed()) / (SESSIONS * ROUNDS) as f64;
    let durable = (store.commits().durable - before.durable) as f64 / (SESSIONS * ROUNDS) as f64;
    table.alone("store: syncs of a round, 64 sessions at once", "syncs", durable, 0.5);
    let what = "store: a round, 64 sessions at once, over all, beside one bare sync";
    table.ratio(what, "µs", (each, sync), 0.5);
    Ok(())
}

async fn long_session(table: &mut Table, path: &Path) -> anyhow::Result<()> {
    const EVENTS: usize = 10_000;
    const STRETCH: usize = 100;
    const REPEATS: usize = 11;
    let store = SqliteStore::open(path)?;
    let lease = held(&store, "long").await?;
    for _ in 0..EVENTS / STRETCH {
        let facts = (0..STRETCH).map(|_| fact("said")).collect();
        store.append(&lease, facts, Durability::Recorded).await?;
    }
    store.close();
    let (mut opened, mut checked) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let began = Instant::now();
        let store = SqliteStore::open(path)?;
        ensure!(read(&store, "long").await? == EVENTS, "a record is missing");
        opened.push(micros(began.elapsed()) / 1e3);
        let began = Instant::now();
        ensure!(matches!(store.check(&"long".into()).await?, ChainCheck::Intact(_)), "it is damaged");
        checked.push(micros(began.elapsed()) / 1e3);
        store.close();
    }
    table.alone("store: opening the file and a session of 10,000 records", "ms", median(opened), 50.0);
    table.alone("store: checking its chain", "ms", median(checked), 50.0);
    Ok(())
}

/// How many records there are, all of them read.
async fn read(store: &dyn Store, id: &str) -> anyhow::Result<usize> {
    const MOST: usize = 1000;
    let session = store.open(&id.into()).await?.id;
    let (mut from, mut count) = (Some(0), 0);
    while let Some(start) = from {
        let page = store.read(&session, start, MOST).await?;
        count += page.entries.iter().filter(|entry| entry.record.is_ok()).count();
        from = page.next;
    }
    Ok(count)
}

const MILLION: usize = 1_000_000;

/// Fills a store with suspended sessions, in which nothing is.
pub(crate) async fn create_a_million(store: &dyn Store) -> anyhow::Result<()> {
    const AT_ONCE: usize = 5_000;
    for first in (0..MILLION).step_by(AT_ONCE) {
        let make = |number: usize| {
            let label = "suspended".to_owned();
            store.create(NewSession { label, ..NewSession::of(format!("session {number}")) })
        };
        try_join_all((first..first + AT_ONCE).map(make)).await?;
    }
    Ok(())
}

async fn among_a_million(table: &mut Table, path: &Path) -> anyhow::Result<()> {
    const NEWEST: usize = 50;
    const REPEATS: usize = 21;
    let store = SqliteStore::open(path)?;
    create_a_million(&store).await?;
    let one = format!("session {}", MILLION / 3);
    let lease = acquire(&store, &one.as_str().into()).await?;
    store.append(&lease, vec![fact("said")], Durability::Durable).await?;
    store.release(&lease, Changes::default(), Rest::Nothing).await?;
    store.close();
    let (mut listed, mut opened) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let began = Instant::now();
        let store = SqliteStore::open(path)?;
        ensure!(store.list(NEWEST, None).await?.len() == NEWEST, "sessions are missing");
        listed.push(micros(began.elapsed()) / 1e3);
        store.close();
        let began = Instant::now();
        let store = SqliteStore::open(path)?;
        let lease = acquire(&store, &one.as_str().into()).await?;
        ensure!(read(&store, &one).await? == 1, "its record is missing");
        opened.push(micros(began.elapsed()) / 1e3);
        store.release(&lease, Changes::default(), Rest::Nothing).await?;
        store.close();
    }
    table.alone("store: opening a file of a million sessions, and its newest 50", "ms", median(listed), 50.0);
    table.alone("store: opening it, and taking and reading one of them", "ms", median(opened), 50.0);
    Ok(())
}
