//! A world for one scenario: a store, a host with one agent, a server on a real socket, and tokens.

use std::{sync::Arc, time::Duration};

use safepoint::{
    Agent, AgentBuilder, Model,
    approval::{ApprovalMode, WithoutApprover},
    store::{MemoryStore, Store},
};
use safepoint_models::openai;
use safepoint_server::{
    Access, AccessScope, Host, HostBuilder, HostServer, NewToken, Principal, Surface, TokenFile, Webhook,
};
use safepoint_testkit::{
    script::{Reply, Script},
    scripted::ScriptedModel,
    server::ModelServer,
    wait::{self, InTime as _},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::client::Client;

/// How long what stops may take in a drain.
pub(crate) const GRACE: Duration = Duration::from_millis(200);

pub(crate) struct World {
    pub(crate) host: Host,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tokens: TokenFile,
    /// With every scope, and all sessions.
    pub(crate) client: Client,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<usize>>,
    folder: Arc<TempDir>,
}

impl World {
    /// A server with this agent, over a store in memory.
    pub(crate) async fn of(agent: Agent) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::over(agent, Arc::new(MemoryStore::default()), folder).await
    }

    /// The same, with this access.
    pub(crate) async fn with(agent: Agent, access: impl FnOnce(Access) -> Access) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let host = builder(&store, agent).start().await.unwrap();
        Self::at(host, store, folder, access).await
    }

    /// The same, with this webhook.
    pub(crate) async fn hooked(agent: Agent, hook: Webhook) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let builder = builder(&store, agent).webhook(hook);
        Self::at(builder.start().await.unwrap(), store, folder, |access| access).await
    }

    /// The same over this store, with the tokens of this folder.
    pub(crate) async fn over(agent: Agent, store: Arc<dyn Store>, folder: Arc<TempDir>) -> Self {
        let host = builder(&store, agent).start().await.unwrap();
        Self::at(host, store, folder, |access| access).await
    }

    /// The same, and the agent is offered by these protocols alone.
    pub(crate) async fn offered(
        agent: Agent,
        store: Arc<dyn Store>,
        folder: Arc<TempDir>,
        surfaces: &[Surface],
    ) -> Self {
        let host = Host::builder(Arc::clone(&store)).agent("helper", agent);
        let host = host.surfaces("helper", surfaces.iter().copied()).start().await.unwrap();
        Self::at(host, store, folder, |access| access).await
    }

    /// A server of this host over its store.
    pub(crate) async fn of_host(host: Host, store: Arc<dyn Store>) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::at(host, store, folder, |access| access).await
    }

    pub(crate) async fn at(
        host: Host,
        store: Arc<dyn Store>,
        folder: Arc<TempDir>,
        access: impl FnOnce(Access) -> Access,
    ) -> Self {
        let path = folder.path().join("tokens.toml");
        let tokens = TokenFile::new(&path);
        let principal = Principal::new("ci", AccessScope::ALL).seeing_all();
        let token = tokens.add(NewToken { principal, expires: None }).unwrap();
        let access = access(Access::tokens(path));
        let server = HostServer::bind("127.0.0.1:0".parse().unwrap(), &host, access).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let ends = host.clone();
        let served = tokio::spawn(async move {
            let ending = server.serve_until(async { drop(stopped.await) }).await;
            ends.drain(GRACE).await;
            ending.finish().await
        });
        let client = Client { address, token };
        Self { host, store, tokens, client, stop: Some(stop), served: Some(served), folder }
    }

    /// A client with a token of this principal.
    pub(crate) fn client_of(&self, principal: Principal) -> Client {
        let token = self.tokens.add(NewToken { principal, expires: None }).unwrap();
        Client { token, ..self.client.clone() }
    }

    /// Drains; everything has ended after it.
    pub(crate) async fn end(mut self) -> (Arc<dyn Store>, Arc<TempDir>) {
        drop(self.stop.take());
        let left = self.served.take().unwrap().in_time("the end of the server").await.unwrap();
        assert_eq!(left, 0, "a connection outlived the server");
        (Arc::clone(&self.store), Arc::clone(&self.folder))
    }

    /// Tells the server to drain, and does not wait for it.
    pub(crate) fn begin_end(&mut self) {
        drop(self.stop.take());
    }

    /// A session with its first item, by its id.
    pub(crate) async fn session(&self, text: &str) -> String {
        let made =
            self.client.post("/v1/sessions", &json!({"agent": "helper", "item": {"text": text}})).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.body["id"].as_str().unwrap().to_owned()
    }

    /// A session without an item, by its id.
    pub(crate) async fn empty(&self) -> String {
        let made = self.client.post("/v1/sessions", &json!({})).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.body["id"].as_str().unwrap().to_owned()
    }

    /// Waits until this many streams are read.
    pub(crate) async fn read_by(&self, readers: usize) {
        let row = format!("safepoint_readers {readers}\n");
        wait::asked("this many streams are read", async || {
            self.client.get("/metrics").await.body.as_str().is_some_and(|text| text.contains(&row))
        })
        .await;
    }

    /// Waits until the item is at rest.
    pub(crate) async fn rest(&self, session: &str, item: u64) -> Value {
        let path = format!("/v1/sessions/{session}/items/item-{item}?wait=rest");
        let reply = self.client.get(&path).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.body
    }
}

/// With this agent, by Responses too.
fn builder(store: &Arc<dyn Store>, agent: Agent) -> HostBuilder {
    Host::builder(Arc::clone(store)).agent("helper", agent).surfaces("helper", [Surface::Responses])
}

/// An agent that says these things.
pub(crate) fn says(replies: impl IntoIterator<Item = Reply>) -> AgentBuilder {
    of(ScriptedModel::new(Script::of(replies)))
}

pub(crate) fn of(model: impl Model) -> AgentBuilder {
    Agent::builder(model).approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
}

/// An agent whose model is on a real socket.
pub(crate) async fn served(replies: impl IntoIterator<Item = Reply>) -> (ModelServer, Agent) {
    let server = ModelServer::start(Script::of(replies)).await.unwrap();
    let agent = of(openai::model("m").base_url(server.url())).build();
    (server, agent)
}
