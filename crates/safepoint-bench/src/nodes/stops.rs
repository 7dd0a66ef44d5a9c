//! Stops that are asked through another handle of the store than the one of the node that has the session.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{
    StreamExt as _, TryStreamExt as _,
    future::pending,
    stream::{self, FuturesUnordered},
};
use safepoint::{
    Agent, Model, Session, StopRequest,
    model::Delta,
    raw::{
        StoredStop,
        store::{Among, ApprovalsToWithdraw, StopIntent},
    },
    session::{ChatPlanner, Node, Ticket},
    store::{NewNode, OwnerProcess, Store},
};
use tokio::sync::mpsc;

use super::{appends::made_up, opened};
use crate::{figures::percentile, models::model, table::Table, timing::micros};

/// The default lease of a server over a database.
const TTL: Duration = Duration::from_secs(4);

pub(super) async fn measure(table: &mut Table, address: &str) -> anyhow::Result<()> {
    from_elsewhere(table, address).await?;
    all_at_once(table, address).await
}

/// What the models of a node say: that they were asked, and that they were dropped.
struct ModelWords {
    asked: mpsc::UnboundedReceiver<()>,
    dropped: mpsc::UnboundedReceiver<Instant>,
}

struct Dropped(mpsc::UnboundedSender<Instant>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if self.0.send(Instant::now()).is_err() {
            // The measurement is over.
        }
    }
}

/// A model that says nothing, until it is dropped.
fn silent() -> (impl Model, ModelWords) {
    let ((asks, asked), (drops, dropped)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let silent = model(move |_| {
        let guard = Dropped(drops.clone());
        if asks.send(()).is_err() {
            // The measurement is over.
        }
        let silence = stream::once(async move {
            let _dropped_with_this = guard;
            pending().await
        });
        stream::iter([Ok(Delta::Sent)]).chain(silence).boxed()
    });
    (silent, ModelWords { asked, dropped })
}

struct Crowd {
    node: Node,
    sessions: Vec<(Session<String>, Ticket<String>)>,
    said: ModelWords,
}

impl Crowd {
    /// A node with these many sessions, each in a turn whose model says nothing.
    async fn gather(address: &str, most: usize) -> anyhow::Result<Self> {
        const AT_ONCE: usize = 32;
        let store: Arc<dyn Store> = Arc::new(opened(address).await?);
        let new = NewNode { name: made_up("node"), ..NewNode::of(OwnerProcess::here(), TTL) };
        let node = Node::join(store, NewNode { room: 100_000, ..new }).await?;
        let (model, said) = silent();
        let agent = Agent::builder(model).build();
        let open = async |_| {
            let builder = Session::builder(ChatPlanner::new(agent.clone()));
            let session = builder.open_on(&node, made_up("crowd").into()).await?;
            let pushed = session.push("go".to_owned());
            let ticket = pushed.map_err(|error| anyhow::anyhow!("{error:?}"))?;
            Ok::<_, anyhow::Error>((session, ticket))
        };
        let sessions = stream::iter(0..most).map(open).buffer_unordered(AT_ONCE).try_collect().await?;
        let mut crowd = Self { node, sessions, said };
        for _ in 0..most {
            anyhow::ensure!(crowd.said.asked.recv().await.is_some(), "a model is gone");
        }
        Ok(crowd)
    }

    async fn disperse(self) {
        drop(self.sessions);
        self.node.drain(Duration::ZERO).await;
    }
}

fn stop() -> StopIntent {
    let bytes = StoredStop::Turn(None, StopRequest::now()).to_bytes();
    StopIntent { bytes, approvals: ApprovalsToWithdraw::Stay }
}

async fn from_elsewhere(table: &mut Table, address: &str) -> anyhow::Result<()> {
    const STOPS: usize = 200;
    const CROWD: usize = 1000;
    let other = opened(address).await?;
    for (crowd, what, most) in [(STOPS, "", 10.0), (CROWD + STOPS, ", with 1,000 sessions running", 50.0)] {
        let mut crowd = Crowd::gather(address, crowd).await?;
        let mut after = Vec::new();
        for at in 0..STOPS {
            let id = crowd.sessions[at].0.id().clone();
            let began = Instant::now();
            other.ask_stop(&id, stop()).await?;
            let dropped = crowd.said.dropped.recv().await;
            let dropped = dropped.ok_or_else(|| anyhow::anyhow!("a model is gone"))?;
            after.push(micros(dropped.saturating_duration_since(began)) / 1e3);
        }
        let name = format!("nodes: a stop asked elsewhere → the model's stream is dropped{what}, p95");
        table.alone(&name, "ms", percentile(after, 95), most);
        crowd.disperse().await;
    }
    Ok(())
}

async fn all_at_once(table: &mut Table, address: &str) -> anyhow::Result<()> {
    const NODES: usize = 4;
    const EACH: usize = 2500;
    let mut crowds = Vec::new();
    for _ in 0..NODES {
        crowds.push(Crowd::gather(address, EACH).await?);
    }
    let other = opened(address).await?;
    let began = Instant::now();
    let asked = other.ask_stops(Among::Held, stop()).await?;
    anyhow::ensure!(asked >= (NODES * EACH) as u64, "{asked} sessions were asked");
    let settled: FuturesUnordered<_> =
        crowds.iter().flat_map(|crowd| &crowd.sessions).map(|(_, ticket)| ticket.outcome()).collect();
    let settled = settled.count().await;
    let after = began.elapsed().as_secs_f64();
    let what =
        format!("nodes: {settled} sessions on {NODES} nodes stopped by one request → the last has settled");
    table.alone(&what, "s", after, 5.0);
    for crowd in crowds {
        crowd.disperse().await;
    }
    Ok(())
}
