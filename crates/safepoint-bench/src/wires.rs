//! The other wires: CPU of a round, beside the bare loop of chat completions over `reqwest`.

use safepoint::{
    Agent, Limits, Model,
    receipt::Ending,
    tool::{self, EffectClass, FnTool},
};
use safepoint_models::{anthropic, gemini, responses};

use crate::{
    bare::ReqwestLoop,
    figures::median,
    peer::{Peer as _, Running as _},
    race::{Pinned, Race},
    table::Table,
    timing::cpu_time,
    wire_server::WireServer,
};

const ROUNDS: usize = 20;
const MOST: f64 = 1.5;

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    let (server, race) = (WireServer::start(ROUNDS)?, Race::start(Pinned::Nowhere)?);
    let bare = ReqwestLoop::to(race.url())?;
    let wires = [
        ("Responses", agent(responses::model("m").base_url(&server.url))),
        ("Anthropic messages", agent(anthropic::model("m").base_url(&server.url))),
        ("Gemini", agent(gemini::model("m").base_url(&server.url))),
    ];
    for (name, agent) in wires {
        let what =
            format!("CPU per round on {name}, {ROUNDS} rounds, beside a bare loop of chat completions");
        table.ratio(&what, "µs", figures(&agent, &bare).await?, MOST);
    }
    Ok(())
}

/// The medians of both, in turns.
async fn figures(agent: &Agent, bare: &ReqwestLoop) -> anyhow::Result<(f64, f64)> {
    const REPEATS: usize = 9;
    const RUNS: usize = 50;
    let per = |began: f64| (cpu_time() - began) / (RUNS * ROUNDS) as f64;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let began = cpu_time();
        for _ in 0..RUNS {
            let run = bare.begin(format!("do:chain {ROUNDS}"));
            anyhow::ensure!(run.ended().await, "the bare loop failed");
        }
        theirs.push(per(began));
        let began = cpu_time();
        for _ in 0..RUNS {
            let outcome = agent.run("go").await;
            anyhow::ensure!(outcome.ending() == Ending::Done, "{outcome:?}");
        }
        ours.push(per(began));
    }
    Ok((median(ours), median(theirs)))
}

fn agent(model: impl Model) -> Agent {
    let limits = Limits::default().with_max_rounds(1000);
    Agent::builder(model).limits(limits).tool(noop()).build()
}

fn noop() -> FnTool {
    tool::from_fn("noop", "does nothing", |_cx, _args: serde_json::Map<String, serde_json::Value>| async {
        Ok("ok")
    })
    .with(|spec| spec.effect(EffectClass::ReadOnly))
}
