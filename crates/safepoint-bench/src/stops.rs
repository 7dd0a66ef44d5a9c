//! Stops: until the caller sees the outcome, and until the server sees the socket close.

use std::{
    future::pending,
    time::{Duration, Instant},
};

use reqwest::{Client, Response};
use safepoint::{
    Agent, RunHandle, StopRequest,
    event::{EventKind, Fact},
    receipt::Ending,
    tool,
};
use safepoint_models::openai;
use safepoint_testkit::{
    recorder,
    script::{Reply, ReplyFault, Script},
    server::ModelServer,
};
use serde_json::json;
use tokio::sync::oneshot;

use crate::{
    table::{Table, median},
    timing::{Times, micros, settle_down},
};

const REPEATS: usize = 200;
/// A message that takes seconds to send.
const WORDS: usize = 5000;

/// What is waited for when the stop comes.
#[derive(Clone, Copy)]
enum StopPhase {
    Sending,
    Streaming,
    BeforeHeaders,
    InTool,
}

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    for (name, phase) in [
        ("while the server is sending", StopPhase::Sending),
        ("on a stream that fell silent", StopPhase::Streaming),
        ("before any headers", StopPhase::BeforeHeaders),
    ] {
        let (mut ours, mut bare) = (Times::default(), Times::default());
        for _ in 0..REPEATS {
            bare.push(drop_bare(phase).await?);
            ours.push(stop_ours(phase).await?);
        }
        let what = |end: &str| format!("stop {name}: {end}");
        let closed = (median(ours.other), median(bare.other));
        table.ratio(&what("server sees the close"), "µs", closed, 1.5);
        let reported = (median(ours.caller), median(bare.caller));
        table.ratio(&what("caller has the outcome"), "µs", reported, 1.5);
    }
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        bare.push(drop_task().await);
        ours.push(stop_ours(StopPhase::InTool).await?.0);
    }
    table.ratio("stop during an async tool: caller has the outcome", "µs", (median(ours), median(bare)), 1.5);
    lose_none(table).await
}

/// The least that a stop of pending work can cost: a task dropped, and its end awaited.
async fn drop_task() -> f64 {
    let waiting = tokio::spawn(pending::<()>());
    settle_down().await;
    let asked = Instant::now();
    waiting.abort();
    if waiting.await.is_ok() {
        unreachable!("it pends");
    }
    micros(asked.elapsed())
}

fn script(phase: StopPhase) -> Script {
    Script::of([match phase {
        StopPhase::Sending => Reply::text("word ".repeat(WORDS)).paced(5, Duration::from_millis(1)),
        StopPhase::Streaming => {
            Reply::text("a few words").paced(3, Duration::ZERO).fault(ReplyFault::StallAfter(3))
        }
        StopPhase::BeforeHeaders => Reply::default().fault(ReplyFault::Silence),
        StopPhase::InTool => Reply::call("wait", json!({})),
    }])
}

async fn drop_bare(phase: StopPhase) -> anyhow::Result<(f64, f64)> {
    let server = ModelServer::start(script(phase)).await?;
    let body =
        json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "go"}]}).to_string();
    let sent = Client::new().post(format!("{}/chat/completions", server.url())).body(body).send();
    let (begun, has_begun) = oneshot::channel();
    let waiting = tokio::spawn(async move {
        let mut response: Response = sent.await?;
        let mut begun = Some(begun);
        while response.chunk().await?.is_some() {
            if let Some(begun) = begun.take()
                && begun.send(()).is_err()
            {
                // The receiver is gone: the measurement no longer waits for the beginning.
            }
        }
        anyhow::Ok(())
    });
    let exchange = server.request(0).await;
    match phase {
        StopPhase::Sending | StopPhase::Streaming => has_begun.await?,
        StopPhase::BeforeHeaders | StopPhase::InTool => drop(has_begun),
    }
    settle_down().await;
    let asked = Instant::now();
    waiting.abort();
    let ended = waiting.await;
    let reported = asked.elapsed();
    anyhow::ensure!(ended.is_err(), "the bare request ended by itself");
    let closed = exchange.peer_closed().await.into_std();
    Ok((micros(reported), micros(closed.saturating_duration_since(asked))))
}

async fn stop_ours(phase: StopPhase) -> anyhow::Result<(f64, f64)> {
    let server = ModelServer::start(script(phase)).await?;
    let wait = tool::from_fn("wait", "waits", |_cx, (): ()| async {
        pending::<()>().await;
        Ok("")
    });
    let agent = Agent::builder(openai::model("m").base_url(server.url())).tool(wait).build();
    let handle = agent.run("go").detach();
    let exchange = server.request(0).await;
    reached(&handle, phase).await;
    settle_down().await;
    let asked = Instant::now();
    handle.stop(StopRequest::now());
    let outcome = handle.done().await;
    let reported = asked.elapsed();
    anyhow::ensure!(outcome.ending() == Ending::Stopped, "{outcome:?}");
    let closed = match phase {
        StopPhase::InTool => reported,
        StopPhase::Sending | StopPhase::Streaming | StopPhase::BeforeHeaders => {
            exchange.peer_closed().await.into_std().saturating_duration_since(asked)
        }
    };
    Ok((micros(reported), micros(closed)))
}

async fn reached(handle: &RunHandle, phase: StopPhase) {
    let is_there = |kind: &EventKind| match (phase, kind) {
        (StopPhase::Sending | StopPhase::Streaming, EventKind::Text(_)) => true,
        (StopPhase::BeforeHeaders, EventKind::Fact(fact)) => matches!(**fact, Fact::ModelStarted { .. }),
        (StopPhase::InTool, EventKind::Fact(fact)) => matches!(**fact, Fact::CallStarted { .. }),
        _ => false,
    };
    recorder::until(handle, is_there).await;
}

/// Many stops at arbitrary moments: not one is lost.
async fn lose_none(table: &mut Table) -> anyhow::Result<()> {
    const STOPS: usize = 10_000;
    const AT_ONCE: usize = 32;
    const LONG: Duration = Duration::from_secs(10);
    let server = ModelServer::start(Script {
        repeat: true,
        ..Script::of([Reply::text("words and words and words").paced(2, Duration::from_millis(1))])
    })
    .await?;
    let agent = Agent::builder(openai::model("m").base_url(server.url())).build();
    let mut running = tokio::task::JoinSet::new();
    let mut lost = 0_usize;
    for n in 0..STOPS {
        let agent = agent.clone();
        running.spawn(async move {
            let handle = agent.run("go").detach();
            tokio::time::sleep(Duration::from_micros((n as u64 * 37) % 8000)).await;
            handle.stop(StopRequest::now());
            tokio::time::timeout(LONG, handle.done()).await.is_ok()
        });
        if running.len() >= AT_ONCE
            && let Some(ended) = running.join_next().await
        {
            lost += usize::from(!ended?);
        }
    }
    while let Some(ended) = running.join_next().await {
        lost += usize::from(!ended?);
    }
    table.alone("stops lost, of 10,000 at arbitrary moments, 32 at once", "lost", lost as f64, 0.0);
    Ok(())
}
