//! Agents written with others' libraries, started by us and stopped in the middle of their work: what they said to that
//! on their own wire, beside what our receipt says.

mod real;
mod scenarios;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use serde_json::Value;

use super::{Absent, Tally, Wanted, mcp::quietly, node, target};

pub(in crate::peers) use self::table::place;

use self::scenarios::{Scenario, of_python, of_sample};

/// The versions that the scenarios are known to fit. The sample agent is shipped with the package up to this one.
const PYTHON: &str = "agent-client-protocol==0.12.1";
const SDK: &str = "@agentclientprotocol/sdk@1.9.0";
const SAMPLE: &str = "node_modules/@agentclientprotocol/sdk/dist/examples/agent.js";

struct Peer {
    name: &'static str,
    install: fn(&Path) -> Result<String, Absent>,
    scenarios: &'static [(&'static str, Scenario)],
}

const PEERS: [Peer; 2] = [
    Peer { name: "agent-client-protocol of PyPI", install: python, scenarios: &of_python::ALL },
    Peer {
        name: "the sample agent of @agentclientprotocol/sdk",
        install: sample,
        scenarios: &of_sample::ALL,
    },
];

/// Runs every scenario against every agent.
pub(super) fn peers(binary: &Path, tally: &mut Tally, wanted: &Wanted) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    let peers = PEERS.iter().filter(|_| wanted.agent.is_none());
    for peer in peers {
        let folder = peer.name.split([' ', '/']).next().unwrap_or_default();
        let cache = target().join("peers").join(format!("acp-{folder}"));
        fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
        let installed = (peer.install)(&cache);
        for (scenario, run) in peer.scenarios {
            let title = format!("{} over ACP: {scenario}", peer.name);
            match &installed {
                Err(Absent(reason)) => tally.skip(&title, reason),
                Ok(line) => tally.take(&title, || {
                    let reported = run(&Bench::set_up(binary, &cache, line)?)?;
                    rows.extend(reported.map(|reported| table::row(peer.name, scenario, &reported)));
                    Ok(())
                }),
            }
        }
    }
    table::keep(&rows)?;
    real::peers(binary, tally, wanted)
}

/// The line that starts the agent made with the Python library.
fn python(cache: &Path) -> Result<String, Absent> {
    let interpreter = cache.join("venv/bin/python");
    if !interpreter.exists() {
        quietly(Command::new("python3").args(["-m", "venv"]).arg(cache.join("venv")), "python3 -m venv")?;
    }
    let stamp = cache.join("installed");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(PYTHON) {
        let mut pip = Command::new(&interpreter);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYTHON]);
        quietly(&mut pip, "pip install agent-client-protocol")?;
        write(&stamp, PYTHON)?;
    }
    let agent = cache.join("agent.py");
    write(&agent, include_str!("acp/agent.py"))?;
    Ok(format!("'{}' '{}'", interpreter.display(), agent.display()))
}

/// The line that starts the sample agent that the TypeScript library ships.
fn sample(cache: &Path) -> Result<String, Absent> {
    node::install(SDK, cache)?;
    let program = node::node(cache).get_program().to_string_lossy().into_owned();
    Ok(format!("'{program}' '{}'", cache.join(SAMPLE).display()))
}

fn write(path: &Path, text: &str) -> Result<(), Absent> {
    fs::write(path, text).map_err(|error| Absent(format!("{} cannot be written: {error}", path.display())))
}

/// One agent, and places for what it notices and for what it writes.
struct Bench {
    binary: PathBuf,
    folder: PathBuf,
    line: String,
}

impl Bench {
    fn set_up(binary: &Path, cache: &Path, line: &str) -> anyhow::Result<Self> {
        let folder = cache.join("scenario");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(Self { binary: binary.to_owned(), folder, line: line.to_owned() })
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn wire(&self) -> PathBuf {
        self.folder.join("wire")
    }

    /// What the agent noticed, a word a line.
    fn noticed(&self, word: &str) -> bool {
        fs::read_to_string(self.log()).unwrap_or_default().lines().any(|line| line == word)
    }

    /// What the agent wrote, by its own wire.
    fn wrote(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.wire()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// How its turn ended, by its own word.
    fn ended(&self) -> Option<String> {
        self.wrote().iter().find_map(|message| message["result"]["stopReason"].as_str().map(str::to_owned))
    }

    /// Our binary with the agent as its backend; what the agent writes is copied on its way.
    fn ours(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        let backend = format!("acp:{} | tee '{}'", self.line, self.wire().display());
        command.args(["run", "--json", "--backend", &backend]).args(args).env_clear();
        if !args.contains(&"--grace") {
            command.args(["--grace", "0"]);
        }
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("PEER_LOG", self.log());
        command
    }
}
