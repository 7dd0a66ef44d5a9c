//! What a session adds to a run: from a push to the planner and the model, from a stop to the outcome; how many pushes a
//! second one takes; and what ten thousand idle ones weigh, in a process of their own.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::{
    StreamExt as _,
    future::{BoxFuture, join_all},
    stream,
};
use safepoint::{
    Agent, Model, Session, StopRequest,
    ids::TurnId,
    message::UserMessage,
    model::{Delta, Finish},
    session::{ChatPlanner, Plan, PlanContext, Planner, SessionStop},
    stop::Failure,
    store::Store,
};
use safepoint_stores::SqliteStore;
use tokio::sync::mpsc;

use crate::{
    durable,
    figures::median,
    models::model,
    process::{in_a_process, resident, resident_at_rest, switches_in},
    quiet::passes,
    table::Table,
    timing::micros,
};

/// The hidden argument that makes this program a crowd of idle sessions, or of idle tasks.
pub(crate) const IDLE: &str = "__idle";

/// Talks of one pass.
const REPEATS: usize = 101;
/// The first ones are not counted: everything is cold.
const WARM: usize = 20;
const PUSHES: usize = 100_000;
const SESSIONS: usize = 10_000;

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    talk(table).await?;
    pushes(table).await?;
    idle(table).await
}

/// Says when it was asked, and then nothing.
fn silent(asked: mpsc::UnboundedSender<Instant>) -> impl Model {
    model(move |_| {
        if asked.send(Instant::now()).is_err() {
            // The receiver is gone: the measurement is over.
        }
        stream::iter([Ok(Delta::Sent)]).chain(stream::pending()).boxed()
    })
}

/// Chat, that notes when it was asked.
/// The lock is held for one note or one look; the first note stays.
struct Noting(ChatPlanner, Arc<Mutex<Option<Instant>>>);

impl Planner<String> for Noting {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        self.0.plan(situation)
    }
    fn steer(&self, item: &String) -> UserMessage {
        Planner::<String>::steer(&self.0, item)
    }
    fn resumes(&self, turn: TurnId) -> Option<Agent> {
        Planner::<String>::resumes(&self.0, turn)
    }
}

#[derive(Default)]
struct Latencies {
    planned: Vec<f64>,
    asked: Vec<f64>,
    stopped: Vec<f64>,
}

/// The same run with a session and without one, in turns.
async fn talk(table: &mut Table) -> anyhow::Result<()> {
    let (sender, mut asked) = mpsc::unbounded_channel();
    let agent = Agent::builder(silent(sender)).build();
    let runs = passes(async || {
        let (mut plain, mut within) = (Latencies::default(), Latencies::default());
        for _ in 0..WARM + REPEATS {
            without(&agent, &mut asked, &mut plain).await?;
            inside(&agent, &mut asked, &mut within).await?;
        }
        let of = |all: Vec<f64>| median(all.into_iter().skip(WARM).collect());
        Ok([within.planned, within.asked, plain.asked, within.stopped, plain.stopped].map(of))
    });
    let runs = runs.await?;
    let of = |at: usize| runs.figures(|figures| figures[at]);
    table.alone("push: until the planner is asked", "µs", of(0), ADDED);
    let pair = (of(1), of(2));
    table.added("push: until the model is asked, beside `run` without a session", "µs", pair, ADDED);
    let pair = (of(3), of(4));
    table.added("stop of a session: until its exit, beside a run's outcome", "µs", pair, ADDED);
    Ok(())
}

/// Microseconds that a session may add.
const ADDED: f64 = 20.0;

async fn without(
    agent: &Agent,
    asked: &mut mpsc::UnboundedReceiver<Instant>,
    talk: &mut Latencies,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let handle = agent.run("go").detach();
    talk.asked.push(between(began, asked.recv().await)?);
    tokio::task::yield_now().await;
    let began = Instant::now();
    handle.stop(StopRequest::now());
    drop(handle.done().await);
    talk.stopped.push(micros(began.elapsed()));
    handle.quiet().await;
    Ok(())
}

async fn inside(
    agent: &Agent,
    asked: &mut mpsc::UnboundedReceiver<Instant>,
    talk: &mut Latencies,
) -> anyhow::Result<()> {
    let planned = Arc::new(Mutex::new(None));
    let session = Session::builder(Noting(ChatPlanner::new(agent.clone()), Arc::clone(&planned))).start();
    tokio::task::yield_now().await;
    let began = Instant::now();
    let pushed = session.push("go".to_owned()).map(|_ticket| ());
    anyhow::ensure!(pushed.is_ok(), "{pushed:?}");
    talk.asked.push(between(began, asked.recv().await)?);
    talk.planned.push(between(began, *planned.lock().unwrap_or_else(PoisonError::into_inner))?);
    tokio::task::yield_now().await;
    let began = Instant::now();
    drop(session.stop(SessionStop::now()));
    drop(session.done().await);
    talk.stopped.push(micros(began.elapsed()));
    Ok(())
}

fn between(began: Instant, then: Option<Instant>) -> anyhow::Result<f64> {
    let then = then.ok_or_else(|| anyhow::anyhow!("the model or the planner was not asked"))?;
    Ok(micros(then.duration_since(began)))
}

/// Pushes while a turn is running, until the owner has accepted the last item.
async fn pushes(table: &mut Table) -> anyhow::Result<()> {
    let runs = passes(async || {
        let (sender, mut asked) = mpsc::unbounded_channel();
        let agent = Agent::builder(silent(sender)).build();
        let session: Session<String> = Session::builder(ChatPlanner::new(agent)).inbox(PUSHES + 1).start();
        session.push("go".to_owned())?;
        asked.recv().await;
        let began = Instant::now();
        let mut last = None;
        for _ in 0..PUSHES {
            last = Some(session.push("more".to_owned())?);
        }
        if let Some(last) = last {
            last.recorded().await;
        }
        let rate = PUSHES as f64 / began.elapsed().as_secs_f64();
        let began = Instant::now();
        drop(session.stop(SessionStop::now()));
        let exit = session.done().await;
        let end = began.elapsed().as_secs_f64() * 1e3;
        anyhow::ensure!(exit.unhandled().len() == PUSHES, "an item is lost");
        Ok([rate, end])
    });
    let runs = runs.await?;
    let [rate, end] = [0, 1].map(|at| runs.figures(|figures| figures[at]));
    table.least("pushes into one session while a turn is running", "a second", rate, 100_000.0);
    table.beside("the end of a session with 100,000 items unhandled, each of them reported", "ms", end);
    Ok(())
}

/// KiB of one, and context switches while all are idle.
type Figures = [f64; 2];

async fn idle(table: &mut Table) -> anyhow::Result<()> {
    let runs =
        passes(async || Ok([crowd("tasks")?, crowd("sessions")?, crowd("used")?, crowd("stored")?])).await?;
    let of = |kind: usize, at: usize| runs.figures(|crowds| crowds[kind][at]);
    let [tasks, fresh, used, stored] = [0, 1, 2, 3].map(|kind| of(kind, 0));
    let pair = (fresh.clone(), tasks.clone());
    table.added("10,000 idle sessions without a store: memory of one, above an idle task", "KiB", pair, 4.0);
    let what = "memory of an idle session without a store, above an idle task";
    table.goal_alone(what, "KiB", fresh.less(&tasks), 2.0);
    let what = "memory of an idle session in a store, above an idle task";
    table.goal_alone(what, "KiB", stored.less(&tasks), 2.0);
    let same = "without a store, after one turn: its events, its run's log and its conversation";
    table.beside(same, "KiB", used);
    let most = of(0, 1).median().max(STRAY);
    table.alone("10,000 idle sessions without a store: context switches in 2 s", "", of(1, 1), most);
    let after = "10,000 idle sessions without a store, after one turn: context switches in 2 s";
    table.alone(after, "", of(2, 1), most);
    let what = "10,000 idle sessions in a store: context switches in 2 s";
    table.beside(what, "", of(3, 1));
    Ok(())
}

/// Context switches that the measuring task makes by itself: it sleeps, and wakes.
const STRAY: f64 = 8.0;

fn crowd(kind: &str) -> anyhow::Result<Figures> {
    in_a_process(&[IDLE, kind])
}

/// The crowd itself: prints its figures.
pub(crate) async fn gather(kind: &str) -> anyhow::Result<()> {
    let figures = match kind {
        "tasks" => weigh(1, async |_| drop(tokio::spawn(std::future::pending::<()>()))).await?,
        "stored" => weigh_stored().await?,
        kind => {
            // A definition is shared by all that work by it.
            let agent = Agent::builder(says()).build();
            let is_used = kind == "used";
            weigh(1, async |_| one(&agent, is_used).await).await?
        }
    };
    println!("{} {}", figures[0], figures[1]);
    Ok(())
}

/// Sessions in a file that are opened at once: they share its commits.
const AT_ONCE: usize = 100;

/// Idle sessions in a file: on a file system in memory where there is one, since it is not the disk that is measured.
async fn weigh_stored() -> anyhow::Result<Figures> {
    let folder = tempfile::tempdir_in(durable::IN_MEMORY).or_else(|_none| tempfile::tempdir())?;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("idle.db"))?);
    let agent = Agent::builder(says()).build();
    let open = async |number| match durable::open(&store, &format!("session {number}"), &agent).await {
        Ok(session) => session,
        Err(error) => panic!("a session was not opened: {error:#}"),
    };
    weigh(AT_ONCE, open).await
}

/// One idle session, that has had a turn or none.
async fn one(agent: &Agent, is_used: bool) -> Option<Session<String>> {
    let session = Session::builder(ChatPlanner::new(agent.clone())).start();
    if is_used {
        session.push("go".to_owned()).ok()?.outcome().await;
    }
    Some(session)
}

/// Answers at once.
fn says() -> impl Model {
    model(|_| {
        let reply = [Delta::Sent, Delta::Opened, Delta::Text("done".into()), Delta::Ended(Finish::Natural)];
        stream::iter(reply.map(Ok)).boxed()
    })
}

/// Makes a crowd, `at_once` of them together, and measures it while all are idle.
async fn weigh<O>(at_once: usize, make: impl AsyncFn(usize) -> O) -> anyhow::Result<Figures> {
    const WATCHED: Duration = Duration::from_secs(2);
    let mut all = Vec::with_capacity(SESSIONS + 1);
    // One first, for all that is made once.
    all.push(make(0).await);
    let before = resident()?;
    for first in (1..=SESSIONS).step_by(at_once) {
        all.extend(join_all((first..first + at_once).map(|number| make(number))).await);
    }
    let weight = (resident_at_rest().await? - before) / SESSIONS as f64;
    let switched = switches_in(WATCHED).await?;
    // No session is stopped: the process simply ends.
    Box::leak(Box::new(all));
    Ok([weight, switched])
}
