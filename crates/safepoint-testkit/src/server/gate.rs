//! An exchange that a test drives step by step: no sleeps, no luck.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::{
    Shared,
    exchange::Exchange,
    render::{self, WireStep},
    route,
    steps::Steps,
};
use crate::{http::response, script::Reply};

/// Drives the answer to one request. Dropping it closes the connection.
#[derive(Debug)]
pub struct Gate {
    steps: mpsc::UnboundedSender<WireStep>,
    arrived: Option<oneshot::Receiver<usize>>,
    exchange: Option<Exchange>,
    chunks: std::collections::VecDeque<Vec<u8>>,
    shared: Arc<Shared>,
}

pub(super) fn pair(shared: Arc<Shared>) -> (Gate, Steps) {
    let (sender, steps) = mpsc::unbounded_channel();
    let (arrives, arrived) = oneshot::channel();
    let gate =
        Gate { steps: sender, arrived: Some(arrived), exchange: None, chunks: Default::default(), shared };
    (gate, Steps { steps, arrived: Some(arrives) })
}

impl Gate {
    /// Waits for the request.
    ///
    /// # Panics
    /// If the server was dropped first, or records nothing.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn request(&mut self) -> Exchange {
        if let Some(arrived) = self.arrived.as_mut() {
            let id = arrived.await.expect("the server lives as long as its test");
            self.arrived = None;
            self.exchange = self.shared.exchange(id);
        }
        self.exchange.clone().expect("a gated server records")
    }

    /// Sends the headers of a stream of events.
    pub fn headers(&self) -> &Self {
        self.step(render::stream_head());
        self
    }

    /// Cuts a reply into the chunks of its wire, to be sent by [`Gate::send_next`].
    ///
    /// # Panics
    /// Before the request has arrived.
    pub fn script(&mut self, reply: &Reply) -> usize {
        let exchange = self.exchange.as_ref().expect("the request has arrived");
        let how = exchange.rendering();
        self.chunks = render::chunks(&how, reply).into();
        if how.is_kept() {
            let by = route::authorization(&exchange.headers);
            self.shared.keep(self.chunks.iter().cloned().collect(), exchange.fate.clone(), by);
        }
        self.chunks.len()
    }

    /// Answers with this reply at once, faults included, and streamed or whole as the request wants it.
    ///
    /// # Panics
    /// Before the request has arrived.
    pub fn reply(&mut self, reply: &Reply) {
        let exchange = self.exchange.as_ref().expect("the request has arrived");
        let how = exchange.rendering();
        render::reply(&how, reply).into_iter().for_each(|step| self.step(step));
    }

    /// Sends the next chunk of the scripted reply; false when there is none left.
    pub fn send_next(&mut self) -> bool {
        let Some(chunk) = self.chunks.pop_front() else { return false };
        self.send(&chunk);
        true
    }

    /// Sends the next chunk of the scripted reply; true when it held these bytes, or when there is none left.
    pub fn send_next_until(&mut self, bytes: &[u8]) -> bool {
        let holds = |chunk: &Vec<u8>| chunk.windows(bytes.len().max(1)).any(|window| window == bytes);
        let held = self.chunks.front().is_none_or(holds);
        self.send_next();
        held
    }

    /// Sends these bytes as one chunk of the body.
    pub fn send(&self, bytes: &[u8]) -> &Self {
        self.step(WireStep::Write(response::chunk(bytes)));
        self
    }

    /// Sends what is left of the scripted reply, and ends the body.
    pub fn finish(&mut self) {
        while self.send_next() {}
        self.step(WireStep::Finish(response::LAST_CHUNK.to_vec()));
    }

    /// Answers with a status and the provider's error body for it, instead of a stream.
    ///
    /// # Panics
    /// Before the request has arrived.
    pub fn status(&self, status: u16) {
        let wire = self.exchange.as_ref().expect("the request has arrived").wire;
        self.step(render::whole(status, &render::of_status(wire, status)));
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.step(WireStep::Close);
    }

    /// Resets the connection.
    pub fn reset(&self) {
        self.step(WireStep::Reset);
    }

    fn step(&self, step: WireStep) {
        if self.steps.send(step).is_err() {
            // The peer closed first; its fate says so.
        }
    }
}
