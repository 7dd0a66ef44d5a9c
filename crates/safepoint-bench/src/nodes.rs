//! Many machines: a store in PostgreSQL beside the same statements by hand, and stops that are asked at another node.
//!
//! It is measured on the server that [`DATABASE`] names, with that server's own settings: a figure beside another one, of one run, means
//! something; one alone says as much about the server's disk.

mod appends;
mod bare;
mod stops;

use std::env;

use anyhow::Context as _;
use safepoint_stores::PostgresStore;

use crate::table::Table;

/// The variable with the address of a database that may be written to.
const DATABASE: &str = "SAFEPOINT_BENCH_DATABASE";

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    let address = env::var(DATABASE).with_context(|| {
        format!("`nodes` needs a database that may be written to: {DATABASE}=postgres://…")
    })?;
    // Each session that appends has a separate node, and every other node would look at all of them.
    stops::measure(table, &address).await?;
    appends::measure(table, &address).await
}

/// Another handle of the store, over separate connections.
async fn opened(address: &str) -> anyhow::Result<PostgresStore> {
    let address = address.to_owned();
    // It blocks until the database has answered.
    Ok(tokio::task::spawn_blocking(move || PostgresStore::open(&address)).await??)
}
