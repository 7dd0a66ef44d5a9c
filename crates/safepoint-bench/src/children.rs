//! What a child run costs beside a plain call, and how fast a stop reaches a wide and a deep tree of them.
//! The times end when the stop is in force in every leaf, when the last leaf's work sees it, and when the
//! last leaf's exchange is dropped.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::ensure;
use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, AgentBuilder, Halt, Limits, Model, StopRequest, ToolContext,
    approval::ApprovalMode,
    history::Message,
    message::ToolCall,
    model::{Delta, Finish},
    stop::Reach,
    tool::{self, EffectClass, OnStop},
};
use safepoint_scope::Scope;
use tokio::sync::Notify;

use crate::{figures::median, models::model, quiet::passes, table::Table, timing::micros};

/// Children of a fan, and of each node of a tree.
const FAN: usize = 10_000;
const BRANCHES: usize = 10;
const LEVELS: u32 = 4;

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    cost(table).await?;
    let whole = || (wide(FAN), FAN);
    stop(table, "a fan of 10,000 children", whole).await?;
    let tenth = || (wide(FAN / 10), FAN / 10);
    stop(table, "a fan of 1,000 children", tenth).await?;
    let deep = || {
        let leaves = Arc::new(Leaves::default());
        let leaf = Agent::builder(silent(&leaves)).build();
        (Tree { root: branch(LEVELS, &leaf), leaves }, BRANCHES.pow(LEVELS))
    };
    stop(table, "a tree of four levels of ten, 11,110 runs", deep).await?;
    reach(table, "a fan of 1,000 children", |leaf| fan(FAN / 10, leaf), Live::fan(FAN / 10)).await?;
    reach(table, "a fan of 10,000 children", |leaf| fan(FAN, leaf), Live::fan(FAN)).await?;
    let below: usize = (1..=LEVELS).map(|level| BRANCHES.pow(level)).sum();
    let deep = Live { leaves: BRANCHES.pow(LEVELS), runs: 1 + below };
    reach(table, "a tree of four levels of ten, 11,110 runs", |leaf| branch(LEVELS, leaf), deep).await
}

/// How much of a tree is alive when its leaves' calls are.
#[derive(Clone, Copy)]
struct Live {
    leaves: usize,
    /// All of them, the root and the leaves included.
    runs: usize,
}

impl Live {
    fn fan(children: usize) -> Self {
        Self { leaves: children, runs: 1 + children }
    }

    /// Calls and runs: each run but the root is in a call, and each leaf has a call in itself.
    fn nodes(self) -> usize {
        self.runs + (self.runs - 1) + self.leaves
    }
}

/// An agent whose leaves wait on streams that never speak.
struct Tree {
    root: Agent,
    leaves: Arc<Leaves>,
}

/// Counts the streams that wait, and notes when the last one was dropped.
#[derive(Default)]
struct Leaves {
    waiting: AtomicUsize,
    changed: Notify,
    /// Held for one entry or one look.
    last: Mutex<Option<Instant>>,
}

struct WaitingLeaf(Arc<Leaves>);

impl Drop for WaitingLeaf {
    fn drop(&mut self) {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        // After the note: a reader that finds none waiting finds the time of the last. SeqCst for simplicity.
        if self.0.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.changed.notify_waiters();
        }
    }
}

/// Never says anything.
fn silent(leaves: &Arc<Leaves>) -> impl Model {
    let leaves = Arc::clone(leaves);
    model(move |_| {
        // SeqCst for simplicity. Counted before the notification: a waiter that registers and then looks
        // misses none.
        leaves.waiting.fetch_add(1, Ordering::SeqCst);
        leaves.changed.notify_waiters();
        let waits = WaitingLeaf(Arc::clone(&leaves));
        stream::iter([Ok(Delta::Sent)])
            .chain(stream::pending())
            .map(move |delta| {
                let _held = &waits;
                delta
            })
            .boxed()
    })
}

/// Asks for a fixed number of calls of `work` in each of a fixed number of rounds, and then answers.
fn asks(calls: usize, rounds: usize) -> AgentBuilder {
    let most = calls.max(1);
    let limits =
        Limits::default().with_parallel_calls(most).with_message_calls(most).with_max_rounds(u32::MAX);
    let asks = model(move |history| {
        let done =
            history.entries().iter().filter(|entry| matches!(&***entry, Message::Results { .. })).count();
        let mut reply = vec![Ok(Delta::Sent), Ok(Delta::Opened)];
        if done < rounds {
            reply.extend((0..calls).map(|n| {
                let id = format!("c{done}-{n}").into();
                Ok(Delta::CallReady(ToolCall { id, name: "work".into(), args: r#"{"task":"it"}"#.into() }))
            }));
        } else {
            reply.push(Ok(Delta::Text("done".into())));
        }
        reply.push(Ok(Delta::Ended(Finish::Natural)));
        stream::iter(reply).boxed()
    });
    Agent::builder(asks).approvals(ApprovalMode::Auto).limits(limits)
}

fn wide(children: usize) -> Tree {
    let leaves = Arc::new(Leaves::default());
    let leaf = Agent::builder(silent(&leaves)).build();
    Tree { root: fan(children, &leaf), leaves }
}

fn fan(children: usize, leaf: &Agent) -> Agent {
    asks(children, 1).child(leaf.as_subagent("work", "works")).build()
}

fn branch(levels: u32, leaf: &Agent) -> Agent {
    match levels {
        1 => fan(BRANCHES, leaf),
        _ => fan(BRANCHES, &branch(levels - 1, leaf)),
    }
}

/// The leaves' running calls: what each sees of a stop, and when.
#[derive(Default)]
struct Calls {
    /// Held for one entry, or by the measurement to count and to take; nothing is awaited under it.
    scopes: Mutex<Vec<Scope>>,
    /// As `scopes`, and never held together with it.
    noticed: Mutex<Vec<Instant>>,
}

/// An agent with one call, which does nothing until it sees a stop.
fn listens(calls: &Arc<Calls>) -> Agent {
    let calls = Arc::clone(calls);
    let body = move |cx: ToolContext, _: serde_json::Value| {
        let calls = Arc::clone(&calls);
        async move {
            calls.scopes.lock().unwrap_or_else(PoisonError::into_inner).push(cx.scope().clone());
            let stop = cx.stopped().await;
            calls.noticed.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            Err::<&str, _>(Halt::Stop(stop))
        }
    };
    let cooperates = OnStop::Cooperate(Some(PATIENCE));
    asks(1, 1).tool(tool::from_fn("work", "works", body).with(|spec| spec.on_stop(cooperates))).build()
}

/// How long a call may take to see a stop: more than any does.
const PATIENCE: Duration = Duration::from_secs(60);

/// Microseconds until the stop is in force in every leaf's scope, so that nothing can begin there any more, and until the last
/// leaf's call has been woken by it and knows: divided by the runs, and by all that is alive, calls and runs.
async fn reach(
    table: &mut Table,
    what: &str,
    tree: impl Fn(&Agent) -> Agent,
    live: Live,
) -> anyhow::Result<()> {
    const UNTIL: [&str; 2] = ["it is in force in every leaf's scope", "the last leaf's call has seen it"];
    let runs = passes(async || {
        let calls = Arc::new(Calls::default());
        let handle = tree(&listens(&calls)).run("go").detach();
        while calls.scopes.lock().unwrap_or_else(PoisonError::into_inner).len() < live.leaves {
            tokio::task::yield_now().await;
        }
        let scopes = std::mem::take(&mut *calls.scopes.lock().unwrap_or_else(PoisonError::into_inner));
        let asked = Instant::now();
        handle.stop(StopRequest::now().with_reach(Reach::Tree));
        let reached = scopes.iter().filter(|scope| scope.is_stopping()).count();
        let in_force = micros(asked.elapsed());
        ensure!(reached == live.leaves, "a leaf's scope does not know of the stop");
        drop(handle.done().await);
        let last = calls.noticed.lock().unwrap_or_else(PoisonError::into_inner).iter().max().copied();
        let noticed = last.map_or(Duration::ZERO, |last| last.duration_since(asked));
        handle.quiet().await;
        Ok([in_force, micros(noticed)])
    });
    let runs = runs.await?;
    let per = |count: usize, at: usize| runs.figures(|took| took[at] / count as f64);
    let what = |until: &str, each: &str| format!("stop of {what}: until {until}, {each}");
    for (at, until) in UNTIL.iter().enumerate() {
        table.alone(&what(until, "a run"), "µs", per(live.runs, at), 5.0);
        table.beside(&what(until, "a node (a call or a run)"), "µs", per(live.nodes(), at));
    }
    if live.leaves == FAN {
        table.goal_alone(&what("the last leaf of 10,000 knows", "a run"), "µs", per(live.runs, 1), 3.0);
    }
    Ok(())
}

/// Microseconds a leaf until the last leaf's exchange was dropped, and until the root has its outcome.
async fn stop(table: &mut Table, what: &str, tree: impl Fn() -> (Tree, usize)) -> anyhow::Result<()> {
    let runs = passes(async || {
        let (Tree { root, leaves }, count) = tree();
        let handle = root.run("go").detach();
        // SeqCst: see where it is counted. The second look is after the registration.
        while leaves.waiting.load(Ordering::SeqCst) < count {
            let changed = leaves.changed.notified();
            if leaves.waiting.load(Ordering::SeqCst) < count {
                changed.await;
            }
        }
        let asked = Instant::now();
        handle.stop(StopRequest::now().with_reach(Reach::Tree));
        drop(handle.done().await);
        let settled = per(asked.elapsed(), count);
        // SeqCst: pairs with the drops, so what the last one noted is seen.
        while leaves.waiting.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
        let last = *leaves.last.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = per(last.map_or(Duration::ZERO, |last| last.duration_since(asked)), count);
        handle.quiet().await;
        Ok([reached, settled])
    });
    let runs = runs.await?;
    let [reached, settled] = [0, 1].map(|at| runs.figures(|figures| figures[at]));
    let what = |until: &str| format!("stop of {what}: until {until}, a leaf");
    table.alone(&what("the last exchange is dropped"), "µs", reached, 5.0);
    table.alone(&what("the root has its outcome"), "µs", settled, 100.0);
    Ok(())
}

/// A child run beside a plain call, both without the model calls around and inside.
async fn cost(table: &mut Table) -> anyhow::Result<()> {
    const CALLS: usize = 200;
    const REPEATS: usize = 3;
    let plain = || {
        tool::from_fn("work", "works", |_cx, _: serde_json::Value| async { Ok("done") })
            .with(|spec| spec.effect(EffectClass::ReadOnly))
    };
    let rounds = asks(1, CALLS).tool(plain()).build();
    let plain = asks(CALLS, 1).tool(plain()).build();
    let child = asks(0, 0).build().as_subagent("work", "works");
    let children = asks(CALLS, 1).child(child).build();
    let runs = passes(async || {
        let (mut plains, mut kids) = (Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            let (one, all, nested) = (time(&plain).await, time(&rounds).await, time(&children).await);
            let model = (all - one) / (CALLS - 1) as f64;
            let call = |whole: f64| (whole - 2.0 * model) / CALLS as f64;
            plains.push(call(one));
            kids.push(call(nested) - model);
        }
        Ok([median(kids), median(plains)])
    });
    let runs = runs.await?;
    let [kids, plains] = [0, 1].map(|at| runs.figures(|figures| figures[at]));
    let added = kids.less(&plains);
    table.ratio("a child run beside a plain call, model calls not counted", "µs", (kids, plains), 2.0);
    table.goal_alone("a child beyond a plain call, model calls not counted", "µs", added, 5.0);
    Ok(())
}

/// Microseconds of one run, until its outcome.
async fn time(agent: &Agent) -> f64 {
    let began = Instant::now();
    let outcome = agent.run("go").await;
    let took = per(began.elapsed(), 1);
    assert!(outcome.answer().is_some(), "{outcome:?}");
    took
}

fn per(took: Duration, count: usize) -> f64 {
    micros(took) / count as f64
}
