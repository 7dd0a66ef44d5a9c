//! The loops that Safepoint is compared with, as a good engineer writes them by hand for one wire and these two tools: typed,
//! the history encoded once and only appended to, tools run in the agent's own future. A stop drops that future.
//!
//! One is over `hyper`: a connection for each agent, driven by the agent's future, so that a drop closes the socket there and
//! then. The other is over a shared `reqwest` client.

use std::{future::Future, mem};

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

mod history;
mod over_hyper;
mod over_reqwest;
mod reply;

pub(crate) use over_hyper::HyperLoop;
pub(crate) use over_reqwest::ReqwestLoop;

use self::{
    history::EncodedHistory,
    reply::{BareCall, BareReply},
};
use crate::{
    peer::{Peer, Running},
    tools,
};

/// The way of one agent's requests.
trait Transport: Send + 'static {
    /// Sends a request's body, and reads the reply to its end.
    fn exchange(&mut self, body: Bytes) -> impl Future<Output = anyhow::Result<BareReply>> + Send;
}

/// Runs a conversation to its end; the last text.
async fn converse(mut transport: impl Transport, ask: &str) -> anyhow::Result<String> {
    let mut history = EncodedHistory::of(ask)?;
    loop {
        let reply = transport.exchange(history.body()).await?;
        if reply.calls.is_empty() {
            return Ok(reply.text);
        }
        let results = match &reply.calls[..] {
            [one] => vec![call(one).await?],
            all => join_all(all.iter().map(call)).await.into_iter().collect::<anyhow::Result<_>>()?,
        };
        history.push(&reply.calls, &results)?;
    }
}

async fn call(call: &BareCall) -> anyhow::Result<String> {
    match call.name.as_str() {
        tools::ECHO => Ok(tools::echo(serde_json::from_str(&call.arguments)?)),
        tools::NAP => Ok(tools::nap(serde_json::from_str(&call.arguments)?).await),
        other => anyhow::bail!("there is no tool `{other}`"),
    }
}

/// A conversation in a task, which a token ends by a drop.
pub(crate) struct BareRun {
    token: CancellationToken,
    task: JoinHandle<bool>,
}

impl BareRun {
    fn begin(work: impl Future<Output = anyhow::Result<String>> + Send + 'static) -> Self {
        let token = CancellationToken::new();
        let stopped = token.clone();
        let task = tokio::spawn(async move {
            // The token first, so that it wins over a reply that is there too; the loser is dropped, with its connection.
            let ended = tokio::select! {
                biased;
                () = stopped.cancelled_owned() => return false,
                ended = work => ended,
            };
            match ended {
                Ok(text) => !text.is_empty(),
                Err(error) => {
                    eprintln!("a bare loop failed: {error:#}");
                    false
                }
            }
        });
        Self { token, task }
    }
}

impl Running for BareRun {
    fn stop(&self) {
        self.token.cancel();
    }

    async fn ended(self) -> bool {
        self.task.await.unwrap_or(false)
    }
}

impl Peer for HyperLoop {
    type Run = BareRun;

    fn begin(&self, ask: String) -> BareRun {
        let transport = self.agent();
        BareRun::begin(async move { converse(transport, &ask).await })
    }
}

impl Peer for ReqwestLoop {
    type Run = BareRun;

    fn begin(&self, ask: String) -> BareRun {
        let transport = self.clone();
        BareRun::begin(async move { converse(transport, &ask).await })
    }
}

/// Takes the events out of a stream's pieces, and adds them to the reply. A piece that ends within an event is kept for the
/// next one; all others are read where they arrived.
#[derive(Default)]
struct Events {
    reply: BareReply,
    rest: Vec<u8>,
}

impl Events {
    fn take(&mut self, piece: &[u8]) -> anyhow::Result<()> {
        if self.rest.is_empty() {
            let read = self.reply.read(piece)?;
            self.rest.extend_from_slice(&piece[read..]);
        } else {
            self.rest.extend_from_slice(piece);
            let mut rest = mem::take(&mut self.rest);
            let read = self.reply.read(&rest)?;
            rest.drain(..read);
            self.rest = rest;
        }
        Ok(())
    }
}
