//! The host that is measured: one agent that says the time fifty times a second, and one whose model is behind a socket.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, Model,
    model::{Delta, Finish},
};
use safepoint_models::openai;
use safepoint_server::{Access, AccessScope, Host, HostBuilder, HostServer, Principal};
use safepoint_stores::SqliteStore;
use safepoint_testkit::{
    script::{Reply, Script},
    server::{Exchange, ModelServer},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    runtime::Builder,
    sync::oneshot,
    task::{JoinHandle, spawn_blocking},
    time::{MissedTickBehavior, interval, sleep},
};

use super::stamp;
use crate::{durable, models::model};

/// The agent that streams, the one that waits for its model, and the one that answers at once.
pub(crate) const PACED: &str = "paced";
pub(crate) const SOCKET: &str = "socket";
pub(crate) const QUICK: &str = "quick";

/// Between two deltas.
pub(super) const PACE: Duration = Duration::from_millis(20);
/// Turns at once.
const RUNNING: usize = 1_000;
const GRACE: Duration = Duration::from_millis(200);
/// How many tokens there are: each has 50 requests a second.
const TOKENS: usize = 64;

/// What the model behind a socket says, and between two words of it: longer than it is listened to.
const WORDS: usize = 10_000;
const DRIP: Duration = Duration::from_millis(50);

/// A model that talks without an end.
pub(crate) fn talks() -> Script {
    Script { repeat: true, ..Script::of([Reply::text("word ".repeat(WORDS)).paced(5, DRIP)]) }
}

fn paced() -> impl Model {
    model(|_| {
        let mut ticks = interval(PACE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deltas = stream::unfold(ticks, async |mut ticks| {
            ticks.tick().await;
            Some((Ok(Delta::Text(format!("{} ", stamp()))), ticks))
        });
        stream::iter([Ok(Delta::Sent), Ok(Delta::Opened)]).chain(deltas).boxed()
    })
}

fn quick() -> impl Model {
    model(|_| {
        let reply = [Delta::Sent, Delta::Opened, Delta::Text("done".into()), Delta::Ended(Finish::Natural)];
        stream::iter(reply.map(Ok)).boxed()
    })
}

/// Waits until the model has begun to answer.
pub(crate) async fn begins(exchange: &Exchange) {
    while exchange.fate_now().first_byte.is_none() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// A server on a real socket. It has its threads, and what asks it and the model that it calls have others, as if those were
/// elsewhere: they wait for none of its tasks.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    client: reqwest::Client,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<anyhow::Result<()>>,
    _folder: TempDir,
}

impl Served {
    pub(crate) async fn start(at: &ModelServer) -> anyhow::Result<Self> {
        let socket = openai::model("m").base_url(at.url()).api_key("key".into());
        Self::of(socket, Duration::from_secs(600)).await
    }

    /// A host whose sessions are closed after this time at rest.
    pub(crate) async fn of(socket: impl Model, unload: Duration) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir_in(durable::IN_MEMORY).or_else(|_none| tempfile::tempdir())?;
        let store = Arc::new(SqliteStore::open(folder.path().join("served.db"))?);
        let host = Host::builder(store)
            .agent(PACED, Agent::builder(paced()).build())
            .agent(SOCKET, Agent::builder(socket).build())
            .agent(QUICK, Agent::builder(quick()).build())
            .running(RUNNING)
            .unload(unload);
        let ((bound, address), (stop, stopped)) = (oneshot::channel(), oneshot::channel());
        let thread = spawn_blocking(move || serve(host, bound, stopped));
        let Ok(address) = address.await else {
            thread.await??;
            anyhow::bail!("the server has ended");
        };
        Ok(Self { address, client: reqwest::Client::new(), stop, thread, _folder: folder })
    }

    /// Posts with one of the tokens, and gives the answer.
    pub(crate) async fn post(&self, path: &str, body: &Value, at: usize) -> anyhow::Result<Value> {
        let url = format!("http://{}{path}", self.address);
        let request = self.client.post(url).bearer_auth(format!("t{}", at % TOKENS)).json(body);
        let response = request.send().await?;
        let status = response.status();
        let answer = response.text().await?;
        anyhow::ensure!(status.is_success(), "{path}: {status}: {answer}");
        Ok(serde_json::from_str(&answer)?)
    }

    /// A session of this agent with its first item.
    pub(crate) async fn session(&self, agent: &str, at: usize) -> anyhow::Result<String> {
        let body = json!({"agent": agent, "item": {"text": "go"}});
        let made = self.post("/v1/sessions", &body, at).await?;
        Ok(made["id"].as_str().context("a session has an id")?.to_owned())
    }

    /// This many of them.
    pub(crate) async fn many(&self, agent: &str, count: usize) -> anyhow::Result<Vec<String>> {
        let mut all = Vec::with_capacity(count);
        for at in 0..count {
            all.push(self.session(agent, at).await?);
        }
        Ok(all)
    }

    /// How many sessions the server has open.
    pub(crate) async fn open_now(&self) -> anyhow::Result<usize> {
        let url = format!("http://{}/metrics", self.address);
        let metrics = self.client.get(url).bearer_auth("metrics").send().await?.text().await?;
        let line = metrics.lines().find_map(|line| line.strip_prefix("safepoint_sessions_open "));
        Ok(line.context("the server says how many sessions are open")?.trim().parse()?)
    }

    pub(crate) async fn end(self) -> anyhow::Result<()> {
        drop(self.stop);
        self.thread.await?
    }
}

/// Serves in this thread and in as many as there are processors, until the end is said.
fn serve(
    host: HostBuilder,
    bound: oneshot::Sender<SocketAddr>,
    end: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let host = host.start().await?;
        // The token is the name: it is not the login that is measured.
        let access = Access::by(|parts| {
            let value = parts.headers.get("authorization")?.to_str().ok()?;
            Some(Principal::new(value.strip_prefix("Bearer ")?, AccessScope::ALL).seeing_all())
        });
        let server = HostServer::bind(([127, 0, 0, 1], 0).into(), &host, access).await?;
        if bound.send(server.address()).is_err() {
            // What asked for it has gone: it ends with that.
        }
        let ending = server.serve_until(async { drop(end.await) }).await;
        host.drain(GRACE).await;
        ending.finish().await;
        Ok(())
    })
}
