//! Servers of tools written by others, over both transports, and the protocol's own conformance suite for clients.

mod conformance;
pub(super) mod install;
mod scenarios;

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;

use super::{Absent, Tally, target};

use self::scenarios::{OF_PROCESSES, SCENARIOS};

/// A language in which a server is written.
struct Peer {
    name: &'static str,
    install: fn(&Path) -> Result<Vec<String>, Absent>,
}

const PEERS: [Peer; 2] = [
    Peer { name: "mcp of PyPI", install: install::python },
    Peer { name: "@modelcontextprotocol/sdk of npm", install: install::node },
];

/// How a server is talked to. Exhaustive: both ways.
#[derive(Clone, Copy, Debug)]
enum Over {
    Pipes,
    Http,
}

/// Runs every scenario against every server, and then the conformance suite.
pub(super) fn peers(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    for peer in PEERS {
        let folder = peer.name.split([' ', '/']).next().unwrap_or_default().trim_start_matches('@');
        let cache = target().join("peers").join(format!("mcp-{folder}"));
        fs::create_dir_all(&cache).with_context(|| format!("{} cannot be made", cache.display()))?;
        let installed = (peer.install)(&cache);
        for (transport, over) in [("over pipes", Over::Pipes), ("over HTTP", Over::Http)] {
            let more = if matches!(over, Over::Pipes) { &OF_PROCESSES[..] } else { &[] };
            for (scenario, run) in SCENARIOS.iter().chain(more) {
                let title = format!("{} {transport}: {scenario}", peer.name);
                match &installed {
                    Err(Absent(reason)) => tally.skip(&title, reason),
                    Ok(command) => tally.take(&title, || run(&Bench::set_up(binary, &cache, command, over)?)),
                }
            }
        }
    }
    conformance::run(binary, tally)
}

/// One server, configured and, where it is on the network, listening; ended when dropped.
struct Bench {
    binary: PathBuf,
    folder: PathBuf,
    serving: Option<Child>,
}

impl Bench {
    fn set_up(binary: &Path, cache: &Path, command: &[String], over: Over) -> anyhow::Result<Self> {
        let folder = cache.join("scenario");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let mut bench = Self { binary: binary.to_owned(), folder, serving: None };
        let (log, (program, args)) =
            (bench.log(), command.split_first().context("a server's command is empty")?);
        let entry = match over {
            Over::Pipes => format!(
                "[mcp.peer]\ncommand = {program:?}\nargs = {args:?}\nenv = {{ PEER_LOG = {:?} }}\n",
                log.display().to_string()
            ),
            Over::Http => {
                let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
                let mut server = Command::new(program);
                server.args(args).arg(port.to_string()).env("PEER_LOG", &log);
                server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                bench.serving = Some(server.spawn().context("the server could not be started")?);
                until("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())?;
                format!("[mcp.peer]\nurl = \"http://127.0.0.1:{port}/mcp\"\n")
            }
        };
        fs::write(bench.config(), entry)?;
        Ok(bench)
    }

    fn config(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// What the server noticed, a word a line.
    fn noticed(&self, word: &str) -> bool {
        fs::read_to_string(self.log()).unwrap_or_default().lines().any(|line| line == word)
    }

    /// Our binary, to be given more.
    fn ours(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args).arg("--config").arg(self.config()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
        command
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(serving) = &mut self.serving
            && serving.kill().and_then(|()| serving.wait()).is_err()
        {
            // It ended by itself.
        }
    }
}

pub(super) use self::{install::quietly, scenarios::is_alive};

/// Polls a condition of the real world.
pub(super) fn until(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(30);
    const LOOK: Duration = Duration::from_millis(10);
    let began = Instant::now();
    while !holds() {
        anyhow::ensure!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(LOOK);
    }
    Ok(())
}
