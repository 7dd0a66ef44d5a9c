//! Rounds: CPU of the client, throughput of many agents, parallel tools.

use std::time::{Duration, Instant};

use reqwest::Client;
use rustix::time::{ClockId, clock_gettime};
use safepoint::{
    Agent, Limits, Model,
    receipt::Ending,
    tool::{self, EffectClass, FnTool},
};
use safepoint_models::{anthropic, gemini, openai, responses};
use safepoint_testkit::{
    script::{Reply, Script},
    server::ModelServer,
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    bare,
    table::{Table, median},
    timing::{self, join},
};

fn noop() -> FnTool {
    tool::from_fn("noop", "does nothing", |_cx, _args: serde_json::Map<String, serde_json::Value>| async {
        Ok("ok")
    })
    .with(|spec| spec.effect(EffectClass::ReadOnly))
}

pub(crate) fn agent(model: impl Model) -> Agent {
    let limits = Limits { max_rounds: 1000, parallel_calls: 100, ..Limits::default() };
    Agent::builder(model).limits(limits).tool(noop()).build()
}

/// CPU time of this process, in microseconds.
pub(crate) fn cpu_now() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

pub(crate) async fn one(agent: &Agent) -> anyhow::Result<()> {
    let outcome = agent.run("go").await;
    anyhow::ensure!(outcome.ending() == Ending::Done, "{outcome:?}");
    Ok(())
}

pub(crate) async fn cpu(table: &mut Table, url: &str, rounds: usize) -> anyhow::Result<()> {
    let most = if rounds < 100 { 1.5 } else { 1.0 };
    let figures = figures(&agent(openai::model("m").base_url(url)), url, rounds).await?;
    table.ratio(&format!("CPU per round, {rounds} rounds"), "µs", figures, most);
    Ok(())
}

/// The other wires, beside the same bare loop: it speaks chat completions in every case.
pub(crate) async fn wires(table: &mut Table, url: &str, rounds: usize) -> anyhow::Result<()> {
    let wires = [
        ("Responses", agent(responses::model("m").base_url(url))),
        ("Anthropic messages", agent(anthropic::model("m").base_url(url))),
        ("Gemini", agent(gemini::model("m").base_url(url))),
    ];
    for (name, agent) in wires {
        let what =
            format!("CPU per round on {name}, {rounds} rounds, beside a bare loop of chat completions");
        table.ratio(&what, "µs", figures(&agent, url, rounds).await?, 1.5);
    }
    Ok(())
}

/// The medians of both, in turns.
async fn figures(agent: &Agent, url: &str, rounds: usize) -> anyhow::Result<(f64, f64)> {
    const REPEATS: usize = 9;
    const RUNS: usize = 1000;
    let runs = RUNS / rounds;
    let client = Client::new();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let began = cpu_now();
        for _ in 0..runs {
            anyhow::ensure!(bare::run(&client, url).await? == rounds, "the bare loop ended early");
        }
        theirs.push((cpu_now() - began) / (runs * rounds) as f64);
        let began = cpu_now();
        for _ in 0..runs {
            one(agent).await?;
        }
        ours.push((cpu_now() - began) / (runs * rounds) as f64);
    }
    Ok((median(ours), median(theirs)))
}

pub(crate) async fn throughput(table: &mut Table, url: &str) -> anyhow::Result<()> {
    const AT_ONCE: usize = 64;
    const EACH: usize = 4;
    const ROUNDS: usize = 20;
    const REPEATS: usize = 5;
    let (client, agent) = (Client::new(), agent(openai::model("m").base_url(url)));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let rate = |began: Instant| (AT_ONCE * EACH * ROUNDS) as f64 / began.elapsed().as_secs_f64();
    for _ in 0..REPEATS {
        let began = Instant::now();
        let mut running = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (client, url) = (client.clone(), url.to_owned());
            running.spawn(async move {
                for _ in 0..EACH {
                    bare::run(&client, &url).await?;
                }
                anyhow::Ok(())
            });
        }
        join(running).await?;
        theirs.push(rate(began));
        let began = Instant::now();
        let mut running = JoinSet::new();
        for _ in 0..AT_ONCE {
            let agent = agent.clone();
            running.spawn(async move {
                for _ in 0..EACH {
                    one(&agent).await?;
                }
                anyhow::Ok(())
            });
        }
        join(running).await?;
        ours.push(rate(began));
    }
    table.rate("throughput of 64 agents at once", "rounds/s", (median(ours), median(theirs)), 0.8);
    Ok(())
}

/// A round of 100 tools that take 10 ms each, and the model calls around it.
pub(crate) async fn parallel_tools(table: &mut Table) -> anyhow::Result<()> {
    const REPEATS: usize = 15;
    const TOOLS: usize = 100;
    let calls = (0..TOOLS).fold(Reply::default(), |reply, _| reply.and_call("nap", json!({})));
    let mut took = Vec::new();
    for _ in 0..REPEATS {
        let server = ModelServer::start(Script::of([calls.clone(), Reply::text("ok")])).await?;
        let nap = tool::from_fn("nap", "naps", |_cx, (): ()| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok("ok")
        });
        let limits = Limits { parallel_calls: TOOLS, ..Limits::default() };
        let model = openai::model("m").base_url(server.url());
        let nap = nap.with(|spec| spec.effect(EffectClass::ReadOnly));
        let agent = Agent::builder(model).limits(limits).tool(nap).build();
        took.push(timing::took(one(&agent)).await? / 1e3);
    }
    table.alone("100 parallel tools of 10 ms, both model calls included", "ms", median(took), 15.0);
    Ok(())
}
