//! Safepoint against a bare `reqwest` loop, alternately and in the same run: medians and ratios.

mod bare;
mod primitives;
mod rounds;
mod stops;
mod table;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use safepoint_testkit::{
    script::{Reply, Script, When},
    server::{ModelServer, Options, Recording, Strictness},
};
use serde_json::json;

use crate::table::Table;

/// The hidden argument that makes this program its own server.
const SERVE: &str = "__serve";

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match (args.next().as_deref(), args.next()) {
        (Some(SERVE), Some(rounds)) => runtime.block_on(serve(rounds.parse()?)),
        _ => runtime.block_on(bench()),
    }
}

async fn bench() -> anyhow::Result<()> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        // Already there: it is the same one.
    }
    let mut table = Table::default();
    primitives::measure(&mut table);
    for rounds in [20, 200] {
        let server = Server::start(rounds)?;
        rounds::cpu(&mut table, &server.url, rounds).await?;
    }
    let server = Server::start(20)?;
    rounds::throughput(&mut table, &server.url).await?;
    rounds::parallel_tools(&mut table).await?;
    stops::measure(&mut table).await?;
    println!("{table}");
    Ok(())
}

/// A server in a process of its own, so that this process's CPU time is the client's alone.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(rounds: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([SERVE, &rounds.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        if let Some(stdout) = child.stdout.as_mut() {
            BufReader::new(stdout).read_line(&mut url)?;
        }
        Ok(Self { child, url: url.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait().map(drop)).is_err() {
            // It has ended by itself.
        }
    }
}

/// Asks for a call in each round but the last, whoever asks.
async fn serve(rounds: usize) -> anyhow::Result<()> {
    let last = Reply {
        when: Some(When { user: None, results: Some(rounds - 1) }),
        ..Reply::text("That is all that I wanted to know, thank you.")
    };
    let script = Script { repeat: true, ..Script::of([last, Reply::call("noop", json!({"n": 1}))]) };
    let options =
        Options { strictness: Strictness::Lenient, recording: Recording::Off, ..Options::default() };
    let server = ModelServer::start_with(script, options, SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("{}", server.url());
    std::io::stdout().flush()?;
    std::future::pending::<()>().await;
    Ok(())
}
