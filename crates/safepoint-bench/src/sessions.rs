//! What a session adds to a run: from a push to the planner and the model, from a stop to the outcome; how many pushes a
//! second one takes; and what ten thousand idle ones weigh, in a process of their own.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use safepoint::{
    Agent, Model, Session, StopRequest,
    ids::TurnId,
    message::UserMessage,
    model::{Delta, Finish},
    session::{ChatPlanner, Plan, PlanContext, Planner, SessionStop},
    stop::Failure,
};
use tokio::sync::mpsc;

use crate::{
    figures::{median, median_of},
    models::model,
    process::{in_a_process, resident, resident_at_rest, switches_in},
    table::Table,
    timing::micros,
};

/// The hidden argument that makes this program a crowd of idle sessions, or of idle tasks.
pub(crate) const IDLE: &str = "__idle";

const REPEATS: usize = 501;
/// The first ones are not counted: everything is cold.
const WARM: usize = 50;
const PUSHES: usize = 100_000;
const SESSIONS: usize = 10_000;

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    talk(table).await?;
    pushes(table).await?;
    idle(table)
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
    let (mut plain, mut within) = (Latencies::default(), Latencies::default());
    for _ in 0..WARM + REPEATS {
        without(&agent, &mut asked, &mut plain).await?;
        inside(&agent, &mut asked, &mut within).await?;
    }
    let of = |all: Vec<f64>| median(all.into_iter().skip(WARM).collect());
    table.alone("push: until the planner is asked", "µs", of(within.planned), ADDED);
    let pair = (of(within.asked), of(plain.asked));
    table.added("push: until the model is asked, beside `run` without a session", "µs", pair, ADDED);
    let pair = (of(within.stopped), of(plain.stopped));
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
    const TIMES: usize = 5;
    let (mut rates, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
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
        rates.push(PUSHES as f64 / began.elapsed().as_secs_f64());
        let began = Instant::now();
        drop(session.stop(SessionStop::now()));
        let exit = session.done().await;
        ends.push(began.elapsed().as_secs_f64() * 1e3);
        anyhow::ensure!(exit.unhandled().len() == PUSHES, "an item is lost");
    }
    table.least("pushes into one session while a turn is running", "a second", median(rates), 100_000.0);
    let end = "the end of a session with 100,000 items unhandled, each of them reported";
    table.beside(end, "ms", median(ends));
    Ok(())
}

/// KiB of one, and context switches while all are idle.
type Figures = [f64; 2];

fn idle(table: &mut Table) -> anyhow::Result<()> {
    const TIMES: usize = 3;
    let (mut tasks, mut fresh, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TIMES {
        tasks.push(crowd("tasks")?);
        fresh.push(crowd("sessions")?);
        used.push(crowd("used")?);
    }
    let pair = (median_of(&fresh, 0), median_of(&tasks, 0));
    table.added("10,000 idle sessions: memory of one, above an idle task", "KiB", pair, 4.0);
    table.goal_alone("memory of an idle session, above an idle task", "KiB", pair.0 - pair.1, 2.0);
    let same = "the same after one turn: its events, its run's log and its conversation";
    table.beside(same, "KiB", median_of(&used, 0));
    let most = median_of(&tasks, 1).max(STRAY);
    table.alone("10,000 idle sessions: context switches in 2 s", "", median_of(&fresh, 1), most);
    let after = "10,000 idle sessions after one turn: context switches in 2 s";
    table.alone(after, "", median_of(&used, 1), most);
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
        "tasks" => weigh(async || drop(tokio::spawn(std::future::pending::<()>()))).await?,
        kind => {
            // A definition is shared by all that work by it.
            let agent = Agent::builder(says()).build();
            let is_used = kind == "used";
            weigh(async || one(&agent, is_used).await).await?
        }
    };
    println!("{} {}", figures[0], figures[1]);
    Ok(())
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

/// Makes a crowd, one session after the other, and measures it while all are idle.
async fn weigh<O>(make: impl AsyncFn() -> O) -> anyhow::Result<Figures> {
    const WATCHED: Duration = Duration::from_secs(2);
    let mut all = Vec::with_capacity(SESSIONS + 1);
    // One first, for all that is made once.
    all.push(make().await);
    let before = resident()?;
    for _ in 0..SESSIONS {
        all.push(make().await);
    }
    let weight = (resident_at_rest().await? - before) / SESSIONS as f64;
    let switched = switches_in(WATCHED).await?;
    // No session is stopped: the process simply ends.
    Box::leak(Box::new(all));
    Ok([weight, switched])
}
