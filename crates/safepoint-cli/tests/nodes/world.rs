//! A database, nodes over it, and a ledger of what their commands did.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use safepoint_testkit::wait::{self, InTime as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cluster::Cluster;

/// What a command does: it notes that it begins, notes that it lives until it may end, and notes that it ends.
const EFFECT: &str = "\
echo \"begin $1\" >> ledger
until [ -e open ]; do echo \"$1\" >> beats; sleep 0.05; done
echo \"end $1\" >> ledger
";

/// Takes the name of a host of its own, and is the program.
const AS_HOST: &str = "echo \"$0\" > /proc/sys/kernel/hostname && exec \"$@\"";

pub(super) struct World {
    pub(super) folder: TempDir,
    pub(super) cluster: Cluster,
    pub(super) database: String,
    /// What the agents of its nodes do after a restart.
    on_restart: &'static str,
}

/// A `safepoint serve` under its own hostname. It ends with this.
pub(super) struct NodeProcess {
    process: Child,
    name: String,
    url: String,
    token: String,
}

impl World {
    pub(super) fn new() -> Self {
        Self::on(Cluster::start(&[]))
    }

    /// Whose agents resume what was cut, wherever their session is opened.
    pub(super) fn whose_turns_resume() -> Self {
        let mut world = Self::new();
        world.on_restart = "resume";
        world
    }

    /// Over this server.
    pub(super) fn on(cluster: Cluster) -> Self {
        let database = format!("postgres://postgres:secret@127.0.0.1:{}/postgres", cluster.port);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("effect"), EFFECT).unwrap();
        Self { folder, cluster, database, on_restart: "wait" }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Without anything of the tester's own environment.
    fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("XDG_RUNTIME_DIR", self.folder.path()).env("HOME", self.folder.path());
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// A node with the default lease of a database.
    pub(super) fn node(&self, name: &str) -> NodeProcess {
        self.node_at(name, &self.database, &[])
    }

    /// The same, which reaches the database by this address, with these variables.
    pub(super) fn node_at(&self, name: &str, database: &str, variables: &[(&str, &str)]) -> NodeProcess {
        let own: &[&str] =
            if geteuid().is_root() { &["--uts"] } else { &["--user", "--map-root-user", "--uts"] };
        let mut command = self.program("unshare");
        command.args(own).args(["sh", "-c", AS_HOST, name, env!("CARGO_BIN_EXE_safepoint")]);
        let token = self.file(&format!("{name}.token"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--node", name, "--lease", "4s", "--drain", "5s"]);
        command.args(["--on-restart", self.on_restart]);
        command.args(["--tools", "shell", "--approve", "auto", "--sandbox", "off", "--no-project"]);
        command.args(["--store", database, "--tokens", &self.file("tokens.toml")]);
        command.env("XDG_RUNTIME_DIR", self.file(name)).envs(variables.iter().copied());
        fs::create_dir_all(self.file(name)).unwrap();
        let log = fs::OpenOptions::new().create(true).append(true).open(self.file(&format!("{name}.log")));
        let mut process = command.stderr(log.unwrap()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log = || fs::read_to_string(self.file(&format!("{name}.log"))).unwrap_or_default();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{name}: {line} {}", log()));
        fs::copy(said["token"].as_str().unwrap(), &token).unwrap();
        NodeProcess {
            process,
            name: name.to_owned(),
            url: said["listening"].as_str().unwrap().to_owned(),
            token,
        }
    }

    /// What a command over the database says in lines of JSON.
    pub(super) async fn says(&self, args: &[&str]) -> Vec<Value> {
        let mut command = self.program(env!("CARGO_BIN_EXE_safepoint"));
        command.args(args).args(["--json", "--store", &self.database]);
        let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = ended.in_time("the end of a command").await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Which node holds each of the sessions that one holds.
    pub(super) async fn holders(&self) -> BTreeMap<String, String> {
        let lines = self.says(&["sessions", "ls", "--most", "1000"]).await;
        let held = |line: &Value| {
            Some((line["session"].as_str()?.to_owned(), line["owner"]["node_name"].as_str()?.to_owned()))
        };
        lines.iter().filter_map(held).collect()
    }

    /// Waits until all these are held by nodes that are not this one.
    pub(super) async fn taken_from(&self, name: &str, sessions: &[String]) {
        let look = async || {
            let holders = self.holders().await;
            let is_taken = |session: &String| holders.get(session).is_some_and(|holder| holder != name);
            if sessions.iter().all(is_taken) { Ok(()) } else { Err(holders) }
        };
        wait::asked(format_args!("what {name} had is taken up"), look).await;
    }

    /// Waits until the node is there again beside its dead self, and sound.
    pub(super) async fn is_back(&self, name: &str) {
        let look = async || {
            let nodes = self.says(&["nodes", "ls"]).await;
            let is_it = |line: &Value| line["name"] == name && line["state"] == "serving";
            if nodes.iter().any(is_it) { Ok(()) } else { Err(nodes) }
        };
        wait::asked(format_args!("{name} has joined again"), look).await;
    }

    /// What the commands noted.
    pub(super) fn ledger(&self) -> Vec<String> {
        let noted = fs::read_to_string(self.file("ledger")).unwrap_or_default();
        noted.lines().map(str::to_owned).collect()
    }

    /// How many times each was noted.
    pub(super) fn counted(&self, what: &str) -> BTreeMap<String, usize> {
        let mut counted = BTreeMap::new();
        for line in self.ledger() {
            if let Some(name) = line.strip_prefix(what).and_then(|name| name.strip_prefix(' ')) {
                *counted.entry(name.to_owned()).or_default() += 1;
            }
        }
        counted
    }

    /// How often commands have noted that they live.
    pub(super) fn beats(&self) -> u64 {
        fs::metadata(self.file("beats")).map_or(0, |beats| beats.len())
    }

    /// Lets every command end.
    pub(super) fn open(&self) {
        fs::write(self.file("open"), "").unwrap();
    }

    /// What is said of each journal: how many records it has.
    pub(super) async fn journals(&self) -> Vec<(String, String)> {
        let lines = self.says(&["store", "check"]).await;
        let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        lines.iter().map(|line| (text(line, "session"), text(line, "said"))).collect()
    }

    /// No command began twice, and each journal is sound.
    pub(super) async fn is_sound(&self, commands: usize) {
        let begun = self.counted("begin");
        assert!(begun.len() == commands && begun.values().all(|times| *times == 1), "{begun:?}");
        for line in self.says(&["store", "check"]).await {
            assert_eq!(line["sound"], true, "{line}");
        }
    }
}

impl Drop for World {
    /// What the nodes of a test that failed said.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for entry in fs::read_dir(self.folder.path()).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|end| end == "log") {
                println!(
                    "{}: {}",
                    entry.path().display(),
                    fs::read_to_string(entry.path()).unwrap_or_default()
                );
            }
        }
    }
}

impl NodeProcess {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// The process alone: its commands are for whoever watches them.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.process.wait().unwrap();
    }

    pub(super) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(super) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it as an operator does, and waits for that.
    pub(super) async fn drained(mut self) {
        self.signal(Signal::TERM);
        let name = self.name.clone();
        let ended = tokio::task::spawn_blocking(move || self.process.wait().unwrap());
        ended.in_time(format_args!("the drain of {name}")).await.unwrap();
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.asked(safepoint_http::shared().unwrap().post(&self.at(path)).body(body.to_string()), path).await
    }

    pub(super) async fn get(&self, path: &str) -> (u16, Value) {
        self.asked(safepoint_http::shared().unwrap().request(http::Method::GET, &self.at(path)), path).await
    }

    fn at(&self, path: &str) -> url::Url {
        format!("{}{path}", self.url).parse().unwrap()
    }

    async fn asked(&self, request: safepoint_http::Request, path: &str) -> (u16, Value) {
        let token = fs::read_to_string(&self.token).unwrap();
        let request =
            request.header(http::header::AUTHORIZATION, format!("Bearer {}", token.trim()).parse().unwrap());
        let request = request.header(http::header::CONTENT_TYPE, "application/json".parse().unwrap());
        let answer =
            request.send().in_time(format_args!("an answer of {} to {path}", self.name)).await.unwrap();
        let (status, bytes) = (answer.status().as_u16(), answer.bytes().await.unwrap());
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// A session in which the command of this name runs, by its id.
    pub(super) async fn runs(&self, name: &str) -> String {
        let item = json!({"text": format!("run: sh effect {name}")});
        let (status, made) = self.post("/v1/sessions", json!({"item": item})).await;
        assert_eq!(status, 201, "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    /// The same, for as many sessions as is said, once all commands run.
    pub(super) async fn run(&self, world: &World, sessions: usize) -> Vec<String> {
        let mine = || world.counted("begin").keys().filter(|name| name.starts_with(&self.name)).count();
        let before = mine();
        let mut begun = Vec::new();
        for at in before..before + sessions {
            begun.push(self.runs(&format!("{}{at}", self.name)).await);
        }
        let look = async || {
            let noted = mine();
            if noted == before + sessions { Ok(()) } else { Err(noted) }
        };
        wait::asked(format_args!("the commands of {} run", self.name), look).await;
        begun
    }

    /// What became of a session's item, once that is at rest: one request waits for a bounded time.
    pub(super) async fn outcome(&self, session: &str, item: u64) -> Value {
        let look = async || {
            let (status, item) =
                self.get(&format!("/v1/sessions/{session}/items/item-{item}?wait=rest")).await;
            assert_eq!(status, 200, "{item}");
            if item["state"] == "rest" { Ok(item["outcome"].clone()) } else { Err(item) }
        };
        wait::asked(format_args!("item {item} of {session} is at rest, says {}", self.name), look).await
    }

    /// Goes on with the turn that was cut, to its end.
    pub(super) async fn resumes(&self, session: &str) -> Value {
        let (status, resumed) = self.post(&format!("/v1/sessions/{session}/resume"), json!({})).await;
        assert_eq!(status, 202, "{resumed}");
        let look = async || match self.outcome(session, 1).await {
            outcome if outcome == "completed" => Ok(outcome),
            other => Err(other),
        };
        wait::asked(format_args!("the end of the turn of {session}"), look).await
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            self.signal(Signal::CONT);
            self.signal(Signal::KILL);
            self.process.wait().unwrap();
        }
    }
}
