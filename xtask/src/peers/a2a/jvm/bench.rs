//! One agent that listens, with a scripted model behind it and a line before it, and our binary over it.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{
    super::super::facts::{Fate, Model, fresh, until},
    Answers, Peer,
    relay::Relay,
    script::{Planned, script},
};

/// How long a server may take for an answer: its first one is slow.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where its card is.
const CARD: &str = "/.well-known/agent-card.json";

/// One agent, ready to be run; ended when dropped.
pub(super) struct Bench {
    binary: PathBuf,
    folder: PathBuf,
    pub(super) answers: Answers,
    /// Where it takes JSON-RPC itself, without the line before it.
    port: u16,
    path: &'static str,
    pub(super) relay: Relay,
    model: Model,
    serving: Child,
}

impl Bench {
    /// Starts it, with a model that says all that is planned, and waits until it listens.
    pub(super) fn set_up(binary: &Path, peer: &Peer, jar: &Path, plan: &[Planned]) -> anyhow::Result<Self> {
        let folder = jar.ancestors().find(|folder| folder.ends_with(peer.folder));
        let folder = folder.context("it is not built in its folder")?.join("runs");
        fresh(&folder)?;
        let port = free_port()?;
        let model = Model::start(binary, &folder, &script(plan, peer.tool))?;
        let relay = Relay::start(port)?;
        let log = File::create(folder.join("server.log"))?;
        let serving = Command::new("java")
            .args(["-Xmx400m", "-XX:TieredStopAtLevel=1", "-jar"])
            .arg(jar)
            .env("PORT", port.to_string())
            .env("PEER_URL", format!("http://127.0.0.1:{}", relay.port()))
            .env("PEER_LOG", folder.join("log"))
            .env("MODEL_URL", format!("http://127.0.0.1:{}", model.port()))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("Java could not be started")?;
        let mut bench = Self {
            binary: binary.to_owned(),
            folder,
            answers: peer.answers,
            port,
            path: peer.path,
            relay,
            model,
            serving,
        };
        let mut has_ended = false;
        until("the agent listens", || {
            has_ended = matches!(bench.serving.try_wait(), Ok(Some(_)));
            has_ended || TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        ensure!(!has_ended, "it ended: {}", fs::read_to_string(bench.folder.join("server.log"))?);
        let card = bench.ask("GET", CARD, "")?;
        // Servers of 0.2.5 have theirs in another place.
        let has_card = peer.answers == Answers::Whole || card.contains("protocolVersion");
        ensure!(has_card, "it shows no card: {card}");
        Ok(bench)
    }

    /// Starts our binary over it. A run that was started with the same plan before is over.
    pub(super) fn start(&self, planned: &Planned, args: &[&str]) -> anyhow::Result<Ours> {
        let out = self.out(planned, args[0]);
        let child = Command::new(&self.binary)
            .args(args)
            .args(["--json", "--grace", "0", "--backend"])
            .arg(format!("a2a:http://127.0.0.1:{}", self.relay.port()))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(out.with_extension("err"))?)
            .spawn()
            .context("our binary could not be started")?;
        Ok(Ours { child, out })
    }

    /// The same with a session that is kept.
    pub(super) fn start_kept(&self, planned: &Planned, args: &[&str]) -> anyhow::Result<Ours> {
        let store = self.folder.join(format!("{}.db", planned.run)).display().to_string();
        self.start(planned, &[args, &["--store", &store]].concat())
    }

    /// In which conversations it began what was asked with this mark.
    pub(super) fn begun(&self, mark: &str) -> Vec<String> {
        let begun = |line: &str| {
            let (context, text) = line.strip_prefix("began ")?.split_once(": ")?;
            text.contains(mark).then(|| context.to_owned())
        };
        self.log().lines().filter_map(begun).collect()
    }

    /// The pieces of a run's answer, as the agent itself has them.
    pub(super) fn account(&self, planned: &Planned) -> anyhow::Result<Vec<String>> {
        let said = lines(&self.out(planned, "run"));
        let named = said.iter().find(|line| line["type"] == "call_named");
        let task = &named.context("its work was not named")?["task"];
        let body = json!({"jsonrpc": "2.0", "id": "account", "method": "tasks/get", "params": {"id": task}});
        let answer = self.ask("POST", self.path, &body.to_string())?;
        let answer: Value = serde_json::from_str(&answer)?;
        let parts = answer["result"]["artifacts"][0]["parts"].as_array();
        let parts = parts.with_context(|| format!("its task has no answer: {answer}"))?;
        Ok(parts.iter().filter_map(|part| part["text"].as_str().map(str::to_owned)).collect())
    }

    /// What the agent's server answers.
    fn ask(&self, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
        let head = format!("content-type: application/json\r\ncontent-length: {}", body.len());
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        // Of HTTP 1.0: what is answered comes in one piece, and then the line is closed.
        socket.write_all(format!("{method} {path} HTTP/1.0\r\n{head}\r\n\r\n{body}").as_bytes())?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        let (_, answer) = answer.split_once("\r\n\r\n").context("it does not answer by HTTP")?;
        Ok(answer.to_owned())
    }

    /// How often the tool ticked in this run.
    pub(super) fn ticks(&self, planned: &Planned) -> usize {
        let tick = format!("tick in run {}", planned.run);
        self.log().lines().filter(|line| *line == tick).count()
    }

    /// Where our binary writes what it has to say.
    fn out(&self, planned: &Planned, command: &str) -> PathBuf {
        self.folder.join(format!("{}-{command}.jsonl", planned.run))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// What became of the model's answers to this run.
    pub(super) fn fates(&self, planned: &Planned) -> Vec<Fate> {
        let mark = planned.mark();
        let is_its = |body: &Value| body.to_string().contains(&mark);
        self.model.requests().into_iter().filter(|it| is_its(&it.body)).map(|it| it.fate).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if self.serving.kill().and_then(|()| self.serving.wait()).is_err() {
            // It ended by itself.
        }
    }
}

/// Our running binary; killed when dropped.
pub(super) struct Ours {
    child: Child,
    out: PathBuf,
}

impl Ours {
    /// What came of the answer so far, piece by piece.
    pub(super) fn pieces(&self) -> Vec<String> {
        let said = lines(&self.out);
        let pieces = said.iter().filter(|line| line["type"] == "text_delta");
        pieces.filter_map(|line| line["text"].as_str().map(str::to_owned)).collect()
    }

    pub(super) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("it could not be signalled")
    }

    /// Whether it has returned.
    pub(super) fn has_returned(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Its outcome, and when it returned.
    pub(super) fn end(&mut self) -> anyhow::Result<(Value, Instant)> {
        let said = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        until("our binary returns", || self.has_returned())
            .with_context(|| format!("it hangs: {}", said(&self.out)))?;
        let (at, errors) = (Instant::now(), said(&self.out.with_extension("err")));
        let said = said(&self.out);
        let last = said.lines().last().unwrap_or_default();
        let outcome: Value =
            serde_json::from_str(last).with_context(|| format!("it said {last:?}, and {errors:?}"))?;
        ensure!(outcome["type"] == "outcome", "it has no outcome: {outcome}, and {errors:?}");
        Ok((outcome, at))
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            // It ended by itself.
        }
    }
}

/// A port for a server that takes seconds to listen: below those that the system hands out meanwhile.
fn free_port() -> anyhow::Result<u16> {
    const PORTS: std::ops::Range<u16> = 20_000..30_000;
    let start = u16::try_from(std::process::id() % u32::from(PORTS.end - PORTS.start))?;
    let mut ports = PORTS.cycle().skip(usize::from(start)).take(PORTS.len());
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).context("no port is free")
}

/// What our binary wrote there so far.
fn lines(out: &Path) -> Vec<Value> {
    let said = fs::read_to_string(out).unwrap_or_default();
    said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
