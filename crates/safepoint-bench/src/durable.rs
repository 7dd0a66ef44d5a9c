//! Whole sessions in a file: what being durable adds to a round, what sixty-four share, what opening a long one and taking
//! up one of a million costs. Syncs are counted by the store, and by the kernel where `strace` is there.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use futures_util::{StreamExt as _, future::try_join_all, stream};
use safepoint::{
    Agent, Limits, Model, Session, ToolContext,
    approval::{ApprovalMode, Decision, ToolApproval, WithoutApprover},
    history::Message,
    ids::SessionId,
    message::ToolCall,
    model::{Delta, Finish},
    raw::store::ApprovalState,
    session::{ChatPlanner, ItemOutcome, SessionEvent, SessionStop},
    store::{MemoryStore, OwnerProcess, Store},
    tool::{EffectClass, from_fn},
};
use safepoint_stores::SqliteStore;

use crate::{
    cpus,
    figures::median,
    models::model,
    process::in_a_process,
    quiet::passes,
    store::{BareFile, create_a_million},
    table::Table,
    timing::{micros, took},
};

/// The hidden argument that makes this program a session of some rounds, and nothing else.
pub(crate) const ROUNDS: &str = "__durable";

/// The hidden argument that makes this program the same measurement, confined to the processor that follows.
pub(crate) const PINNED: &str = "__durable-pinned";

/// Rounds of a turn.
pub(crate) const TURN: usize = 50;

/// Where a sync costs nothing, if it is there.
pub(crate) const IN_MEMORY: &str = "/dev/shm";

/// Turns of one pass, of which a median is taken.
const TURNS: usize = 9;

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    let disk = tempfile::tempdir()?;
    one(table, disk.path(), "on the disk").await?;
    if let Ok(memory) = tempfile::tempdir_in(IN_MEMORY) {
        one(table, memory.path(), "on a file system in memory").await?;
    }
    on_one_processor(table).await?;
    traced(table, disk.path())?;
    many(table, &disk.path().join("many.db")).await?;
    long(table, &disk.path().join("long.db")).await?;
    among_a_million(table, &disk.path().join("million.db")).await
}

/// Asks for one call of `work` in each of a fixed number of rounds, and then answers.
fn asks(rounds: usize) -> impl Model {
    model(move |history| {
        let since = history.entries().iter().rev().take_while(|entry| !matches!(&***entry, Message::User(_)));
        let done = since.filter(|entry| matches!(&***entry, Message::Results { .. })).count();
        let mut reply = vec![Delta::Sent, Delta::Opened];
        if done < rounds {
            let id = format!("c{}", history.entries().len()).into();
            reply.push(Delta::CallReady(ToolCall { id, name: "work".into(), args: "{}".into() }));
        } else {
            reply.push(Delta::Text("done".into()));
        }
        reply.push(Delta::Ended(Finish::Natural));
        stream::iter(reply.into_iter().map(Ok)).boxed()
    })
}

pub(crate) fn agent(rounds: usize, effect: EffectClass, approval: ToolApproval) -> Agent {
    let work = from_fn("work", "works", |_: ToolContext, (): ()| async { Ok("ok") });
    let limits = Limits::default().with_max_rounds(u32::MAX);
    Agent::builder(asks(rounds))
        .limits(limits)
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .tool(work.with(|spec| spec.effect(effect).approval(approval)))
        .build()
}

pub(crate) async fn open(store: &Arc<dyn Store>, id: &str, agent: &Agent) -> anyhow::Result<Session<String>> {
    let builder = Session::builder(ChatPlanner::new(agent.clone()));
    Ok(builder.open(Arc::clone(store), SessionId::from(id), OwnerProcess::here()).await?)
}

/// One turn, to its end.
pub(crate) async fn turn(session: &Session<String>) -> anyhow::Result<()> {
    let ticket = session.push("go".to_owned()).map_err(|refused| anyhow::anyhow!("{refused:?}"))?;
    let fate = ticket.outcome().await;
    ensure!(matches!(fate, ItemOutcome::Completed(_)), "the turn came to {fate:?}");
    Ok(())
}

pub(crate) async fn close(session: Session<String>) {
    drop(session.stop(SessionStop::at_turn_end()));
    session.done().await;
}

/// The same turn with a store in a file and with one in memory, alternately.
async fn one(table: &mut Table, folder: &Path, place: &str) -> anyhow::Result<()> {
    /// Microseconds below which a sync is free, and that a round may add then.
    const FREE: f64 = 20.0;
    const ADDED: f64 = 140.0;
    let mut bare = BareFile::create(&folder.join("bare"))?;
    for (effect, name, most) in
        [(EffectClass::Unsafe, "unsafe", 2.0), (EffectClass::ReadOnly, "read-only", 1.0)]
    {
        let file = Arc::new(SqliteStore::open(folder.join(format!("{name}.db")))?);
        let agent = agent(TURN, effect, ToolApproval::NotNeeded);
        let kept = open(&(Arc::clone(&file) as Arc<dyn Store>), "one", &agent).await?;
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let unkept = open(&memory, "one", &agent).await?;
        let runs = passes(async || {
            let before = file.commits().durable;
            let (mut added, mut syncs) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                let (with, without) = (took(turn(&kept)).await?, took(turn(&unkept)).await?);
                added.push((with - without) / TURN as f64);
                syncs.push(bare.sync()?);
            }
            let durable = (file.commits().durable - before) as f64 / (TURNS * TURN) as f64;
            Ok([durable, median(added), median(syncs)])
        });
        let runs = runs.await?;
        let [durable, added, sync] = [0, 1, 2].map(|at| runs.figures(|figures| figures[at]));
        let what = format!("durable, {place}: syncs of a round with one {name} call");
        table.alone(&what, "syncs", durable.clone(), most + 0.1);
        let (each, free) = (durable.median(), sync.median() < FREE);
        let what = format!(
            "durable, {place}: what is added to such a round, less {each:.1} syncs of {:.0} µs",
            sync.median()
        );
        table.beside(&what, "µs", runs.figures(|[durable, added, sync]| added - durable * sync));
        table.beside(&format!("durable, {place}: what is added in all"), "µs", added.clone());
        if free && effect == EffectClass::Unsafe {
            table.goal_alone("durable: what a round adds where syncs are free", "µs", added, ADDED);
        }
        close(kept).await;
        close(unkept).await;
    }
    Ok(())
}

/// What being durable adds to a round with one unsafe call where syncs are free and all threads share a processor: a hand-over
/// wakes no processor that sleeps, and what is left is the work.
async fn on_one_processor(table: &mut Table) -> anyhow::Result<()> {
    let Some(cpu) = cpus::available()?.pop().filter(|_| Path::new(IN_MEMORY).is_dir()) else { return Ok(()) };
    let runs = passes(async || in_a_process::<1>(&[PINNED, &cpu.to_string()])).await?;
    let added = runs.figures(|[added]| *added);
    table.beside(
        "durable: what a round adds where syncs are free, all threads on one processor",
        "µs",
        added,
    );
    Ok(())
}

/// The process in which that is measured; it is confined before it has threads.
pub(crate) async fn pinned() -> anyhow::Result<()> {
    let memory = tempfile::tempdir_in(IN_MEMORY)?;
    let file: Arc<dyn Store> = Arc::new(SqliteStore::open(memory.path().join("pinned.db"))?);
    let agent = agent(TURN, EffectClass::Unsafe, ToolApproval::NotNeeded);
    let kept = open(&file, "one", &agent).await?;
    let unkept = open(&(Arc::new(MemoryStore::default()) as Arc<dyn Store>), "one", &agent).await?;
    let mut added = Vec::new();
    for _ in 0..TURNS {
        added.push((took(turn(&kept)).await? - took(turn(&unkept)).await?) / TURN as f64);
    }
    close(kept).await;
    close(unkept).await;
    println!("{}", median(added));
    Ok(())
}

/// Runs a session of some rounds in this process, for a tool that counts its system calls.
pub(crate) async fn rounds(path: &str) -> anyhow::Result<()> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path)?);
    let session =
        open(&store, "traced", &agent(TRACED, EffectClass::Unsafe, ToolApproval::NotNeeded)).await?;
    turn(&session).await?;
    close(session).await;
    Ok(())
}

const TRACED: usize = 200;

/// What the kernel says about the syncs of such a session, its beginning and its end included.
fn traced(table: &mut Table, folder: &Path) -> anyhow::Result<()> {
    let (reported, store) = (folder.join("trace"), folder.join("traced.db"));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]).arg(&reported);
    let ran = strace.arg(std::env::current_exe()?).arg(ROUNDS).arg(&store).status();
    let Ok(status) = ran else {
        eprintln!("strace is not there: the kernel's count is left out");
        return Ok(());
    };
    ensure!(status.success(), "the traced session failed");
    let lines = std::fs::read_to_string(reported)?;
    let is_sync = |line: &&str| line.contains("sync(") && !line.contains("resumed");
    let syncs = lines.lines().filter(is_sync).count();
    let what = "durable: syncs of a round with one unsafe call, counted by the kernel over 200 rounds, opening and closing included";
    table.alone(what, "syncs", syncs as f64 / TRACED as f64, 2.1);
    Ok(())
}

async fn many(table: &mut Table, path: &Path) -> anyhow::Result<()> {
    const SESSIONS: usize = 64;
    let store = Arc::new(SqliteStore::open(path)?);
    let agent = agent(TURN, EffectClass::Unsafe, ToolApproval::NotNeeded);
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let names: Vec<String> = (0..SESSIONS).map(|number| format!("session {number}")).collect();
    let sessions = try_join_all(names.iter().map(|name| open(&shared, name, &agent))).await?;
    let runs = passes(async || {
        let before = store.commits().durable;
        let began = Instant::now();
        try_join_all(sessions.iter().map(turn)).await?;
        let each = micros(began.elapsed()) / (SESSIONS * TURN) as f64;
        Ok([(store.commits().durable - before) as f64 / (SESSIONS * TURN) as f64, each])
    });
    let runs = runs.await?;
    let [durable, each] = [0, 1].map(|at| runs.figures(|figures| figures[at]));
    table.alone("durable: syncs of a round with one unsafe call, 64 sessions at once", "syncs", durable, 0.5);
    table.beside("durable: such a round, over all", "µs", each);
    for session in sessions {
        close(session).await;
    }
    Ok(())
}

/// A session of ten thousand recorded facts.
async fn long(table: &mut Table, path: &Path) -> anyhow::Result<()> {
    const EVENTS: u64 = 10_000;
    const REPEATS: usize = 5;
    let agent = agent(TURN, EffectClass::ReadOnly, ToolApproval::NotNeeded);
    let id = SessionId::from("long");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path)?);
    let session = open(&store, "long", &agent).await?;
    while store.open(&id).await?.head < EVENTS {
        turn(&session).await?;
    }
    close(session).await;
    drop(store);
    let runs = passes(async || {
        let mut opened = Vec::new();
        for _ in 0..REPEATS {
            let began = Instant::now();
            let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path)?);
            let session = open(&store, "long", &agent).await?;
            opened.push(micros(began.elapsed()) / 1e3);
            close(session).await;
        }
        Ok(median(opened))
    });
    let opened = runs.await?.figures(|opened| *opened);
    table.goal_alone("opening a session of 10,000 events, its file included", "ms", opened, 10.0);
    Ok(())
}

/// A million suspended sessions, of which some are real: each of these is found, decided, and taken up to its end.
async fn among_a_million(table: &mut Table, path: &Path) -> anyhow::Result<()> {
    // Taken up three in each pass; a pass that is repeated takes others.
    const REAL: usize = 45;
    const EACH: usize = 3;
    const NEWEST: usize = 50;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path)?);
    let agent = agent(1, EffectClass::Unsafe, ToolApproval::Required);
    for number in 0..REAL {
        let session = open(&store, &format!("real {number}"), &agent).await?;
        let ticket = session.push("go".to_owned()).map_err(|refused| anyhow::anyhow!("{refused:?}"))?;
        let fate = ticket.outcome().await;
        ensure!(matches!(fate, ItemOutcome::Suspended(_)), "the turn came to {fate:?}");
        close(session).await;
    }
    create_a_million(&*store).await?;
    drop(store);
    let mut numbers = 0..REAL;
    let runs = passes(async || {
        let (mut listed, mut resumed) = (Vec::new(), Vec::new());
        for number in numbers.by_ref().take(EACH) {
            let began = Instant::now();
            let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path)?);
            ensure!(store.list(NEWEST, None).await?.len() == NEWEST, "sessions are missing");
            listed.push(micros(began.elapsed()) / 1e3);
            drop(store);
            resumed.push(took(resume(path, &format!("real {number}"), &agent)).await? / 1e3);
        }
        Ok([median(listed), median(resumed)])
    });
    let runs = runs.await?;
    let [listed, resumed] = [0, 1].map(|at| runs.figures(|figures| figures[at]));
    let what = "durable: opening a file of a million sessions, and its newest 50";
    table.alone(what, "ms", listed, 50.0);
    let what = "durable: opening it, taking up a suspended one by its decision, to the turn's end";
    table.alone(what, "ms", resumed, 50.0);
    Ok(())
}

async fn resume(path: &Path, name: &str, agent: &Agent) -> anyhow::Result<()> {
    const BOUND: Duration = Duration::from_secs(10);
    let path: PathBuf = path.into();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path)?);
    let session = open(&store, name, agent).await?;
    let rows = store.approvals(&SessionId::from(name)).await?;
    let open = rows.iter().find(|row| row.state == ApprovalState::Open).context("nothing is asked")?;
    session.decide(&open.asked.id, Decision::Approve).await?;
    let mut events = session.events();
    let ended = async {
        while let Some(event) = events.next().await {
            if matches!(event.kind, SessionEvent::TurnEnded { fate: ItemOutcome::Completed(_), .. }) {
                return true;
            }
        }
        false
    };
    ensure!(tokio::time::timeout(BOUND, ended).await?, "it did not end");
    close(session).await;
    Ok(())
}
