//! The steps that are measured: each function gives points of how much was before, and what a step then cost in microseconds.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::ensure;
use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, AgentBuilder, Limits, Model, Session, StopRequest, Tool,
    approval::ApprovalMode,
    ids::SessionId,
    message::ToolCall,
    model::{Delta, Finish},
    receipt::Ending,
    session::{ChatPlanner, ItemOutcome, SessionStop},
    stop::Reach,
    store::{OwnerProcess, Store},
    tool::{self, EffectClass, FnTool},
};
use safepoint_stores::SqliteStore;

use crate::{figures::median, models::model, timing::micros};

type Points = Vec<(f64, f64)>;

/// How many points a plot has at the most.
const POINTS: usize = 200;

/// When a model was asked.
#[derive(Clone, Default)]
struct AskLog(Arc<AskTimes>);

#[derive(Default)]
struct AskTimes {
    /// Held for one entry, or to take all.
    times: Mutex<Vec<Instant>>,
}

impl AskLog {
    /// Notes one; how many there were before.
    fn note(&self) -> usize {
        let mut times = self.0.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.push(Instant::now());
        times.len() - 1
    }

    fn count(&self) -> usize {
        self.0.times.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn take(&self) -> Vec<Instant> {
        std::mem::take(&mut *self.0.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What lies between two moments each, as the mean of as many as make a point.
fn between(times: &[Instant], each: usize) -> Points {
    let ends: Vec<&Instant> = times.iter().step_by(each).collect();
    let point = |(index, pair): (usize, &[&Instant])| {
        ((index * each) as f64, micros(pair[1].duration_since(*pair[0])) / each as f64)
    };
    ends.windows(2).enumerate().map(point).collect()
}

/// Asks for one call of the tool `work` in each round but each `turn`th, in which it answers. It counts what it was asked by
/// itself, since looking through the history would grow with it.
fn asks(asked: &AskLog, turn: usize) -> impl Model {
    let asked = asked.clone();
    model(move |_| {
        let number = asked.note();
        let said = if number % turn == turn - 1 {
            Delta::Text("done".into())
        } else {
            let id = format!("c{number}").into();
            Delta::CallReady(ToolCall { id, name: "work".into(), args: "{}".into() })
        };
        let reply = [Delta::Sent, Delta::Opened, said, Delta::Ended(Finish::Natural)];
        stream::iter(reply.map(Ok)).boxed()
    })
}

fn builder(model: impl Model) -> AgentBuilder {
    let limits = Limits::default().with_max_rounds(u32::MAX);
    Agent::builder(model).limits(limits).approvals(ApprovalMode::Auto)
}

fn work(name: String) -> FnTool {
    tool::from_fn(name, "works", |_cx, (): ()| async { Ok("ok") })
        .with(|spec| spec.effect(EffectClass::ReadOnly))
}

async fn run(agent: &Agent) -> anyhow::Result<()> {
    let outcome = agent.run("go").await;
    ensure!(outcome.ending() == Ending::Done, "{:?}", outcome.ending());
    Ok(())
}

const ROUNDS: usize = 100_000;

/// One run.
pub(super) async fn rounds() -> anyhow::Result<Points> {
    let asked = AskLog::default();
    run(&builder(asks(&asked, ROUNDS)).tool(work("work".to_owned())).build()).await?;
    Ok(between(&asked.take(), ROUNDS / POINTS))
}

/// Turns of one session in a file.
pub(super) async fn session() -> anyhow::Result<Points> {
    const TURN: usize = 50;
    let (asked, folder) = (AskLog::default(), tempfile::tempdir()?);
    let agent = builder(asks(&asked, TURN)).tool(work("work".to_owned())).build();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("grows.db"))?);
    let session = Session::builder(ChatPlanner::new(agent));
    let session = session.open(store, SessionId::from("grows"), OwnerProcess::here()).await?;
    for _ in 0..ROUNDS / TURN {
        let ticket = session.push("go".to_owned()).map_err(|refused| anyhow::anyhow!("{refused:?}"))?;
        let fate = ticket.outcome().await;
        ensure!(matches!(fate, ItemOutcome::Completed(_)), "the turn came to {fate:?}");
    }
    drop(session.stop(SessionStop::at_turn_end()));
    session.done().await;
    Ok(between(&asked.take(), ROUNDS / POINTS))
}

const TOOLS: usize = 10_000;

/// As many tools as are declared at the most, made once.
fn many_tools() -> Vec<Arc<dyn Tool>> {
    (0..TOOLS).map(|number| Arc::new(work(format!("other_{number}"))) as Arc<dyn Tool>).collect()
}

/// How many tools are declared, point by point.
fn counts() -> impl Iterator<Item = usize> {
    (0..=TOOLS).step_by(TOOLS / POINTS * 2).skip(1)
}

/// A round of an agent with more and more tools.
pub(super) async fn tools() -> anyhow::Result<Points> {
    const RUN: usize = 40;
    let (others, mut points) = (many_tools(), Points::new());
    for count in counts() {
        let asked = AskLog::default();
        let agent = builder(asks(&asked, RUN)).tool(work("work".to_owned()));
        run(&agent.tools(others[1..count].iter().cloned()).build()).await?;
        let rounds = between(&asked.take(), 1).into_iter().map(|(_, cost)| cost);
        points.push((count as f64, median(rounds.collect())));
    }
    Ok(points)
}

/// Building an agent with more and more tools: each point is the whole, divided by their number.
pub(super) fn declared() -> Points {
    let tools = many_tools();
    let point = |count: usize| {
        let tools = tools[..count].to_vec();
        let began = Instant::now();
        let agent = builder(asks(&AskLog::default(), 1)).tools(tools).build();
        let each = micros(began.elapsed()) / count as f64;
        drop(agent);
        (count as f64, each)
    };
    counts().map(point).collect()
}

/// Children of one parent, all alive: from one child's model being asked until the next one's is.
pub(super) async fn children() -> Points {
    const CHILDREN: usize = 1000;
    const EACH: usize = 10;
    const REPEATS: usize = 15;
    let mut all: Vec<Points> = Vec::new();
    for _ in 0..REPEATS {
        let asked = AskLog::default();
        let noted = asked.clone();
        let leaf = Agent::builder(model(move |_| {
            noted.note();
            stream::iter([Ok(Delta::Sent)]).chain(stream::pending()).boxed()
        }))
        .build();
        let limits = Limits::default().with_parallel_calls(CHILDREN).with_message_calls(CHILDREN);
        let parent = Agent::builder(model(|_| {
            let call = |number: usize| {
                let (id, args) = (format!("c{number}").into(), r#"{"task":"it"}"#.into());
                Ok(Delta::CallReady(ToolCall { id, name: "work".into(), args }))
            };
            stream::iter([Ok(Delta::Sent), Ok(Delta::Opened)])
                .chain(stream::iter((0..CHILDREN).map(call)))
                .chain(stream::iter([Ok(Delta::Ended(Finish::Natural))]))
                .boxed()
        }));
        let parent =
            parent.limits(limits).approvals(ApprovalMode::Auto).child(leaf.as_subagent("work", "works"));
        let handle = parent.build().run("go").detach();
        while asked.count() < CHILDREN {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        handle.stop(StopRequest::now().with_reach(Reach::Tree));
        drop(handle.done().await);
        handle.quiet().await;
        all.push(between(&asked.take(), EACH));
    }
    let middle = |at: usize| {
        (all[0][at].0, median(all.iter().filter_map(|points| points.get(at)).map(|point| point.1).collect()))
    };
    (0..all[0].len()).map(middle).collect()
}

/// A tool whose every output is a MiB, which is too long for a model.
pub(super) async fn spilled() -> anyhow::Result<Points> {
    const OUTPUTS: usize = 1024;
    const BYTES: usize = 1 << 20;
    let (asked, output) = (AskLog::default(), "spilled ".repeat(BYTES / 8));
    let tool = tool::from_fn("work", "says much", move |_cx, (): ()| {
        let output = output.clone();
        async move { Ok(output) }
    });
    let tool = tool.with(|spec| spec.effect(EffectClass::ReadOnly));
    run(&builder(asks(&asked, OUTPUTS + 1)).tool(tool).build()).await?;
    Ok(between(&asked.take(), OUTPUTS.div_ceil(POINTS)))
}
