//! System calls of a round, counted by `strace` where it is there: those of a longer run less those of a shorter one.

use std::{fs, process::Command, sync::Arc};

use anyhow::{Context as _, ensure};
use safepoint::{approval::ToolApproval, store::Store, tool::EffectClass};
use safepoint_stores::SqliteStore;

use super::{Counted, READ_ONLY, ROUND, UNSAFE};
use crate::{
    bare::{HyperLoop, ReqwestLoop},
    client::{KINDS, Ours},
    cpus::Cpu,
    durable,
    peer::{Peer, Running as _},
    race::ModelServer,
};

pub(super) const SYSTEM_CALLS: &str = "system calls";

/// The hidden argument that makes this program such a run: what it does, the address of its server or a folder, and how often
/// follow.
pub(crate) const TRACED: &str = "__traced";

const ONCE: &str = "unsafe";
const AGAIN: &str = "read-only";
/// Runs of the shorter one and of the longer one.
const RUNS: [usize; 2] = [2, 12];
const ROUNDS: usize = 20;

/// The lines of the table; none without `strace`.
pub(super) fn system_calls() -> anyhow::Result<Vec<Counted>> {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("strace is not there: system calls are not counted");
        return Ok(Vec::new());
    }
    let (server, folder) = (ModelServer::start(Cpu::Any)?, tempfile::tempdir()?);
    let [hyper, reqwest, ours] = KINDS.map(|kind| a_round(kind, &server.url, ROUNDS));
    let path = folder.path().to_str().context("the folder of temporary files has a name that is no text")?;
    let [once, again] = [ONCE, AGAIN].map(|kind| a_round(kind, path, durable::TURN));
    let line = |what, others, ours| Counted { what, unit: SYSTEM_CALLS, others, ours };
    Ok(vec![
        line(ROUND, [Some(hyper?), Some(reqwest?)], ours?),
        line(UNSAFE, [None; 2], once?),
        line(READ_ONLY, [None; 2], again?),
    ])
}

/// System calls of a round of this kind of work.
fn a_round(kind: &str, place: &str, rounds: usize) -> anyhow::Result<f64> {
    let [few, many] = RUNS;
    Ok((all(kind, place, many)? - all(kind, place, few)?) / ((many - few) * rounds) as f64)
}

/// All system calls of a process that works so often.
fn all(kind: &str, place: &str, runs: usize) -> anyhow::Result<f64> {
    let report = tempfile::NamedTempFile::new()?;
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-qq", "-o"]).arg(report.path()).arg(std::env::current_exe()?);
    let status = strace.args([TRACED, kind, place, &runs.to_string()]).status()?;
    ensure!(status.success(), "the traced work failed");
    // Share of the time, seconds, microseconds a call, calls.
    const CALLS: usize = 3;
    let report = fs::read_to_string(report.path())?;
    let total = report.lines().find(|line| line.ends_with(" total")).context("strace has no total")?;
    Ok(total.split_whitespace().nth(CALLS).context("strace has no count")?.parse()?)
}

/// Does that work, in one thread.
pub(crate) fn work(mut args: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut next = || args.next().context("an argument is missing");
    let (kind, place, runs) = (next()?, next()?, next()?.parse()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match kind.as_str() {
            "hyper" => rounds(&HyperLoop::to(&place), runs).await,
            "reqwest" => rounds(&ReqwestLoop::to(&place)?, runs).await,
            "ours" => rounds(&Ours::to(&place), runs).await,
            ONCE => turns(&place, &kind, EffectClass::Unsafe, runs).await,
            AGAIN => turns(&place, &kind, EffectClass::ReadOnly, runs).await,
            other => anyhow::bail!("there is no work `{other}`"),
        }
    })
}

async fn rounds(peer: &impl Peer, runs: usize) -> anyhow::Result<()> {
    for _ in 0..runs {
        ensure!(peer.begin(format!("do:chain {ROUNDS}")).ended().await, "a conversation failed");
    }
    Ok(())
}

async fn turns(folder: &str, name: &str, effect: EffectClass, turns: usize) -> anyhow::Result<()> {
    let file = std::path::Path::new(folder).join(format!("{name} {turns}.db"));
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(file)?);
    let agent = durable::agent(durable::TURN, effect, ToolApproval::NotNeeded);
    let session = durable::open(&store, "traced", &agent).await?;
    for _ in 0..turns {
        durable::turn(&session).await?;
    }
    durable::close(session).await;
    Ok(())
}
