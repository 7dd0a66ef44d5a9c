//! A remote agent by script, whose own account says whether it works: honest or not about what a stop does to
//! it.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use safepoint::{Agent, StopRequest, receipt::{CallStatus, RemoteStopState}};
//! use safepoint_testkit::peer::{OnPeerStop, Peer};
//!
//! let peer = Peer::new("coder").says("I am at it.").waits().answers("done").on_stop(OnPeerStop::OnlySays);
//! let handle = Agent::remote(peer.clone()).build().run("fix it").detach();
//! peer.gate().came(1).await; // it works
//! handle.stop(StopRequest::now());
//!
//! let outcome = handle.done().await;
//! let row = outcome.receipt().calls[0].remote.as_ref().unwrap();
//! assert_eq!(row.stop, Some(RemoteStopState::Confirmed)); // so it says
//! assert_eq!(peer.in_flight(), 1); // and it works on: it was declared to stop hard, and does not
//! peer.gate().open_for_all();
//! # });
//! ```

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use safepoint::{
    ToolContext,
    approval::Decision,
    raw::remote::{Remote, RemoteCall, RemoteSpec, RemoteTask},
    receipt::StopSupport,
};
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    backend_suite::{Account, Probe},
    sync::{lock, until},
    tool_gate::ToolGate,
};

mod line;
mod work;

/// What a peer does when it is asked to stop. Exhaustive: each says and does something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnPeerStop {
    /// It ends the work, and says so.
    #[default]
    Ends,
    /// It takes note, ends the work, and says so by and by.
    EndsLater,
    /// It takes note, and works on.
    TakesNote,
    /// It says that the work was canceled, and works on.
    OnlySays,
    /// It cannot: that is not implemented. It works on.
    CannotStop,
    /// It refuses unless it is configured otherwise. It works on.
    Refuses,
    /// It says nothing at all, and works on.
    Silent,
    /// It is unreachable for a stop request. It works on.
    Unreachable,
}

/// One step of its work.
#[derive(Clone, Debug)]
enum PeerStep {
    Says(String),
    Asks { id: String, tool: String, args: Value },
    Waits,
    Answers(String),
    Breaks(String),
}

/// A peer. Clones are the same peer.
#[derive(Clone, Debug)]
pub struct Peer {
    spec: RemoteSpec,
    steps: Vec<PeerStep>,
    on_stop: OnPeerStop,
    world: Arc<World>,
}

/// What is so at the peer's end, whatever it says.
#[derive(Debug, Default)]
struct World {
    gate: ToolGate,
    /// Each change is one step: who sees it sees what was done before it.
    counts: watch::Sender<Counts>,
    /// Held for one entry or one copy; no other lock is taken under it.
    received: Mutex<Received>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    begun: usize,
    working: usize,
    finished: usize,
    stops: usize,
}

#[derive(Debug, Default)]
struct Received {
    briefs: Vec<RemoteTask>,
    answers: Vec<(String, Given)>,
}

/// What a question of the peer was answered with. Exhaustive: by a person, or by the peer's own word for a
/// stop.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// A person's decision.
    Decision(Decision),
    /// It was cancelled by a stop.
    Cancelled,
}

impl Peer {
    /// A peer of this name, which works by the steps that follow.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let spec = RemoteSpec::new(name, "Follows its script", format!("script:{name}"));
        Self { spec, steps: Vec::new(), on_stop: OnPeerStop::default(), world: Arc::default() }
    }

    /// Says a piece of its answer.
    #[must_use]
    pub fn says(self, text: &str) -> Self {
        self.then(PeerStep::Says(text.into()))
    }

    /// Asks whether it may do something, and waits for the answer.
    #[must_use]
    pub fn asks(self, id: &str, tool: &str, args: Value) -> Self {
        self.then(PeerStep::Asks { id: id.into(), tool: tool.into(), args })
    }

    /// Works until its [gate](Peer::gate) lets it pass.
    #[must_use]
    pub fn waits(self) -> Self {
        self.then(PeerStep::Waits)
    }

    /// Ends with this answer.
    #[must_use]
    pub fn answers(self, text: &str) -> Self {
        self.then(PeerStep::Answers(text.into()))
    }

    /// Loses the line to us, and works on until its gate lets it pass.
    #[must_use]
    pub fn breaks(self, why: &str) -> Self {
        self.then(PeerStep::Breaks(why.into()))
    }

    /// Sets what a stop does to it, which need not be what it is declared to do.
    #[must_use]
    pub fn on_stop(mut self, on_stop: OnPeerStop) -> Self {
        self.on_stop = on_stop;
        self
    }

    /// Sets what a stop is declared to do to it.
    #[must_use]
    pub fn declared(self, grade: StopSupport) -> Self {
        self.with(|spec| spec.grade(grade))
    }

    /// Changes its declaration.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(RemoteSpec) -> RemoteSpec) -> Self {
        self.spec = change(self.spec);
        self
    }

    fn then(mut self, step: PeerStep) -> Self {
        self.steps.push(step);
        self
    }

    /// Where its work waits.
    #[must_use]
    pub fn gate(&self) -> &ToolGate {
        &self.world.gate
    }

    /// How much of its work runs now: its own account, whatever it reported to us.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.world.counts.borrow().working
    }

    /// How much of its work has begun.
    #[must_use]
    pub fn begun(&self) -> usize {
        self.world.counts.borrow().begun
    }

    /// How much of its work came to its own end.
    #[must_use]
    pub fn finished(&self) -> usize {
        self.world.counts.borrow().finished
    }

    /// How often it was asked to stop.
    #[must_use]
    pub fn stops(&self) -> usize {
        self.world.counts.borrow().stops
    }

    /// What it received, work by work.
    #[must_use]
    pub fn briefs(&self) -> Vec<RemoteTask> {
        lock(&self.world.received).briefs.clone()
    }

    /// What its questions were answered with, by their ids, in order.
    #[must_use]
    pub fn answered(&self) -> Vec<(String, Given)> {
        lock(&self.world.received).answers.clone()
    }

    /// Waits until none of its work runs.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn idle(&self) {
        until(&self.world.counts, |counts| counts.working == 0).await;
    }
}

impl Probe for Peer {
    fn look(&self) -> BoxFuture<'_, Account> {
        let account = Account { begun: self.begun(), in_flight: self.in_flight(), stops: self.stops() };
        Box::pin(std::future::ready(account))
    }

    fn finish(&self) {
        self.world.gate.open_for_all();
    }
}

impl Remote for Peer {
    fn spec(&self) -> &RemoteSpec {
        &self.spec
    }

    fn open(&self, brief: RemoteTask, _: &ToolContext) -> Box<dyn RemoteCall> {
        Box::new(line::PeerCall::new(self.clone(), brief))
    }
}
