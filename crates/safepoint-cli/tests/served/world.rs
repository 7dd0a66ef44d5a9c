//! A world for one scenario: a store in a file, a server over it on a real socket, tokens, and the binary that asks it.

use std::{
    net::SocketAddr,
    process::{Command, Output, Stdio},
    sync::Arc,
    time::Duration,
};

use safepoint::{
    Agent, AgentBuilder, Model,
    approval::{ApprovalMode, WithoutApprover},
    ids::{SessionId, TurnId},
    raw::{JournalFact, JournalStep, read_journal, schema::Schema, store::ItemState},
    store::Store,
};
use safepoint_models::openai;
use safepoint_server::{Access, AccessScope, Host, HostBuilder, HostServer, NewToken, Principal, TokenFile};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
    server::ModelServer,
    wait::{self, InTime as _},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;

/// How long what stops may take in a drain.
const GRACE: Duration = Duration::from_millis(200);

pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    pub(super) address: SocketAddr,
    pub(super) folder: Arc<TempDir>,
    tokens: TokenFile,
    host: Host,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<usize>>,
}

/// What the binary said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl World {
    /// A server with this agent, and a token of every scope in `all.token`.
    pub(super) async fn of(agent: Agent) -> Self {
        Self::with(|host| host.agent("helper", agent)).await
    }

    /// The same, which opens no session by itself.
    pub(super) async fn only_when_asked(agent: Agent) -> Self {
        Self::with(|host| host.agent("helper", agent).only_when_asked()).await
    }

    async fn with(host: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path().join("store.db")).unwrap());
        let host = host(Host::builder(Arc::clone(&store))).start().await.unwrap();
        let path = folder.path().join("tokens.toml");
        let access = Access::tokens(&path);
        let server = HostServer::bind("127.0.0.1:0".parse().unwrap(), &host, access).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let ends = host.clone();
        let served = tokio::spawn(async move {
            let ending = server.serve_until(async { drop(stopped.await) }).await;
            ends.drain(GRACE).await;
            ending.finish().await
        });
        let tokens = TokenFile::new(path);
        let (stop, served) = (Some(stop), Some(served));
        let world = Self { store, address, folder, tokens, host, stop, served };
        world.token("all", Principal::new("anna", AccessScope::ALL).seeing_all());
        world
    }

    /// Makes a token, in a file of this name.
    pub(super) fn token(&self, name: &str, principal: Principal) -> String {
        let token = self.tokens.add(NewToken { principal, expires: None }).unwrap();
        std::fs::write(self.file(&format!("{name}.token")), format!("{token}\n")).unwrap();
        token
    }

    pub(super) fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The binary, which sees nothing of the tester's own environment.
    pub(super) fn binary(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_safepoint"));
        command.args(args).env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("XDG_RUNTIME_DIR", self.folder.path()).env("TMPDIR", self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The binary, asked over HTTP with the token of this file.
    pub(super) fn asks(&self, token: &str, args: &[&str]) -> Command {
        let (url, file) = (self.url(), self.file(&format!("{token}.token")));
        self.binary(&[args, &["--server", &url, "--token-file", &file]].concat())
    }

    /// What it says, with the token of every scope.
    pub(super) async fn ask(&self, args: &[&str]) -> Said {
        said(self.asks("all", args)).await
    }

    /// What it says of the store, without the server.
    pub(super) async fn here(&self, args: &[&str]) -> Said {
        let store = self.file("store.db");
        said(self.binary(&[args, &["--store", &store]].concat())).await
    }

    /// A session of the server that begins with this item, by its id.
    pub(super) async fn session(&self, text: &str) -> String {
        self.made(&serde_json::json!({"item": {"text": text}})).await
    }

    /// A session of the server as this body says, by its id.
    pub(super) async fn made(&self, body: &Value) -> String {
        begun(&self.url(), &self.file("all.token"), body).await
    }

    /// Waits until the session's row has this label.
    pub(super) async fn labelled(&self, session: &str, label: &str) {
        let id = SessionId::from(session);
        let look = || async {
            let row = self.store.open(&id).await.unwrap();
            if row.label == label { Ok(()) } else { Err(row.label) }
        };
        wait::asked(format_args!("{session} is {label}"), look).await;
    }

    /// Waits until no process has the session open.
    pub(super) async fn closed(&self, session: &str) {
        let look = || async {
            let open = self.read(&format!("/v1/sessions/{session}")).await["open"].take();
            if open == "no" { Ok(()) } else { Err(open) }
        };
        wait::asked(format_args!("{session} is closed"), look).await;
    }

    async fn read(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.url()).parse().unwrap();
        let asked = safepoint_http::shared().unwrap().get(&url);
        let asked = asked.header(http::header::AUTHORIZATION, bearer(&self.file("all.token")));
        let read = asked.send().in_time("a read").await.unwrap();
        assert_eq!(read.status(), 200);
        serde_json::from_slice(&read.bytes().await.unwrap()).unwrap()
    }

    /// Waits until nothing of this turn is alive.
    pub(super) async fn quiet(&self, session: &str, turn: u64) {
        let (id, turn) = (SessionId::from(session), TurnId::new(turn));
        let look = || async {
            let mut is_quiet = false;
            let each = |step: JournalStep| {
                is_quiet |= matches!(step.what, Ok(JournalFact::Quiet { turn: of, .. }) if of == turn);
            };
            read_journal(&*self.store, &id, each).await.unwrap();
            is_quiet
        };
        wait::asked(format_args!("{turn} of {session} is quiet"), look).await;
    }

    /// Waits until more stops were asked than these.
    pub(super) async fn stopped_again(&self, session: &str, before: usize) {
        let look = || async { self.stops(session).await > before };
        wait::asked(format_args!("another stop of {session}"), look).await;
    }

    /// How many stops were asked.
    pub(super) async fn stops(&self, session: &str) -> usize {
        self.store.stops(&SessionId::from(session), 0).await.unwrap().len()
    }

    /// How many items wait.
    pub(super) async fn waiting(&self, session: &str) -> usize {
        let rows = self.store.inbox(&SessionId::from(session)).await.unwrap();
        rows.iter().filter(|row| row.state == ItemState::Waiting).count()
    }

    /// Drains; everything has ended after it.
    pub(super) async fn end(mut self) {
        drop(self.stop.take());
        let left = self.served.take().unwrap().in_time("the end of the server").await.unwrap();
        assert_eq!(left, 0, "a connection outlived the server");
        drop(self.host);
    }
}

/// A session of the server there, with the token of this file, by its id.
pub(super) async fn begun(server: &str, token: &str, body: &Value) -> String {
    let url = format!("{server}/v1/sessions").parse().unwrap();
    let asked =
        safepoint_http::shared().unwrap().post(&url).header(http::header::AUTHORIZATION, bearer(token));
    let asked = asked.header(http::header::CONTENT_TYPE, "application/json".parse().unwrap());
    let made = asked.body(body.to_string()).send().in_time("a session").await.unwrap();
    assert_eq!(made.status(), 201);
    let made: Value = serde_json::from_slice(&made.bytes().await.unwrap()).unwrap();
    made["id"].as_str().unwrap().to_owned()
}

fn bearer(file: &str) -> http::HeaderValue {
    let token = std::fs::read_to_string(file).unwrap();
    format!("Bearer {}", token.trim()).parse().unwrap()
}

/// What a command says, once it has ended.
pub(super) async fn said(mut command: Command) -> Said {
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    let Output { status, stdout, stderr } = ended.in_time("the end of the command").await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
}

impl Said {
    /// The lines of `--json`, each as it is published.
    pub(super) fn lines(&self) -> Vec<Value> {
        let lines: Vec<Value> = self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/reply.json")).unwrap();
        let schema = Schema::new(&schema).unwrap();
        for (seq, line) in lines.iter().enumerate() {
            assert_eq!(schema.check(line), Ok(()), "{line}");
            assert_eq!(line["seq"], seq as u64, "{line}");
        }
        lines
    }

    /// The only or the last of them.
    pub(super) fn last(&self) -> Value {
        self.lines().pop().unwrap_or_else(|| panic!("no line: {self:?}"))
    }
}

/// An agent that says these things.
pub(super) fn says(replies: impl IntoIterator<Item = Reply>) -> AgentBuilder {
    of(ScriptedModel::new(Script::of(replies)))
}

fn of(model: impl Model) -> AgentBuilder {
    Agent::builder(model).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
}

/// An agent whose model is on a real socket.
pub(super) async fn modelled(replies: impl IntoIterator<Item = Reply>) -> (ModelServer, Agent) {
    let server = ModelServer::start(Script::of(replies)).await.unwrap();
    let agent = of(openai::model("m").base_url(server.url())).build();
    (server, agent)
}
