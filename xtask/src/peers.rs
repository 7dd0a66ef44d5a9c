//! `peers`: our binary against servers and clients written by others, so that we do not only agree with ourselves.
//!
//! A peer that cannot be had here (no node, no registry) is no failure, and no success either: each of its scenarios is
//! listed as skipped, with the reason.

mod a2a;
mod a2a_server;
mod acp;
mod aimock;
mod driven;
mod editors;
mod facts;
mod fixtures;
mod mcp;
mod mcp_server;
mod node;
mod otel;
mod responses;
mod restate;
mod scenarios;
mod sdks;
mod server;
mod serving;
mod stop_agents;
mod stops;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, bail};

use crate::{optional, source};

pub(crate) use self::stops::stop_table;

use self::{facts::Stops, scenarios::SCENARIOS, serving::Serving};

/// A server written by others. It answers `say: TEXT` with the text, slowly, `run: COMMAND` with a call of `shell`, a
/// call's result with some text, and what ends in `and then?` with `and so it went on`.
trait Peer {
    fn name(&self) -> &'static str;

    /// The wires that it serves, as `--model` names them.
    fn wires(&self) -> &'static [&'static str];

    /// Installs it by name into the folder; the reason, where it cannot be had.
    fn install(&self, cache: &Path) -> Result<(), Absent>;

    /// Starts it, installed.
    fn serve(&self, cache: &Path) -> anyhow::Result<Serving>;
}

/// Why a peer cannot be had on this machine.
#[derive(Debug)]
struct Absent(String);

/// Every peer; a new one has its own file and its place here.
const PEERS: [&dyn Peer; 1] = [&aimock::Aimock];

/// What is asked of the recipe.
pub(crate) struct Wanted {
    only: Option<String>,
    reach: Reach,
    /// How often what is counted is repeated.
    times: u32,
    /// Only the agents that people run in whose name this is.
    agent: Option<String>,
}

/// How much of the agents that people run. Exhaustive: what CI has time for, or all that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Default,
    All,
}

impl Wanted {
    /// Whether an agent of this name is wanted.
    fn agent(&self, name: &str) -> bool {
        let has = |part: &String| name.to_lowercase().contains(&part.to_lowercase());
        self.agent.as_ref().is_none_or(has)
    }

    /// What the arguments say: a kind, `--all`, `--times N`, `--agent NAME`.
    pub(crate) fn of(args: &[String]) -> anyhow::Result<Self> {
        let mut wanted = Self { only: None, reach: Reach::Default, times: 1, agent: None };
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            match arg {
                "--all" => wanted.reach = Reach::All,
                "--times" => {
                    let times = args.next().and_then(|times| times.parse().ok());
                    wanted.times = times.context("--times takes a number")?;
                }
                "--agent" => wanted.agent = Some(args.next().context("--agent takes a name")?.to_owned()),
                kind if KINDS.iter().any(|(known, _)| *known == kind) => wanted.only = Some(kind.to_owned()),
                other => bail!("`peers` does not know `{other}`"),
            }
        }
        Ok(wanted)
    }
}

#[derive(Default)]
struct Tally {
    passed: u32,
    failed: u32,
    skipped: u32,
    stops: Stops,
}

impl Tally {
    /// A scenario that cannot be run here.
    fn skip(&mut self, title: &str, reason: &str) {
        println!("peers: skipped  {title}: {reason}");
        self.skipped += 1;
    }

    /// Runs a scenario whose stops are counted.
    fn take_stop(&mut self, title: &str, scenario: impl FnOnce(&mut Stops) -> anyhow::Result<()>) {
        let mut stops = std::mem::take(&mut self.stops);
        self.take(title, || scenario(&mut stops));
        self.stops = stops;
    }

    /// Runs a scenario.
    fn take(&mut self, title: &str, scenario: impl FnOnce() -> anyhow::Result<()>) {
        let began = Instant::now();
        match scenario() {
            Ok(()) => {
                println!("peers: ok       {title} ({:.1?})", began.elapsed());
                self.passed += 1;
            }
            Err(error) => {
                println!("peers: FAILED   {title}: {error:#}");
                self.failed += 1;
            }
        }
    }
}

type Kind = (&'static str, fn(&Path, &mut Tally, &Wanted) -> anyhow::Result<()>);

/// The kind that needs no binary of ours.
const AGENTS: &str = "stop-agents";

const KINDS: [Kind; 15] = [
    ("models", |binary, tally, _| models(binary, tally)),
    ("mcp", |binary, tally, _| mcp::peers(binary, tally)),
    ("sdks", |binary, tally, _| sdks::peers(binary, tally)),
    ("fixtures", |binary, tally, _| fixtures::peers(binary, tally)),
    ("acp", acp::peers),
    ("a2a", a2a::peers),
    ("server", |binary, tally, _| server::peers(binary, tally)),
    ("responses", responses::peers),
    ("a2a-server", |binary, tally, _| a2a_server::peers(binary, tally)),
    ("mcp-server", |binary, tally, _| mcp_server::peers(binary, tally)),
    ("editors", |binary, tally, _| editors::peers(binary, tally)),
    ("stops", |binary, tally, _| stops::ours(binary, tally)),
    (AGENTS, |_, tally, _| stop_agents::peers(tally)),
    ("otel", |binary, tally, _| otel::peers(binary, tally)),
    ("restate", |_, tally, _| restate::peers(tally)),
];

/// Runs every scenario that is wanted against every peer, or against those of one kind.
pub(crate) fn peers(wanted: &Wanted) -> anyhow::Result<()> {
    let binary = if wanted.only.as_deref() == Some(AGENTS) { PathBuf::new() } else { optional::binary()? };
    let mut tally = Tally::default();
    for (kind, run) in KINDS {
        if wanted.only.as_deref().is_none_or(|only| only == kind) {
            run(&binary, &mut tally, wanted)?;
        }
    }
    let Tally { passed, failed, skipped, stops } = tally;
    stops.print();
    println!("peers: {passed} passed, {failed} failed, {skipped} skipped");
    if failed > 0 {
        bail!("{failed} scenarios failed against servers of others");
    }
    Ok(())
}

/// Runs every scenario on every wire of every server of models.
fn models(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    for peer in PEERS {
        let cache = target().join("peers").join(peer.name());
        std::fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
        let installed = peer.install(&cache);
        for wire in peer.wires() {
            for (name, scenario) in SCENARIOS {
                let title = format!("{} on {wire}: {name}", peer.name());
                match &installed {
                    Err(Absent(reason)) => tally.skip(&title, reason),
                    Ok(()) => tally.take(&title, || scenario(binary, wire, &mut peer.serve(&cache)?)),
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| source::root().join("target"), PathBuf::from)
}
