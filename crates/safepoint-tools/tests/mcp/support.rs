//! Servers to be tested against, a run whose model asks for one call of theirs, and what became of it.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use safepoint::{
    Agent, Outcome, RunHandle, StopRequest,
    event::{EventKind, Events, Fact},
    history::Message,
    raw::OpenEnd,
    receipt::{CallReport, CallStatus},
};
use safepoint_testkit::{
    invariants::Invariants,
    mcp::{self, ASKED, HttpServer, McpManners, McpSeen},
    script::{Reply, Script},
    scripted::ScriptedModel,
    wait,
};
use safepoint_tools::{
    mcp::{Client, Server},
    process::Processes,
};
use serde_json::{Value, json};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// This very program, started again, is the server: it holds no test then.
#[test]
fn this_program_is_a_server_when_it_is_asked_to_be() {
    mcp::serve_if_asked();
    assert!(std::env::var(ASKED).is_err(), "a server never returns");
}

/// A place for a server's log.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// A server that writes its log here.
    pub(crate) fn server(&self, manners: McpManners) -> Server {
        stdio(&McpManners { log: Some(self.log()), ..manners })
    }

    /// How many messages of this method it received.
    pub(crate) fn received(&self, method: &str) -> usize {
        mcp::read_log(&self.log()).iter().filter(|(_, got)| got["method"] == method).count()
    }
}

pub(crate) fn guarded() -> Processes {
    let mark = format!("mcp-{}", uuid::Uuid::new_v4().simple());
    Processes::guarded_by(mark, env!("CARGO_BIN_EXE_safepoint-guard"))
}

/// A server over pipes, under a separate guard.
pub(crate) fn stdio(manners: &McpManners) -> Server {
    Server::stdio("test", std::env::current_exe().unwrap())
        .args(["--exact", "mcp::support::this_program_is_a_server_when_it_is_asked_to_be", "--nocapture"])
        .env(ASKED, manners.to_json())
        .under(&guarded())
}

/// What a call came to.
pub(crate) struct Reported {
    pub(crate) text: String,
    pub(crate) report: CallReport,
}

impl Reported {
    pub(crate) fn good(self) -> String {
        assert_eq!(self.report.status, CallStatus::Completed, "{}", self.text);
        self.text
    }

    pub(crate) fn failed(self) -> String {
        assert_eq!(self.report.status, CallStatus::Failed, "{}", self.text);
        self.text
    }
}

/// An agent whose model asks for one call, and then says `done`.
pub(crate) async fn agent(client: &Client, tool: &str, args: Value) -> Agent {
    let model = ScriptedModel::new(Script::of([Reply::call(tool, args), Reply::text("done")]));
    Agent::builder(model).tools(client.tools().await.unwrap()).build()
}

/// Runs one call to its end.
pub(crate) async fn call(client: &Client, tool: &str, args: Value) -> Reported {
    let handle = agent(client, &format!("test__{tool}"), args).await.run("do it").detach();
    let closed = tokio::time::timeout(PATIENCE, Invariants::of(&handle).check()).await.unwrap().unwrap();
    reported(&closed.outcome)
}

/// A run of one call, under way.
pub(crate) struct Running {
    pub(crate) handle: RunHandle,
    pub(crate) events: Events,
}

pub(crate) async fn start(client: &Client, tool: &str, args: Value) -> Running {
    Running::of(agent(client, &format!("test__{tool}"), args).await.run("do it").detach())
}

impl Running {
    pub(crate) fn of(handle: RunHandle) -> Self {
        let events = handle.events();
        Self { handle, events }
    }

    /// Stops it now, and says how long it took to settle.
    pub(crate) async fn stop(&self) -> (Reported, Duration) {
        let asked = Instant::now();
        let _asked = self.handle.stop(StopRequest::now());
        let outcome = tokio::time::timeout(PATIENCE, self.handle.done()).await.expect("it settles");
        let took = asked.elapsed();
        assert!(matches!(&outcome, Outcome::Stopped(_)), "{outcome:?}");
        let closed =
            tokio::time::timeout(PATIENCE, Invariants::of(&self.handle).check()).await.unwrap().unwrap();
        (reported(&closed.outcome), took)
    }

    /// Waits until the call was announced.
    pub(crate) async fn called(&mut self) {
        while let Some(event) = self.events.next().await {
            if let EventKind::Fact(fact) = &event.kind
                && matches!(**fact, Fact::CallStarted { .. })
            {
                return;
            }
        }
    }

    pub(crate) async fn progress(&mut self, wanted: usize) -> Vec<String> {
        let mut seen = Vec::new();
        while seen.len() < wanted {
            let event = tokio::time::timeout(PATIENCE, self.events.next()).await.unwrap();
            let Some(event) = event else { break };
            if let EventKind::Progress { text, .. } = event.kind {
                seen.push(text);
            }
        }
        seen
    }
}

pub(crate) fn reported(outcome: &Outcome) -> Reported {
    let history = outcome.history();
    let mut results: Vec<_> = history
        .entries()
        .iter()
        .filter_map(|entry| match &**entry {
            Message::Results { results } => Some(results.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    if let OpenEnd::Open { calls, .. } = history.tail() {
        results.extend(calls.iter().map(|call| call.result.clone()));
    }
    let text = results.first().map(|result| result.text.clone()).expect("there was a call");
    Reported {
        text: String::clone(&text),
        report: outcome.receipt().calls.first().cloned().expect("there was a call"),
    }
}

/// Polls a condition of the real world.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    wait::so(what, &mut holds).await;
    began.elapsed()
}

/// Waits until a server on the network got a message of this method.
pub(crate) async fn got(server: &HttpServer, method: &str) {
    let is_it = |seen: &McpSeen| matches!(seen, McpSeen::Got(message) if message["method"] == method);
    until(method, || server.seen().iter().any(|(_, seen)| is_it(seen))).await;
}

pub(crate) fn no_args() -> Value {
    json!({})
}
