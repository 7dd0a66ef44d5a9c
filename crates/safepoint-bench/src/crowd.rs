//! Ten thousand clients that wait on silent streams: what one weighs, whether it wakes, and how fast all are
//! stopped. Each crowd lives in a separate process, so that memory left in the allocator by an earlier crowd
//! is not counted.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use reqwest::Client;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use safepoint::{Agent, RunHandle, StopRequest};
use safepoint_models::openai;
use tokio::task::JoinHandle;

use crate::{
    bare, rounds,
    server::{Server, Serving},
    silent::Count,
    table::{Table, median_of},
};

/// The hidden argument that makes this program a crowd.
pub(crate) const CROWD: &str = "__crowd";

/// KiB of one, context switches, milliseconds until the outcome, until the close, and of this process's CPU.
type Figures = [f64; 5];

/// How long nothing may arrive, of both.
const PATIENCE: Duration = Duration::from_secs(120);

/// Alternating crowds; medians of them.
pub(crate) fn measure(table: &mut Table) -> anyhow::Result<()> {
    const REPEATS: usize = 3;
    let most = allow_files()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        theirs.push(crowd("bare", most)?);
        ours.push(crowd("ours", most)?);
    }
    let mut row = |what: &str, unit: &str, index: usize, wanted: f64| {
        let pair = (median_of(&ours, index), median_of(&theirs, index));
        table.ratio(&format!("{most} on silent streams: {what}"), unit, pair, wanted);
    };
    row("memory of one", "KiB", 0, 1.2);
    row("context switches in 5 s of idling", "", 1, 1.0);
    row("all stopped, until every caller has its outcome", "ms", 2, 1.3);
    row("all stopped, CPU of the whole client", "ms", 4, 1.3);
    row("all stopped, until the server has seen every close", "ms", 3, 1.3);
    Ok(())
}

/// Raises the limit of open files as far as it may be; how many can wait under it.
fn allow_files() -> anyhow::Result<usize> {
    const WANTED: usize = 10_000;
    const OTHER_FILES: u64 = 200;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let room = maximum.map_or(u64::MAX, |most| most.saturating_sub(OTHER_FILES));
    Ok(usize::try_from(room).unwrap_or(usize::MAX).min(WANTED))
}

fn crowd(kind: &str, most: usize) -> anyhow::Result<Figures> {
    let server = Server::start(Serving::Silence)?;
    in_a_process(&[CROWD, kind, &most.to_string(), &server.url, &server.control])
}

/// What this program prints, started with these arguments.
pub(crate) fn in_a_process<const N: usize>(args: &[&str]) -> anyhow::Result<[f64; N]> {
    let output = Command::new(std::env::current_exe()?).args(args).output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout)?;
    let figures: Vec<f64> = said.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    figures.try_into().map_err(|_figures| anyhow::anyhow!("a crowd said `{said}`"))
}

/// The crowd itself: prints its figures.
pub(crate) async fn gather(mut args: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut next = || args.next().ok_or_else(|| anyhow::anyhow!("an argument is missing"));
    let (kind, most, url, control) = (next()?, next()?.parse()?, next()?, next()?);
    let place = CrowdSite { url, count: Count::of(&control).await?, most };
    let figures = match kind.as_str() {
        "bare" => place.measure(Bare(Client::builder().read_timeout(PATIENCE).build()?)).await?,
        _ => place.measure(Ours::default()).await?,
    };
    println!("{}", figures.map(|figure| figure.to_string()).join(" "));
    Ok(())
}

/// One that waits, and how it is ended.
trait CrowdKind {
    type Waiting;
    fn begin(&self, url: &str) -> Self::Waiting;
    fn stop(waiting: &Self::Waiting);
    async fn ended(waiting: Self::Waiting);
}

struct Bare(Client);

impl CrowdKind for Bare {
    type Waiting = JoinHandle<()>;

    fn begin(&self, url: &str) -> JoinHandle<()> {
        let (client, url) = (self.0.clone(), url.to_owned());
        tokio::spawn(async move {
            if let Err(error) = bare::run(&client, &url).await {
                eprintln!("{error:#}");
            }
        })
    }

    fn stop(waiting: &JoinHandle<()>) {
        waiting.abort();
    }

    async fn ended(waiting: JoinHandle<()>) {
        if waiting.await.is_ok() {
            eprintln!("one ended before it was dropped");
        }
    }
}

#[derive(Default)]
struct Ours(std::sync::OnceLock<Agent>);

impl CrowdKind for Ours {
    type Waiting = RunHandle;

    fn begin(&self, url: &str) -> RunHandle {
        let agent = self.0.get_or_init(|| Agent::builder(openai::model("m").base_url(url)).build());
        agent.run("go").detach()
    }

    fn stop(waiting: &RunHandle) {
        waiting.stop(StopRequest::now());
    }

    async fn ended(waiting: RunHandle) {
        drop(waiting.done().await);
    }
}

struct CrowdSite {
    url: String,
    count: Count,
    most: usize,
}

impl CrowdSite {
    async fn measure<K: CrowdKind>(mut self, kind: K) -> anyhow::Result<Figures> {
        const IDLE: Duration = Duration::from_secs(5);
        const BATCH: usize = 250;
        // One first, for all that is made once.
        let first = kind.begin(&self.url);
        self.count.reaches(1).await?;
        let before = resident()?;
        let mut waiting = Vec::with_capacity(self.most);
        while waiting.len() < self.most {
            let batch = BATCH.min(self.most - waiting.len());
            waiting.extend((0..batch).map(|_| kind.begin(&self.url)));
            self.count.reaches(waiting.len() + 1).await?;
        }
        let weight = (resident_at_rest().await? - before) / self.most as f64;
        let switches = switches_in(IDLE).await?;
        let (began, cpu) = (Instant::now(), rounds::cpu_now());
        waiting.iter().for_each(K::stop);
        for one in waiting {
            K::ended(one).await;
        }
        let reported = began.elapsed();
        self.count.reaches(1).await?;
        let (closed, cpu) = (began.elapsed(), (rounds::cpu_now() - cpu) / 1e3);
        K::stop(&first);
        K::ended(first).await;
        Ok([weight, switches, reported.as_secs_f64() * 1e3, closed.as_secs_f64() * 1e3, cpu])
    }
}

/// KiB of this process in memory once it has settled down.
pub(crate) async fn resident_at_rest() -> anyhow::Result<f64> {
    const REST: Duration = Duration::from_secs(1);
    tokio::time::sleep(REST).await;
    resident()
}

/// Context switches in this time.
pub(crate) async fn switches_in(time: Duration) -> anyhow::Result<f64> {
    let before = switches()?;
    tokio::time::sleep(time).await;
    Ok(switches()? - before)
}

/// KiB of this process in memory.
pub(crate) fn resident() -> anyhow::Result<f64> {
    figure(&fs::read_to_string("/proc/self/status")?, "VmRSS:")
}

/// How often any thread of this process slept or was preempted.
fn switches() -> anyhow::Result<f64> {
    let mut all = 0.0;
    for thread in fs::read_dir("/proc/self/task")? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        all += figure(&status, "voluntary_ctxt_switches:")? + figure(&status, "nonvoluntary_ctxt_switches:")?;
    }
    Ok(all)
}

fn figure(status: &str, name: &str) -> anyhow::Result<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|rest| rest.split_whitespace().next());
    Ok(figure.ok_or_else(|| anyhow::anyhow!("the system does not tell {name}"))?.parse()?)
}
