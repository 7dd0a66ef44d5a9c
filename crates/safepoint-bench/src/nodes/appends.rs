//! Durable appends: one at a time, and of many sessions at once; and what a round costs beside one of the store in a file.

use std::{sync::Arc, time::Instant};

use safepoint::{raw::store::Durability, store::Store};
use safepoint_stores::SqliteStore;
use tokio::task::JoinSet;

use super::{
    bare::{self, Bare},
    opened,
};
use crate::{
    figures::median,
    store::{fact, held, round, text},
    table::Table,
    timing::{join, micros, took},
};

pub(super) async fn measure(table: &mut Table, address: &str) -> anyhow::Result<()> {
    one_at_a_time(table, address).await?;
    many_at_once(table, address).await?;
    rounds(table, address).await
}

/// In turns, so that both meet the same disk.
async fn one_at_a_time(table: &mut Table, address: &str) -> anyhow::Result<()> {
    const APPENDS: i64 = 1000;
    let (store, by_hand) = (opened(address).await?, Bare::begin(address).await?);
    let lease = held(&store, &made_up("one")).await?;
    by_hand.session(0).await?;
    let bytes = text();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for head in 0..APPENDS {
        bare.push(took(by_hand.append(0, head, &bytes)).await?);
        let began = Instant::now();
        store.append(&lease, vec![fact("call started")], Durability::Durable).await?;
        ours.push(micros(began.elapsed()));
    }
    table.ratio(
        "nodes: one durable append, beside its statement by hand",
        "µs",
        (median(ours), median(bare)),
        1.3,
    );
    Ok(())
}

async fn many_at_once(table: &mut Table, address: &str) -> anyhow::Result<()> {
    const SESSIONS: usize = 256;
    const CONNECTIONS: usize = 64;
    const EACH: i64 = 100;
    const PASSES: usize = 5;
    let store = Arc::new(opened(address).await?);
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Arc::new(Bare::connect(address).await?));
    }
    let bytes = text();
    let (mut ours, mut by_hand, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let all = SESSIONS as f64 * EACH as f64;
    for _ in 0..PASSES {
        for key in 0..SESSIONS {
            connections[0].session(key as i64).await?;
        }
        let began = Instant::now();
        bare::appends(&connections, SESSIONS, EACH, &bytes).await?;
        let bare = all / began.elapsed().as_secs_f64();
        let mut leases = Vec::new();
        for _ in 0..SESSIONS {
            leases.push(held(&*store, &made_up("many")).await?);
        }
        let mut running = JoinSet::new();
        let began = Instant::now();
        for lease in leases {
            let store = Arc::clone(&store);
            running.spawn(async move {
                for _ in 0..EACH {
                    store.append(&lease, vec![fact("call started")], Durability::Durable).await?;
                }
                Ok(())
            });
        }
        join(running).await?;
        let grouped = all / began.elapsed().as_secs_f64();
        ours.push(grouped);
        by_hand.push(bare);
        ratios.push(grouped / bare);
    }
    let what = format!("nodes: durable appends of {SESSIONS} sessions a second");
    table.beside(&what, "", median(ours));
    table.beside(&format!("{what}, by hand over {CONNECTIONS} connections"), "", median(by_hand));
    table.least("nodes: the first beside the second", "×", median(ratios), 1.5);
    Ok(())
}

async fn rounds(table: &mut Table, address: &str) -> anyhow::Result<()> {
    const ROUNDS: usize = 500;
    let folder = tempfile::tempdir()?;
    let (shared, file) = (opened(address).await?, SqliteStore::open(folder.path().join("round.db"))?);
    let leases = (held(&shared, &made_up("round")).await?, held(&file, "round").await?);
    let (mut in_database, mut in_file) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        in_file.push(took(round(&file, &leases.1)).await?);
        in_database.push(took(round(&shared, &leases.0)).await?);
    }
    table.beside("nodes: a round with one unsafe call, in PostgreSQL", "µs", median(in_database));
    table.beside("nodes: the same round, in SQLite", "µs", median(in_file));
    Ok(())
}

/// An id that no other session of the database has.
pub(super) fn made_up(what: &str) -> String {
    format!("{what}-{}", uuid::Uuid::now_v7())
}
