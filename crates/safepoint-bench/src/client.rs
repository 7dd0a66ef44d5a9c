//! A client of the comparison: a process that runs one kind of loop through one measure, and prints a line of figures for
//! each repetition.

use std::time::Duration;

use anyhow::Context as _;
use safepoint::{
    Agent, Limits, RunHandle, StopRequest,
    receipt::Ending,
    tool::{self, EffectClass},
};
use safepoint_models::openai;

mod crowd;
mod rounds;
mod stops;

use crate::{
    bare::{HyperLoop, ReqwestLoop},
    cpus::Cpu,
    peer::{Peer, Running},
    process::allow_files,
    serving::Count,
    tools,
};

/// The hidden argument that makes this program a client: the kind, the processor, the server's two addresses, and the measure
/// with its numbers follow.
pub(crate) const CLIENT: &str = "__client";

/// The loops, in the order of the table's columns.
pub(crate) const KINDS: [&str; 3] = ["hyper", "reqwest", "ours"];

/// Safepoint, as a user writes it.
#[derive(Clone)]
pub(crate) struct Ours(Agent);

impl Ours {
    pub(crate) fn to(url: &str) -> Self {
        let echo =
            tool::from_fn(tools::ECHO, "Returns its text", |_cx, args| async { Ok(tools::echo(args)) });
        let nap = tool::from_fn(tools::NAP, "Naps", |_cx, args| async { Ok(tools::nap(args).await) });
        let limits = Limits::default().with_max_rounds(1_000_000).with_parallel_calls(100);
        let agent = Agent::builder(openai::model("m").base_url(url).api_key("key".into()))
            .limits(limits)
            .tool(echo.with(|spec| spec.effect(EffectClass::ReadOnly)))
            .tool(nap.with(|spec| spec.effect(EffectClass::ReadOnly)));
        Self(agent.build())
    }
}

impl Peer for Ours {
    type Run = RunHandle;

    fn begin(&self, ask: String) -> RunHandle {
        self.0.run(ask).detach()
    }
}

impl Running for RunHandle {
    fn stop(&self) {
        Self::stop(self, StopRequest::now());
    }

    async fn ended(self) -> bool {
        self.done().await.ending() == Ending::Done
    }
}

/// What a measure works with.
struct Site<P> {
    peer: P,
    count: Count,
    numbers: Vec<usize>,
}

impl<P> Site<P> {
    fn number(&self, at: usize) -> anyhow::Result<usize> {
        self.numbers.get(at).copied().context("a number is missing")
    }
}

/// Runs a measure, as the arguments after [`CLIENT`] say.
pub(crate) fn run(mut args: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut next = || args.next().context("an argument is missing");
    let (kind, cpu, url, control, measure) = (next()?, next()?, next()?, next()?, next()?);
    Cpu::of(&cpu)?.pin()?;
    allow_files()?;
    let numbers = args.map(|number| number.parse()).collect::<Result<_, _>>()?;
    let runtime = match kind.as_str() {
        // All of its agents' work is in one thread: what this loop is at its best.
        "hyper" => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        _ => tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
    };
    runtime.block_on(async {
        let count = Count::of(&control).await?;
        let measured = async {
            match kind.as_str() {
                "hyper" => measure_one(&measure, Site { peer: HyperLoop::to(&url), count, numbers }).await,
                "reqwest" => {
                    measure_one(&measure, Site { peer: ReqwestLoop::to(&url)?, count, numbers }).await
                }
                "ours" => measure_one(&measure, Site { peer: Ours::to(&url), count, numbers }).await,
                other => anyhow::bail!("there is no loop `{other}`"),
            }
        };
        tokio::time::timeout(BOUND, measured).await.context("the measure did not end")?
    })
}

/// How long a measure may take.
const BOUND: Duration = Duration::from_secs(120);

async fn measure_one<P: Peer>(measure: &str, site: Site<P>) -> anyhow::Result<()> {
    match measure {
        "chain" => rounds::chain(site).await,
        "fan" => rounds::fan(site).await,
        "drip" | "hang" | "stall" | "nap" => stops::stops(site, measure).await,
        "crowd" => crowd::crowd(site).await,
        other => anyhow::bail!("there is no measure `{other}`"),
    }
}

/// One line of the client's output.
fn print(figures: &[f64]) {
    println!("{}", figures.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
}
