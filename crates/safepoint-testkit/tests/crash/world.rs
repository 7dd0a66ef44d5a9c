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
    Agent, Cx,
    approval::{Approval, Approvals, Decision, Unanswered},
    ids::SessionId,
    session::{Chat, ExitReason, Policy, Push, Session, SessionStop},
    store::{ApprovalState, Error, Outside, Owner, Store},
    tool::{EffectClass, FnTool, from_fn},
};
use safepoint_models::openai;
use safepoint_stores::{
    SqliteStore,
    sqlite::{Moment, Options},
};
use safepoint_testkit::script::{Reply, Script};
use serde_json::json;

use super::process::{Death, Job, Task, say, stay, task};

/// How often whoever waits for another process looks.
const LOOK: Duration = Duration::from_millis(5);

pub(crate) fn session() -> SessionId {
    SessionId::from("s")
}

/// What the model says. The steer may come before or after the question, or as a turn of its own.
pub(crate) fn script() -> Script {
    let four = Reply::call("look", json!({}))
        .and_call("set", json!({}))
        .and_call("bill", json!({}))
        .and_call("pay", json!({}));
    let send = || Reply::call("send", json!({}));
    Script::of([
        four.when("go", 0),
        send().when("go", 4),
        Reply::text("done").when("go", 5),
        send().when("also", 0),
        Reply::text("done too").when("also", 1),
    ])
}

/// The tool's own account of what it did, outside the engine.
#[derive(Clone)]
struct Ledger {
    path: PathBuf,
    death: Option<Death>,
    effects: Arc<AtomicUsize>,
}

impl Ledger {
    fn write(&self, mark: &str, cx: &Cx) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
        writeln!(file, "{mark} {} {} {}", cx.call_id(), cx.idempotency_key(), cx.name()).unwrap();
    }

    /// One moment of an effect: before it, in it, after it.
    fn moment(&self) {
        let number = self.effects.fetch_add(1, Ordering::SeqCst);
        if self.death == Some(Death::Effect(number)) {
            die();
        }
    }

    fn tool(&self, name: &str, effect: EffectClass, approval: Approval) -> FnTool {
        let ledger = self.clone();
        from_fn(name, "writes a ledger", move |cx: Cx, (): ()| {
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
}

fn die() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    loop {
        std::thread::park();
    }
}

fn agent(task: &Task) -> Agent {
    let effects = Arc::new(AtomicUsize::new(0));
    let ledger = Ledger { path: task.ledger.clone(), death: task.death, effects };
    let waits = task.ledger.with_extension("wait");
    let pay = ledger.clone();
    let pay = from_fn("pay", "pays, when it is let", move |cx: Cx, (): ()| {
        let (ledger, waits) = (pay.clone(), waits.clone());
        async move {
            ledger.moment();
            ledger.write("enter", &cx);
            while waits.exists() {
                tokio::time::sleep(LOOK).await;
            }
            ledger.moment();
            ledger.write("commit", &cx);
            ledger.moment();
            Ok("ok")
        }
    });
    Agent::builder(openai::model("m").base_url(&task.url))
        .approvals(Approvals::Ask(None, Unanswered::Suspend))
        .tool(ledger.tool("look", EffectClass::ReadOnly, Approval::NotNeeded))
        .tool(ledger.tool("set", EffectClass::Idempotent, Approval::NotNeeded))
        .tool(ledger.tool("bill", EffectClass::Keyed, Approval::Needed))
        .tool(pay.with(|spec| spec.effect(EffectClass::Unsafe)))
        .tool(ledger.tool("send", EffectClass::Unsafe, Approval::Needed))
        .build()
}

fn store(task: &Task) -> SqliteStore {
    let mut options = Options::default();
    let (count, death) = (AtomicUsize::new(0), task.death);
    options.probe = Some(Arc::new(move |moment| {
        // What is between is the store's own affair, and tested with it.
        if matches!(moment, Moment::Begin | Moment::Committed | Moment::Told)
            && death == Some(Death::Moment(count.fetch_add(1, Ordering::SeqCst)))
        {
            die();
        }
        Ok(())
    }));
    if task.ahead > 0 {
        let ahead = jiff::SignedDuration::from_secs(i64::try_from(task.ahead).unwrap());
        options.outside =
            Outside { clock: Arc::new(move || jiff::Timestamp::now() + ahead), ..Outside::default() };
    }
    SqliteStore::open_with(&task.store, options).unwrap()
}

/// Not a test: what the processes of the other tests do.
#[test]
fn work_role() {
    let Some(task) = task() else { return };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work(task));
}

async fn work(task: Task) {
    let builder = Session::builder(Chat::new(agent(&task)));
    let store: Arc<dyn Store> = Arc::new(store(&task));
    let session = match builder.open(store, session(), Owner::here()).await {
        Ok(session) => session,
        Err(Error::Held(_, held)) => return say(format!("held by {}", held.owner.pid)),
        Err(error) => return say(error),
    };
    say("open");
    if task.job == Job::Take {
        stay();
    }
    drive(&session, &task).await;
    drop(session.stop(SessionStop::at_turn_end()));
    let exit = session.done().await;
    match exit.reason() {
        ExitReason::Failed(error) => say(format!("failed: {} ({:?})", error.message, exit.persisted())),
        _ => say("all"),
    }
}

/// Until nothing is left to do, or the session is not ours any more.
async fn drive(session: &Session<String>, task: &Task) {
    let eyes = SqliteStore::open(&task.store).unwrap();
    let mut steers = false;
    // A turn that was cut goes on before anything new comes.
    session.resume().await;
    let went = session.push(Push::new("go".to_owned()).id("go")).unwrap();
    went.recorded().await;
    while !session.is_done() {
        for row in eyes.approvals(&self::session()).await.unwrap() {
            if row.state == ApprovalState::Open
                && session.decide(&row.asked.id, Decision::Approve).await.is_err()
            {
                // It was closed meanwhile.
            }
        }
        if !steers && has_begun(&task.ledger) {
            let also = session.push(Push::new("also".to_owned()).id("also").policy(Policy::steer()));
            // A session that is over takes nothing.
            if let Ok(also) = also {
                also.recorded().await;
                steers = true;
            }
        }
        let is_resting = session.turn().is_none() && !session.resume().await;
        if steers && is_resting && eyes.inbox(&self::session()).await.unwrap().is_empty() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn has_begun(ledger: &Path) -> bool {
    std::fs::read_to_string(ledger).is_ok_and(|text| text.contains("enter"))
}
