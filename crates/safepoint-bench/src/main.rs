//! Safepoint against a bare `reqwest` loop, alternately and in the same run: medians and ratios.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

mod bare;
mod children;
mod crowd;
mod durable;
mod load;
mod mcp;
mod models;
mod primitives;
mod rounds;
mod server;
mod sessions;
mod silent;
mod stops;
mod store;
mod table;
mod timing;

use crate::{
    server::{Server, Serving},
    table::Table,
};

fn main() -> anyhow::Result<()> {
    safepoint_testkit::mcp::serve_if_asked();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        // Already there: it is the same one.
    }
    let mut args = std::env::args().skip(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match args.next().as_deref() {
        Some(server::SERVE) => runtime.block_on(server::serve(&args.next().unwrap_or_default())),
        Some(crowd::CROWD) => runtime.block_on(crowd::gather(args)),
        Some(durable::ROUNDS) => runtime.block_on(durable::rounds(&args.next().unwrap_or_default())),
        Some(sessions::IDLE) => runtime.block_on(sessions::gather(&args.next().unwrap_or_default())),
        only => runtime.block_on(bench(only.unwrap_or_default())),
    }
}

/// Measures the parts whose name begins with `only`, which is all of them when it is empty.
async fn bench(only: &str) -> anyhow::Result<()> {
    let mut table = Table::default();
    let wanted = |part: &str| part.starts_with(only);
    if wanted("primitives") {
        primitives::measure(&mut table);
    }
    if wanted("rounds") {
        for rounds in [20, 200] {
            let server = Server::start(Serving::Rounds(rounds))?;
            rounds::cpu(&mut table, &server.url, rounds).await?;
        }
        let server = Server::start(Serving::Rounds(20))?;
        rounds::throughput(&mut table, &server.url).await?;
    }
    if wanted("wires") {
        const ROUNDS: usize = 20;
        let server = Server::start(Serving::Rounds(ROUNDS))?;
        rounds::wires(&mut table, &server.url, ROUNDS).await?;
    }
    if wanted("tools") {
        rounds::parallel_tools(&mut table).await?;
    }
    if wanted("stops") {
        stops::measure(&mut table).await?;
    }
    if wanted("children") {
        children::measure(&mut table).await;
    }
    if wanted("sessions") {
        sessions::measure(&mut table).await?;
    }
    if wanted("load") {
        load::measure(&mut table).await?;
    }
    if wanted("mcp") {
        mcp::measure(&mut table).await?;
    }
    if wanted("crowd") {
        crowd::measure(&mut table)?;
    }
    if wanted("durable") {
        durable::measure(&mut table).await?;
    }
    if wanted("store") {
        store::measure(&mut table).await?;
    }
    println!("{table}");
    Ok(())
}
