//! Sessions over HTTP: how late a delta is at readers while many read, how soon a stop closes the model's socket, and what a
//! session costs the server.

use std::{net::SocketAddr, process::Stdio, time::Duration};

use anyhow::Context as _;
use safepoint_testkit::server::ModelServer;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
};

mod by_hand;
mod host;
mod memory;
pub(crate) mod readers;

pub(crate) use memory::{AT_REST, gather};
pub(crate) use readers::READERS;

use self::{
    by_hand::ByHand,
    host::{PACED, SOCKET, Served, talks},
};
use crate::{figures::percentile, process::allow_files, table::Table, timing::machine_time};

/// Sessions that stream, the readers of all of them, and those that read nothing.
const SESSIONS: usize = 200;
const ALL_READERS: usize = 1_000;
const STALLED: usize = 100;
/// Stops of one pass.
const STOPS: usize = 100;
/// How long the crowd may take until all read.
const WARM: Duration = Duration::from_secs(60);

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    allow_files()?;
    let model = ModelServer::start(talks()).await?;
    let served = Served::start(&model).await?;
    let stopped = stops(&served, &model).await?;
    table.alone(
        "served: stop over HTTP → the model's socket is closed, p95",
        "ms",
        percentile(stopped, 95),
        3.0,
    );
    let what = format!("served: {ALL_READERS} readers, {SESSIONS} sessions at 50 deltas a second");
    let by_hand = ByHand::start()?;
    let best = crowd(by_hand.address, &ByHand::sessions(), 0).await?.lateness().await?;
    by_hand.end()?;
    let sessions = served.many(PACED, SESSIONS).await?;
    let late = crowd(served.address, &sessions, 0).await?.lateness().await?;
    table.alone(&format!("{what}: a delta made → at the client, p99"), "ms", late[1], 20.0);
    table.beside(&format!("{what}: p50"), "ms", late[0]);
    table.beside(&format!("{what}: deltas a second at the clients"), "", late[2]);
    for ((name, unit), figure) in
        [("p50", "ms"), ("p99", "ms"), ("deltas a second", "")].into_iter().zip(best)
    {
        table.beside(&format!("{what}: {name}, by hand, without sessions"), unit, figure);
    }
    let mut stalled = crowd(served.address, &sessions, STALLED).await?;
    let more = stalled.lateness().await?;
    let name = format!("{what}, and {STALLED} that read nothing: p99");
    table.added(&name, "ms", (more[1], late[1]), 2.0);
    let busy = crowd(served.address, &sessions, 0).await?;
    let stopped = stops(&served, &model).await?;
    drop(busy);
    let name = format!("{what}: stop over HTTP → the model's socket is closed, p95");
    table.alone(&name, "ms", percentile(stopped, 95), 10.0);
    served.end().await?;
    memory::measure(table)
}

/// Milliseconds from the request of a stop until the model's server sees the end, of each.
async fn stops(served: &Served, model: &ModelServer) -> anyhow::Result<Vec<f64>> {
    let mut all = Vec::with_capacity(STOPS);
    for at in 0..STOPS {
        let asked = model.requests().len();
        let session = served.session(SOCKET, at).await?;
        let exchange = model.request(asked).await;
        host::begins(&exchange).await;
        let began = tokio::time::Instant::now();
        served.post(&format!("/v1/sessions/{session}/stop"), &json!({"mode": "now"}), at).await?;
        let closed = exchange.peer_closed().await;
        all.push(closed.duration_since(began).as_secs_f64() * 1e3);
    }
    Ok(all)
}

/// Readers in a process of their own.
struct ReaderCrowd {
    process: Child,
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

/// Begins them, and returns once all read.
async fn crowd(address: SocketAddr, sessions: &[String], stalled: usize) -> anyhow::Result<ReaderCrowd> {
    let mut process = Command::new(std::env::current_exe()?)
        .args([READERS, &address.to_string(), &ALL_READERS.to_string(), &stalled.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = process.stdin.take().context("stdin was asked for")?;
    input.write_all(sessions.join("\n").as_bytes()).await?;
    drop(input);
    let output = process.stdout.take().context("stdout was asked for")?;
    let mut lines = BufReader::new(output).lines();
    let ready = tokio::time::timeout(WARM, lines.next_line()).await.context("not all readers read")??;
    anyhow::ensure!(ready.as_deref() == Some(readers::READY), "the readers said {ready:?}");
    Ok(ReaderCrowd { process, lines })
}

impl ReaderCrowd {
    /// Of the deltas in the next seconds: milliseconds that half of them, and a hundredth, were late; and how many came in a
    /// second.
    async fn lateness(&mut self) -> anyhow::Result<[f64; 3]> {
        let line = self.lines.next_line().await?.context("the readers ended")?;
        let figures: Vec<f64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        self.process.start_kill()?;
        self.process.wait().await?;
        figures.try_into().map_err(|_figures| anyhow::anyhow!("the readers said `{line}`"))
    }
}

/// The moment, as a delta says it.
fn stamp() -> String {
    format!("{:020}", machine_time())
}
