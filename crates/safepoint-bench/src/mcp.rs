//! Tools of MCP servers: a call beside one of the protocol's library alone, and a stop while a call runs.
//!
//! The server is this program, started again, or a task of it; both sides talk to the same kind.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rmcp::{
    RoleClient, ServiceExt as _,
    model::CallToolRequestParams,
    service::RunningService,
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use safepoint::{
    Agent, StopRequest,
    event::{EventKind, Fact},
    receipt::Ending,
};
use safepoint_testkit::{
    mcp::{self, ASKED, HttpServer, McpManners, McpSeen, Speaks},
    recorder,
    script::{Reply, Script},
    scripted::ScriptedModel,
};
use safepoint_tools::{
    mcp::{Client, Server},
    process::Processes,
};
use serde_json::json;

use crate::{
    figures::median,
    table::Table,
    timing::{Times, micros, settle_down},
};

const CALLS: usize = 2000;
const BATCH: usize = 100;
const STOPS: usize = 100;
const MOST: f64 = 1.2;
const REPORTED_US: f64 = 1000.0;
const SERVER_REPORTED_US: f64 = 3000.0;

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    calls(table, "over pipes", &Transport::Pipes).await?;
    let http = HttpServer::start(McpManners::default()).await?;
    calls(table, "over HTTP", &Transport::Http(http)).await?;
    stop_over_pipes(table).await?;
    for (name, speaks) in [("2025-11-25", Speaks::Older), ("2026-07-28", Speaks::Newest)] {
        stop_over_http(table, name, speaks).await?;
    }
    Ok(())
}

enum Transport {
    Pipes,
    Http(HttpServer),
}

type Bare = RunningService<RoleClient, ()>;

async fn bare(place: &Transport) -> anyhow::Result<Bare> {
    Ok(match place {
        Transport::Pipes => {
            let mut command = tokio::process::Command::new(std::env::current_exe()?);
            command.env(ASKED, McpManners::default().to_json());
            ().serve(TokioChildProcess::new(command)?).await?
        }
        Transport::Http(http) => {
            ().serve(StreamableHttpClientTransport::from_uri(http.url().to_owned())).await?
        }
    })
}

async fn ours(place: &Transport, manners: &McpManners) -> anyhow::Result<Client> {
    let server = match place {
        Transport::Pipes => Server::stdio("bench", std::env::current_exe()?)
            .env(ASKED, manners.to_json())
            .under(&Processes::unguarded("bench")),
        Transport::Http(http) => Server::http("bench", http.url()),
    };
    Ok(server.connect().await?)
}

/// The time of a call, in turns of a hundred, so that both meet the same machine.
async fn calls(table: &mut Table, name: &str, place: &Transport) -> anyhow::Result<()> {
    let (bare, ours) = (bare(place).await?, ours(place, &McpManners::default()).await?);
    let (mut of_bare, mut of_ours) = (Vec::new(), Vec::new());
    for _ in 0..CALLS / BATCH {
        for _ in 0..BATCH {
            let mut params = CallToolRequestParams::new("echo");
            params.arguments = json!({"text": "hello"}).as_object().cloned();
            let began = Instant::now();
            let result = bare.call_tool(params).await?;
            of_bare.push(micros(began.elapsed()));
            anyhow::ensure!(result.content.len() == 1, "{result:?}");
        }
        for _ in 0..BATCH {
            let began = Instant::now();
            let called = ours.call("echo", json!({"text": "hello"}), |_| {}).await;
            of_ours.push(micros(began.elapsed()));
            called.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        }
    }
    let what = format!("a call of an MCP server {name}");
    table.ratio(&what, "µs", (median(of_ours), median(of_bare)), MOST);
    ours.close().await;
    bare.cancel().await?;
    Ok(())
}

async fn stop_over_pipes(table: &mut Table) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let manners = McpManners { log: Some(log.clone()), ..McpManners::default() };
    let client = ours(&Transport::Pipes, &manners).await?;
    let mut times = Times::default();
    for number in 0..STOPS {
        let called = || count(&log, "tools/call") > number;
        let reported = || at(&log, "notifications/cancelled", number);
        times.push(stop(&client, called, reported).await?);
    }
    client.close().await;
    show(times, table, "over pipes");
    Ok(())
}

async fn stop_over_http(table: &mut Table, name: &str, speaks: Speaks) -> anyhow::Result<()> {
    let http = HttpServer::start(McpManners { speaks, ..McpManners::default() }).await?;
    let client = Server::http("bench", http.url()).connect().await?;
    let mut times = Times::default();
    for number in 0..STOPS {
        let of = |wanted: &dyn Fn(&McpSeen) -> bool| {
            http.seen().into_iter().filter(|(_, seen)| wanted(seen)).nth(number).map(|(at, _)| at)
        };
        let is_call = |seen: &McpSeen| matches!(seen, McpSeen::Got(got) if got["method"] == "tools/call");
        let is_reported = |seen: &McpSeen| match (seen, speaks) {
            (McpSeen::Got(got), Speaks::Older) => got["method"] == "notifications/cancelled",
            (McpSeen::GaveUp(call), Speaks::Newest) => call["method"] == "tools/call",
            _ => false,
        };
        times.push(stop(&client, || of(&is_call).is_some(), || of(&is_reported)).await?);
    }
    client.close().await;
    show(times, table, &format!("over HTTP, {name}"));
    Ok(())
}

fn show(times: Times, table: &mut Table, name: &str) {
    let what = format!("stop during a call of an MCP server {name}");
    table.alone(&format!("{what}: caller has the outcome"), "µs", median(times.caller), REPORTED_US);
    table.alone(&format!("{what}: the server has the notice"), "µs", median(times.other), SERVER_REPORTED_US);
}

/// Stops a call without an answer: the times until the caller has the outcome and until the server gets the
/// notice.
async fn stop(
    client: &Client,
    is_called: impl Fn() -> bool,
    reported_at: impl Fn() -> Option<u64>,
) -> anyhow::Result<(f64, f64)> {
    let model = ScriptedModel::new(Script::of([Reply::call("bench__deaf", json!({}))]));
    let agent = Agent::builder(model).tools(client.tools().await?).build();
    let handle = agent.run("go").detach();
    recorder::until(&handle, is_call).await;
    until(is_called).await;
    settle_down().await;
    let (asked_ns, asked) = (mcp::now_ns(), Instant::now());
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let caller = micros(asked.elapsed());
    anyhow::ensure!(outcome.ending() == Ending::Stopped, "{outcome:?}");
    until(|| reported_at().is_some()).await;
    let reported = reported_at().unwrap_or(asked_ns).saturating_sub(asked_ns);
    Ok((caller, micros(Duration::from_nanos(reported))))
}

fn is_call(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::CallStarted { .. }))
}

fn count(log: &Path, method: &str) -> usize {
    mcp::read_log(log).iter().filter(|(_, got)| got["method"] == method).count()
}

fn at(log: &Path, method: &str, number: usize) -> Option<u64> {
    let log = mcp::read_log(log);
    log.iter().filter(|(_, got)| got["method"] == method).nth(number).map(|(at, _)| *at)
}

/// Polls a condition of the real world.
async fn until(holds: impl Fn() -> bool) {
    const LOOK: Duration = Duration::from_millis(1);
    while !holds() {
        tokio::time::sleep(LOOK).await;
    }
}
