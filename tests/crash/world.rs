//! What the processes do: an agent with tools of every kind that write a ledger, on a session in a file.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use safepoint::{
    Agent, AgentBuilder, ToolContext,
    approval::{ApprovalMode, ToolApproval, WithoutApprover},
    ids::SessionId,
    raw::store::Environment,
    store::Store as _,
    tool::{EffectClass, FnTool, from_fn},
};
use safepoint_models::openai;
use safepoint_stores::{
    SqliteStore,
    sqlite::{Moment, SqliteOptions},
};
use safepoint_testkit::{
    script::{Reply, Script},
    wait,
};
use serde_json::json;

use super::{
    plot::{Agents, Plot, Stop, Wish},
    process::{Death, Task},
};

/// How often a process that waits for another one looks.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

pub(crate) fn session() -> SessionId {
    SessionId::from("s")
}

/// The run of another agent, as a tool.
pub(crate) const HELPER: &str = "helper";
/// What it answers.
pub(crate) const HELPED: &str = "the half is done";

/// What the model says. The steer may come before or after the question, or as a separate turn.
pub(crate) fn script(agents: Agents) -> Script {
    let calls = Reply::call("look", json!({})).and_call("set", json!({}));
    let (calls, all) = match agents {
        Agents::Alone => (calls, 4),
        Agents::Attached | Agents::Background => (calls.and_call(HELPER, json!({"task": "half"})), 5),
    };
    let calls = calls.and_call("bill", json!({})).and_call("pay", json!({}));
    let send = || Reply::call("send", json!({}));
    let inside = Reply::call("put", json!({})).and_call("charge", json!({})).and_call("wire", json!({}));
    Script::of([
        calls.when("go", 0),
        send().when("go", all),
        Reply::text("done").when("go", all + 1),
        inside.when("half", 0),
        Reply::text(HELPED).when("half", 3),
        send().when("also", 0),
        Reply::text("done too").when("also", 1),
    ])
}

/// The tools' own account of what they did, outside the engine.
#[derive(Clone)]
struct Ledger {
    path: PathBuf,
    death: Option<Death>,
    effects: Arc<AtomicUsize>,
}

impl Ledger {
    fn write(&self, mark: &str, cx: &ToolContext) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
        // In one write: who looks meanwhile sees whole lines.
        let line = format!("{mark} {} {} {}\n", cx.call_id(), cx.idempotency_key(), cx.name());
        file.write_all(line.as_bytes()).unwrap();
    }

    /// One moment of an effect: before it, in it, after it.
    fn moment(&self) {
        let number = self.effects.fetch_add(1, Ordering::SeqCst);
        if self.death == Some(Death::Effect(number)) {
            die();
        }
    }

    fn tool(&self, name: &str, effect: EffectClass, approval: ToolApproval) -> FnTool {
        let ledger = self.clone();
        from_fn(name, "writes a ledger", move |cx: ToolContext, (): ()| {
            let ledger = ledger.clone();
            async move {
                ledger.moment();
                ledger.write("enter", &cx);
                ledger.moment();
                ledger.write("commit", &cx);
                ledger.moment();
                Ok("ok")
            }
        })
        .with(|spec| spec.effect(effect).approval(approval))
    }

    /// Pays, once it may, and once the stop of the plot has arrived.
    fn pay(&self, task: &Task) -> FnTool {
        let (ledger, task) = (self.clone(), task.clone());
        let pay = from_fn("pay", "pays, when it is let", move |cx: ToolContext, (): ()| {
            let (ledger, task) = (ledger.clone(), task.clone());
            async move {
                ledger.moment();
                ledger.write("enter", &cx);
                if let Stop::InThePayment(wish) = task.plot.stop {
                    wished(&task, wish).await;
                }
                while task.waits().exists() {
                    tokio::time::sleep(LOOK).await;
                }
                ledger.moment();
                ledger.write("commit", &cx);
                ledger.moment();
                Ok("ok")
            }
        });
        pay.with(|spec| spec.effect(EffectClass::Unsafe))
    }

    /// Sends, when it is let, in a later round than the payment.
    fn send(&self, task: &Task) -> FnTool {
        let (ledger, task) = (self.clone(), task.clone());
        let send = from_fn("send", "sends, when it is let", move |cx: ToolContext, (): ()| {
            let (ledger, task) = (ledger.clone(), task.clone());
            async move {
                ledger.moment();
                ledger.write("enter", &cx);
                if let Stop::InTheTransfer(wish) = task.plot.stop {
                    wished(&task, wish).await;
                }
                ledger.moment();
                ledger.write("commit", &cx);
                ledger.moment();
                Ok("ok")
            }
        });
        send.with(|spec| spec.effect(EffectClass::Unsafe).approval(ToolApproval::Required))
    }
}

/// Asks for the stop of the plot, once in the session's life, and waits until its owner has passed it on to
/// the turn: it is noted as seen to only when it has come to its end, which a graceful one does after this
/// payment.
async fn wished(task: &Task, wish: Wish) {
    let other = SqliteStore::open(&task.store).unwrap();
    if other.stops(&session(), 0).await.unwrap().is_empty() {
        other.ask_stop(&session(), wish.intent()).await.unwrap();
    }
    while other.stops(&session(), 0).await.unwrap().iter().any(|stop| !stop.seen) {
        if super::judge::lines_since(&other, 0).await.iter().any(|line| line.fact["fact"] == "stop_asked") {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn die() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    loop {
        std::thread::park();
    }
}

fn builder(task: &Task) -> AgentBuilder {
    Agent::builder(openai::model("m").base_url(&task.url))
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
}

pub(crate) fn agent(task: &Task) -> Agent {
    let effects = Arc::new(AtomicUsize::new(0));
    let ledger = Ledger { path: task.ledger.clone(), death: task.death, effects };
    let agent = builder(task)
        .tool(ledger.tool("look", EffectClass::ReadOnly, ToolApproval::NotNeeded))
        .tool(ledger.tool("set", EffectClass::Idempotent, ToolApproval::NotNeeded))
        .tool(ledger.tool("bill", EffectClass::Keyed, ToolApproval::Required))
        .tool(ledger.pay(task))
        .tool(ledger.send(task));
    let inside = || {
        let agent = builder(task)
            .tool(ledger.tool("put", EffectClass::Idempotent, ToolApproval::NotNeeded))
            .tool(ledger.tool("charge", EffectClass::Keyed, ToolApproval::Required))
            .tool(ledger.tool("wire", EffectClass::Unsafe, ToolApproval::NotNeeded));
        agent.build().as_subagent(HELPER, "does the half")
    };
    match task.plot.agents {
        Agents::Alone => agent.build(),
        Agents::Attached => agent.child(inside()).build(),
        Agents::Background => agent.child(inside().background()).build(),
    }
}

pub(crate) fn store(task: &Task) -> SqliteStore {
    let mut options = SqliteOptions::default();
    let (count, task_death, is_plain) = (AtomicUsize::new(0), task.death, task.plot == Plot::PLAIN);
    let pause = task.pause;
    options.probe = Some(Arc::new(move |moment| {
        // What is between is the store's own affair, and tested with it.
        let counts = match moment {
            Moment::Begin | Moment::Committed => true,
            // After all replies the next moment is the next write's beginning: one plot is enough for what is
            // between.
            Moment::Reported => is_plain,
            _ => false,
        };
        if !counts {
            return Ok(());
        }
        let number = count.fetch_add(1, Ordering::SeqCst);
        if task_death == Some(Death::Moment(number)) {
            die();
        }
        if pause == Some(number) {
            let here = rustix::process::getpid();
            rustix::process::kill_process(here, rustix::process::Signal::STOP).unwrap();
            // The disk wakes later than the processor: a task that waits for it sees first that its time is
            // over.
            let woken = std::time::Instant::now();
            wait::until("the disk is awake", || woken.elapsed() >= Duration::from_millis(500));
        }
        Ok(())
    }));
    let later = Duration::from_secs(task.ahead);
    let ahead = jiff::SignedDuration::try_from(later + Duration::from_secs(task.set_ahead)).unwrap();
    options.outside = Environment {
        clock: Arc::new(move || jiff::Timestamp::now() + ahead),
        uptime: Arc::new(move |owner| owner.uptime().map(|up| up + later)),
        ..Environment::default()
    };
    SqliteStore::open_with(&task.store, options).unwrap()
}

pub(crate) fn has_begun(ledger: &Path) -> bool {
    std::fs::read_to_string(ledger).is_ok_and(|text| text.contains("enter"))
}
