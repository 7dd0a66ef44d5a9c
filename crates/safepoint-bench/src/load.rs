//! Stops while 32 others of the same kind saturate the machine: from the intended instant, so that what a stop waits
//! to be asked at all counts too.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use reqwest::Client;
use safepoint::{Agent, RunHandle, StopRequest};
use safepoint_models::openai;
use tokio::task::JoinSet;

use crate::{
    bare, rounds,
    server::{Server, Serving},
    silent::Count,
    table::{Table, median},
    timing::{join, micros},
};

/// The others.
const OTHERS: usize = 32;
/// How many stops run at once, each at a different instant.
const AT_ONCE: usize = 8;
const BATCHES: usize = 20;
const REPEATS: usize = 7;

/// Where the measurement takes place.
struct LoadSite {
    silent: Server,
    count: Count,
    busy: Server,
}

pub(crate) async fn measure(table: &mut Table) -> anyhow::Result<()> {
    let silent = Server::start(Serving::Silence)?;
    let count = Count::of(&silent.control).await?;
    let mut place = LoadSite { silent, count, busy: Server::start(Serving::Rounds(20))? };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        theirs.extend(under_bare_load(&mut place).await?);
        ours.extend(under_our_load(&mut place).await?);
    }
    let what = "stop while 32 others saturate the cores, from the intended instant";
    let p99 = (percentile(&mut ours, 99), percentile(&mut theirs, 99));
    table.ratio(&format!("{what}: median"), "µs", (median(ours), median(theirs)), 1.5);
    table.ratio_or_alone(&format!("{what}: p99"), "µs", p99, (1.5, 3000.0));
    Ok(())
}

async fn under_bare_load(place: &mut LoadSite) -> anyhow::Result<Vec<f64>> {
    let client = Client::new();
    let busy = (client.clone(), place.busy.url.clone());
    let others = Others::begin(move || {
        let (client, url) = busy.clone();
        async move { bare::run(&client, &url).await.map(drop) }
    });
    let mut took = Vec::new();
    for _ in 0..BATCHES {
        let waiting: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let (client, url) = (client.clone(), place.silent.url.clone());
                tokio::spawn(async move { bare::run(&client, &url).await.map(drop) })
            })
            .collect();
        place.count.reaches(AT_ONCE).await?;
        let (handles, ends): (Vec<_>, Vec<_>) =
            waiting.into_iter().map(|task| (task.abort_handle(), async move { drop(task.await) })).unzip();
        took.extend(stop_each(handles, |handle| handle.abort(), ends).await?);
        place.count.reaches(0).await?;
    }
    others.end().await?;
    Ok(took)
}

async fn under_our_load(place: &mut LoadSite) -> anyhow::Result<Vec<f64>> {
    let busy = rounds::agent(openai::model("m").base_url(&place.busy.url));
    let silent = Agent::builder(openai::model("m").base_url(&place.silent.url)).build();
    let others = Others::begin(move || {
        let busy = busy.clone();
        async move { rounds::one(&busy).await }
    });
    let mut took = Vec::new();
    for _ in 0..BATCHES {
        let handles: Vec<_> = (0..AT_ONCE).map(|_| silent.run("go").detach()).collect();
        place.count.reaches(AT_ONCE).await?;
        let ends = handles
            .iter()
            .map(|handle| {
                let handle = handle.clone();
                async move { drop(handle.done().await) }
            })
            .collect();
        let stop = |handle: &RunHandle| {
            handle.stop(StopRequest::now());
        };
        took.extend(stop_each(handles, stop, ends).await?);
        place.count.reaches(0).await?;
    }
    others.end().await?;
    Ok(took)
}

/// Asks for each stop at its own intended instant, from a thread outside the runtime, as a signal or another process
/// would; microseconds from that instant until a task of the runtime has seen the end.
async fn stop_each<H: Send + 'static, E: Future<Output = ()> + Send + 'static>(
    handles: Vec<H>,
    stop: impl Fn(&H) + Send + 'static,
    ends: Vec<E>,
) -> anyhow::Result<Vec<f64>> {
    const LEAD: Duration = Duration::from_millis(5);
    const APART: Duration = Duration::from_micros(1370);
    let first = Instant::now() + LEAD;
    let intended = move |n: u32| first + APART * n;
    let seen: Vec<_> = ends
        .into_iter()
        .map(|end| {
            tokio::spawn(async move {
                end.await;
                Instant::now()
            })
        })
        .collect();
    let asking = thread::spawn(move || {
        for (n, handle) in (0..).zip(&handles) {
            thread::sleep(intended(n).saturating_duration_since(Instant::now()));
            stop(handle);
        }
    });
    let mut took = Vec::new();
    for (n, seen) in (0..).zip(seen) {
        took.push(micros(seen.await?.saturating_duration_since(intended(n))));
    }
    anyhow::ensure!(asking.join().is_ok(), "the thread that asks panicked");
    Ok(took)
}

/// Work that continues until it is ended.
struct Others {
    over: Arc<AtomicBool>,
    running: JoinSet<anyhow::Result<()>>,
}

impl Others {
    fn begin<W: Future<Output = anyhow::Result<()>> + Send + 'static>(
        work: impl Fn() -> W + Clone + Send + 'static,
    ) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let mut running = JoinSet::new();
        for _ in 0..OTHERS {
            let (over, work) = (Arc::clone(&over), work.clone());
            running.spawn(async move {
                // Relaxed: one more round is done at most, and `end` joins all.
                while !over.load(Ordering::Relaxed) {
                    work().await?;
                }
                Ok(())
            });
        }
        Self { over, running }
    }

    async fn end(self) -> anyhow::Result<()> {
        // Relaxed: the joins below order the rest.
        self.over.store(true, Ordering::Relaxed);
        join(self.running).await
    }
}

fn percentile(all: &mut [f64], percent: usize) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() * percent / 100).copied().unwrap_or(f64::NAN)
}
