//! Counts of one round and of one stop: allocations, tasks, wake-ups of the thread, syncs, system calls. They depend little on
//! how busy a machine is, so each but the system calls and a store's wake-ups is a gate: a tenth above what is written down in the document fails. What
//! they do depend on is how a reply arrives, in one piece or in two; the bare loop over hyper has that too, and what it counts
//! more than is written down for it, ours may count more, of what a piece makes: wake-ups, and all that a stop has.

use std::{future::Future, iter::zip, sync::Arc};

use anyhow::ensure;
use safepoint::{approval::ToolApproval, store::Store, tool::EffectClass};
use safepoint_stores::SqliteStore;
use tokio::runtime::Handle;

use crate::{
    bare::{HyperLoop, ReqwestLoop},
    client::Ours,
    cpus::Cpu,
    document::{Document, measured},
    durable,
    figures::median,
    peer::{Peer, Running as _},
    race::ModelServer,
    serving::Count,
};

mod traced;

pub(crate) use traced::{TRACED, work as traced_work};

/// Allocations so far, and their bytes.
type Allocated = fn() -> [u64; 2];

/// What is counted, in the order of the columns.
const UNITS: [&str; 5] = ["allocations", "bytes allocated", "tasks", SLEEPS, SYNCS];
const ALLOCATED: [&str; 2] = [UNITS[0], UNITS[1]];
const SLEEPS: &str = "sleeps of the thread";
const SYNCS: &str = "syncs";

/// How often a piece of work is counted, and how often all of it before a count has exceeded its limit.
const GOES: usize = 3;
/// How often all of it is counted to be written down: the least of these.
const WRITTEN: usize = 4;
/// What may happen beside the work, of allocations: a buffer that grows a step further in one run than in another.
const SLACK: f64 = 0.1;
/// The same of all else: what is done once a run, and divides by its rounds.
const LESS_SLACK: f64 = 0.02;
/// What a count may be, in relation to the one written down.
const MORE: f64 = 1.1;

/// Where the counts are written down: the section of the document.
const SECTION: &str = "counts";

const ROUND: &str = "a round over chat completions, 20 a run";
const STOP: &str = "a run that is stopped on a silent stream";
const UNSAFE: &str = "a round of a durable session, one unsafe call";
const READ_ONLY: &str = "a round of a durable session, one read-only call";
/// In the order of the table.
const WORKS: [&str; 4] = [ROUND, STOP, UNSAFE, READ_ONLY];

/// One line of the table.
struct Counted {
    what: &'static str,
    unit: &'static str,
    /// Of the bare loops, where they do this at all.
    others: [Option<f64>; 2],
    ours: f64,
}

impl Counted {
    /// The line as it is written down.
    fn line(&self) -> String {
        let [hyper, reqwest] = self.others.map(|count| count.map_or(String::new(), shown));
        format!("| {} | {} | {hyper} | {reqwest} | {} |", self.what, self.unit, shown(self.ours))
    }

    /// What a table has for it: the count of the bare loop over hyper, where there is one, and ours.
    fn written(&self, table: &str) -> Option<(Option<f64>, f64)> {
        let begins = format!("| {} | {} |", self.what, self.unit);
        let cells = table.lines().find_map(|line| line.strip_prefix(&begins))?;
        let mut cells = cells.split('|').map(|cell| cell.trim().parse().ok());
        Some((cells.next()?, cells.nth(1)??))
    }

    /// The most that it may be, by what a table has for it; nothing if it is no gate. A line that the table does not have may
    /// not be there at all.
    fn most(&self, table: &str) -> Option<f64> {
        // How often the thread sleeps for a store is a matter of when the store's thread has a processor.
        let is_of_a_store = self.unit == SLEEPS && [UNSAFE, READ_ONLY].contains(&self.what);
        if self.unit == traced::SYSTEM_CALLS || is_of_a_store {
            return None;
        }
        let Some((hyper, ours)) = self.written(table) else { return Some(0.0) };
        let is_of_pieces = self.unit == SLEEPS || self.what == STOP;
        let elsewhere = self.others[0].zip(hyper).filter(|_| is_of_pieces);
        let elsewhere = elsewhere.map_or(0.0, |(now, then)| (now - then).max(0.0));
        let slack = if ALLOCATED.contains(&self.unit) { SLACK } else { LESS_SLACK };
        Some(ours * MORE + elsewhere + slack)
    }

    fn exceeds(&self, table: &str) -> bool {
        self.most(table).is_some_and(|most| self.ours > most)
    }

    /// The least that either has counted.
    fn least(self, other: Self) -> Self {
        let others =
            std::array::from_fn(|at| self.others[at].zip(other.others[at]).map(|(one, two)| one.min(two)));
        Self { others, ours: self.ours.min(other.ours), ..self }
    }
}

/// Counts, and prints what was counted beside what is written down; or writes it down.
///
/// # Errors
/// If a count is more than a tenth above what is written down.
pub(crate) fn run(allocated: Allocated, is_written: bool) -> anyhow::Result<()> {
    const HEAD: &str = "| what | count | bare hyper | bare reqwest | Safepoint |";
    const LINE: &str = "|---|---|---|---|---|";
    let document = Document::of_this_project();
    let mut counted = count(allocated)?;
    if is_written {
        for _ in 1..WRITTEN {
            counted = zip(counted, count(allocated)?).map(|(one, other)| one.least(other)).collect();
        }
        counted.extend(traced::system_calls()?);
        counted.sort_by_key(|counted| WORKS.iter().position(|what| *what == counted.what));
        let lines: String = counted.iter().map(|counted| format!("{}\n", counted.line())).collect();
        document.write(&[(SECTION, format!("{}\n\n{HEAD}\n{LINE}\n{lines}", measured()))])?;
    }
    let table = document.section(SECTION)?;
    // What is always there is counted again: a reply that came in two pieces once is not.
    for _ in 1..GOES {
        if counted.iter().any(|counted| counted.exceeds(&table)) {
            let again = zip(counted, count(allocated)?);
            counted = again.map(|(old, new)| if old.exceeds(&table) { new } else { old }).collect();
        }
    }
    let over = counted.iter().filter(|counted| counted.exceeds(&table)).count();
    println!("{HEAD} at most |\n{LINE}---|");
    for counted in &counted {
        let verdict = if counted.exceeds(&table) { " **exceeded**" } else { "" };
        println!("{} {}{verdict} |", counted.line(), counted.most(&table).map_or(String::new(), shown));
    }
    ensure!(
        over == 0,
        "{over} counts are more than a tenth above what docs/benchmarks.md has: find out what was added, or run \
         `cargo xtask bench counts --write`"
    );
    Ok(())
}

fn count(allocated: Allocated) -> anyhow::Result<Vec<Counted>> {
    let server = ModelServer::start(Cpu::Any)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (url, control) = (server.url.as_str(), server.control.as_str());
    let (hyper, reqwest, ours) = (HyperLoop::to(url), ReqwestLoop::to(url)?, Ours::to(url));
    runtime.block_on(async {
        let bare = [of_rounds(allocated, &hyper).await?, of_rounds(allocated, &reqwest).await?];
        let rounds = (ROUND, bare.map(Some), of_rounds(allocated, &ours).await?);
        let bare =
            [of_stops(allocated, &hyper, control).await?, of_stops(allocated, &reqwest, control).await?];
        let stops = (STOP, bare.map(Some), of_stops(allocated, &ours, control).await?);
        let once = (UNSAFE, [None; 2], of_sessions(allocated, EffectClass::Unsafe).await?);
        let again = (READ_ONLY, [None; 2], of_sessions(allocated, EffectClass::ReadOnly).await?);
        let lines = [rounds, stops, once, again].into_iter().flat_map(|(what, bare, ours)| {
            UNITS.iter().enumerate().map(move |(at, unit)| {
                let others = bare.map(|counts| counts.map(|counts| counts[at]));
                Counted { what, unit, others, ours: ours[at] }
            })
        });
        // Without a store there is nothing to sync.
        Ok(lines.filter(|line| line.unit != SYNCS || line.others[0].is_none()).collect())
    })
}

fn shown(figure: f64) -> String {
    let digits = if figure.abs() >= 100.0 { 0 } else { 2 };
    // Not "-0.00".
    format!("{:.digits$}", if figure.abs() < 0.005 { 0.0 } else { figure })
}

/// The counts so far; syncs are counted by a store.
async fn totals(allocated: Allocated, syncs: u64) -> anyhow::Result<[f64; UNITS.len()]> {
    // Ids of tasks count up from the process's first one. The task that asks is one itself.
    let task = tokio::spawn(async {});
    let tasks: u64 = task.id().to_string().parse()?;
    task.await?;
    let [allocations, bytes] = allocated();
    let sleeps = Handle::current().metrics().worker_park_count(0);
    Ok([allocations, bytes, tasks, sleeps, syncs].map(|count| count as f64))
}

/// The counts of one of some pieces of work, in the middle of a few goes, after a warm one.
async fn of<W: Future<Output = anyhow::Result<()>>>(
    allocated: Allocated,
    pieces: usize,
    syncs: impl Fn() -> u64,
    work: impl Fn() -> W,
) -> anyhow::Result<[f64; UNITS.len()]> {
    work().await?;
    let mut goes = Vec::new();
    for _ in 0..GOES {
        let before = totals(allocated, syncs()).await?;
        work().await?;
        let mut after = totals(allocated, syncs()).await?;
        // The task that counted.
        after[2] -= 1.0;
        goes.push(std::array::from_fn::<f64, { UNITS.len() }, _>(|at| {
            (after[at] - before[at]) / pieces as f64
        }));
    }
    Ok(std::array::from_fn(|at| median(goes.iter().map(|go| go[at]).collect())))
}

async fn of_rounds(allocated: Allocated, peer: &impl Peer) -> anyhow::Result<[f64; UNITS.len()]> {
    const RUNS: usize = 10;
    const ROUNDS: usize = 20;
    let work = || async {
        for _ in 0..RUNS {
            ensure!(peer.begin(format!("do:chain {ROUNDS}")).ended().await, "a conversation failed");
        }
        Ok(())
    };
    of(allocated, RUNS * ROUNDS, || 0, work).await
}

async fn of_stops(
    allocated: Allocated,
    peer: &impl Peer,
    control: &str,
) -> anyhow::Result<[f64; UNITS.len()]> {
    const STOPS: usize = 20;
    let count = tokio::sync::Mutex::new(Count::of(control).await?);
    let work = || async {
        let mut count = count.lock().await;
        for _ in 0..STOPS {
            let run = peer.begin("do:hang".to_owned());
            count.reaches(1).await?;
            run.stop();
            ensure!(!run.ended().await, "the conversation ended before it was stopped");
            count.reaches(0).await?;
        }
        Ok(())
    };
    of(allocated, STOPS, || 0, work).await
}

async fn of_sessions(allocated: Allocated, effect: EffectClass) -> anyhow::Result<[f64; UNITS.len()]> {
    const TURNS: usize = 1;
    let folder = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(folder.path().join("counted.db"))?);
    let agent = durable::agent(durable::TURN, effect, ToolApproval::NotNeeded);
    let session = durable::open(&(Arc::clone(&store) as Arc<dyn Store>), "counted", &agent).await?;
    let work = || async {
        for _ in 0..TURNS {
            durable::turn(&session).await?;
        }
        Ok(())
    };
    let counted = of(allocated, TURNS * durable::TURN, || store.commits().durable, work).await?;
    durable::close(session).await;
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_found_in_the_table_that_was_written() {
        let of = |unit, ours| Counted { what: "a round", unit, others: [Some(1.0), None], ours };
        let table = format!("head\n{}\n{}\n", of("tasks", 4.15).line(), of("allocations", 156.4).line());
        assert_eq!(of("tasks", 0.0).written(&table), Some((Some(1.0), 4.15)));
        assert_eq!(of("allocations", 0.0).written(&table), Some((Some(1.0), 156.0)));
        assert_eq!(of("syncs", 0.0).written(&table), None);
    }

    #[test]
    fn what_the_bare_loop_counts_more_ours_may_count_more() {
        let of = |hyper, ours| Counted { what: "a stop", unit: SLEEPS, others: [hyper, None], ours };
        let table = format!("{}\n", of(Some(3.0), 3.0).line());
        let most = |hyper| of(hyper, 4.0).most(&table).unwrap();
        assert!(most(Some(4.0)) >= 4.0, "the reply came in two pieces");
        assert!(most(Some(3.0)) < 4.0 && most(Some(2.0)) < 4.0, "it is ours that sleeps once more");
        assert!(most(None) < 4.0);
        assert_eq!(of(Some(4.0), 4.0).most(""), Some(0.0));
    }

    #[test]
    fn what_no_piece_of_a_reply_makes_is_not_excused() {
        let of = |unit, hyper, ours| Counted { what: ROUND, unit, others: [Some(hyper), None], ours };
        let table = format!("{}\n{}\n", of("tasks", 0.05, 1.05).line(), of(SYNCS, 0.0, 0.02).line());
        assert!(of("tasks", 1.05, 2.05).exceeds(&table), "the bare loop has a task more, too");
        assert!(of("tasks", 0.05, 1.2).exceeds(&table) && !of("tasks", 0.05, 1.15).exceeds(&table));
        assert!(of(SYNCS, 0.0, 0.05).exceeds(&table) && !of(SYNCS, 0.0, 0.04).exceeds(&table));
    }
}
