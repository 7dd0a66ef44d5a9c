//! Agents written by others, behind A2A. Our binary runs over each and is interrupted while the peer works;
//! then the peer's record of its work is compared with our receipt.

mod install;
mod jvm;
mod table;

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Absent, Tally, Wanted, target};

use self::table::Row;

/// An agent of others, and what is known of it.
struct Peer {
    name: &'static str,
    /// What the server's file calls it.
    kind: &'static str,
    /// The versions that its card names.
    wires: &'static str,
    /// The peer's word for a stop.
    word: &'static str,
    /// What becomes of its work.
    deed: Deed,
}

/// What becomes of work that was to end. Exhaustive: it ends or it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    TornDown,
    GoesOn,
}

const PEERS: [Peer; 7] = [
    Peer { name: "google-adk", kind: "adk", wires: "1.0", word: "acknowledged", deed: Deed::TornDown },
    Peer {
        name: "agent-framework-a2a",
        kind: "framework",
        wires: "1.0 0.3",
        word: "acknowledged",
        deed: Deed::TornDown,
    },
    Peer {
        name: "agent-framework-a2a over 0.3",
        kind: "framework",
        wires: "0.3",
        word: "acknowledged",
        deed: Deed::TornDown,
    },
    Peer {
        name: "a2a-sdk, work that ends on request",
        kind: "sdk-ends",
        wires: "1.0 0.3",
        word: "acknowledged",
        deed: Deed::TornDown,
    },
    Peer {
        name: "a2a-sdk, work that does not",
        kind: "sdk-continues",
        wires: "1.0 0.3",
        word: "acknowledged",
        deed: Deed::GoesOn,
    },
    Peer {
        name: "a2a-sdk, an executor that refuses",
        kind: "sdk-refuses",
        wires: "1.0 0.3",
        word: "refused",
        deed: Deed::TornDown,
    },
    Peer {
        name: "a2a-sdk, an executor without a cancel",
        kind: "sdk-unwritten",
        wires: "1.0 0.3",
        word: "refused",
        deed: Deed::TornDown,
    },
];

/// How long work is that outlives our binary.
const STEPS: u32 = 20;

/// Runs every scenario against every agent, and holds the document against what was seen.
pub(super) fn peers(binary: &Path, tally: &mut Tally, wanted: &Wanted) -> anyhow::Result<()> {
    if wanted.agent.is_some() {
        return jvm::peers(binary, tally, wanted);
    }
    let cache = target().join("peers/a2a");
    fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
    let installed = install::python(&cache);
    let mut rows = Vec::new();
    for peer in &PEERS {
        let answers = format!("{}: its answer is ours", peer.name);
        let stops = format!("{}: a stop while it works is reported as what it is", peer.name);
        let kills =
            format!("{}: our binary is killed while it works: the next one begins nothing twice", peer.name);
        match &installed {
            Err(Absent(reason)) => {
                tally.skip(&answers, reason);
                tally.skip(&stops, reason);
                tally.skip(&kills, reason);
            }
            Ok(python) => {
                tally.take(&answers, || answered(&Bench::set_up(binary, &cache, python, peer, 3)?));
                tally.take(&stops, || {
                    rows.push(stopped(&Bench::set_up(binary, &cache, python, peer, 60)?, peer)?);
                    Ok(())
                });
                tally.take(&kills, || killed(&Bench::set_up(binary, &cache, python, peer, STEPS)?));
            }
        }
    }
    if rows.len() == PEERS.len() {
        tally.take("docs/backends.md says what these agents did", || table::check(&rows));
    }
    jvm::peers(binary, tally, wanted)
}

/// Its answer is the run's.
fn answered(bench: &Bench) -> anyhow::Result<()> {
    let output = bench.ours().output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome = outcome(&output)?;
    ensure!(outcome["answer"] == "step 1. step 2. step 3. ", "{outcome}");
    ensure!(bench.noted().ends_with(&["ended".to_owned()]), "{:?}", bench.noted());
    Ok(())
}

/// Killed while the peer works: the work is asked for by the peer's name for it.
fn killed(bench: &Bench) -> anyhow::Result<()> {
    let folder = bench.log.with_extension("kept");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let store = folder.join("store.db");
    let mut first = bench.ours();
    let mut first = first
        .args(["--session", "s", "--store"])
        .arg(&store)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    until("the peer works", || bench.noted().iter().any(|word| word == "step 3"))?;
    kill_process(Pid::from_child(&first), Signal::KILL)?;
    first.wait()?;
    let mut next = bench.safepoint(&["resume", "s"]);
    let outcome = outcome(&next.arg("--store").arg(&store).output()?)?;
    let whole: String = (1..=STEPS).map(|step| format!("step {step}. ")).collect();
    ensure!(outcome["answer"] == whole, "{outcome}");
    let begun = bench.noted().iter().filter(|word| *word == "began").count();
    ensure!(begun == 1, "it was begun {begun} times");
    Ok(())
}

/// Interrupted while the peer works.
fn stopped(bench: &Bench, peer: &Peer) -> anyhow::Result<Row> {
    const LAG: Duration = Duration::from_secs(2);
    let ours = bench.ours().stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    until("the peer works", || bench.noted().iter().any(|word| word == "step 3"))?;
    kill_process(Pid::from_child(&ours), Signal::INT)?;
    let outcome = outcome(&ours.wait_with_output()?)?;
    let remote = &outcome["receipt"]["calls"][0]["remote"];
    let when_reported = bench.noted();
    // The peer's own record shows later work a little later.
    std::thread::sleep(LAG);
    let later = bench.noted();
    let steps = |noted: &[String]| noted.iter().filter(|word| word.starts_with("step")).count();
    let deed = if steps(&later) > steps(&when_reported) { Deed::GoesOn } else { Deed::TornDown };
    ensure!(outcome["status"] == "stopped", "{outcome}");
    ensure!(
        remote["stop"] == peer.word,
        "it is reported as {}, not as {}: {remote}",
        remote["stop"],
        peer.word
    );
    ensure!(deed == peer.deed, "its work {deed:?}: {later:?}");
    // Nothing was declared of it: no word of its makes the run quiet.
    ensure!(outcome["receipt"]["quiet"].is_null(), "unknown work was called quiet: {outcome}");
    let status = outcome["receipt"]["calls"][0]["status"].as_str().unwrap_or_default();
    // How its task stands by then is a race in some of them.
    let word = remote["word"].as_str().unwrap_or_default();
    let word = word.split_once("; its task was").map_or(word, |(word, _)| word);
    Ok(Row {
        name: peer.name,
        noted: match deed {
            Deed::TornDown => "torn down",
            Deed::GoesOn => "continues, to its last step",
        },
        row: format!("{}, {}: \"{word}\"", status.replace('_', " "), peer.word),
    })
}

/// One agent that listens; ended when dropped.
struct Bench {
    binary: PathBuf,
    log: PathBuf,
    url: String,
    serving: Child,
}

impl Bench {
    fn set_up(
        binary: &Path,
        cache: &Path,
        (interpreter, server): &(PathBuf, PathBuf),
        peer: &Peer,
        steps: u32,
    ) -> anyhow::Result<Self> {
        let log = cache.join("log");
        fs::write(&log, "")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(interpreter);
        command.arg(server).arg(peer.kind).arg(port.to_string());
        command.env("PEER_LOG", &log).env("PEER_STEPS", steps.to_string()).env("PEER_WIRE", peer.wires);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let serving = command.spawn().context("the server could not be started")?;
        let bench = Self { binary: binary.to_owned(), log, url: format!("http://127.0.0.1:{port}"), serving };
        until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        Ok(bench)
    }

    /// Our binary over the agent.
    fn ours(&self) -> Command {
        self.safepoint(&["run", "count", "--grace", "0"])
    }

    fn safepoint(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args).args(["--backend", &format!("a2a:{}", self.url), "--json"]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null());
        command
    }

    /// What the agent wrote down of its work, a line each.
    fn noted(&self) -> Vec<String> {
        fs::read_to_string(&self.log).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if self.serving.kill().and_then(|()| self.serving.wait()).is_err() {
            // It ended by itself.
        }
    }
}

/// The last line of `--json`.
fn outcome(output: &Output) -> anyhow::Result<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().context("our binary said nothing")?;
    serde_json::from_str(last).with_context(|| format!("our binary said {last:?}"))
}

/// Polls a condition of the real world.
fn until(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(60);
    const LOOK: Duration = Duration::from_millis(10);
    let began = Instant::now();
    while !holds() {
        ensure!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(LOOK);
    }
    Ok(())
}
