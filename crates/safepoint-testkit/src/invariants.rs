//! What must hold after every scenario, whatever it was about: the invariants I1–I6, in one call.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use safepoint::{Agent, StopRequest};
//! use safepoint_testkit::{invariants::Invariants, script::{Reply, Script}, server::ModelServer, tools::GateTools};
//! use serde_json::json;
//!
//! let server = ModelServer::start(Script::of([Reply::call("pay", json!({}))])).await.unwrap();
//! let tools = GateTools::new();
//! let model = safepoint_models::openai::model("any").base_url(server.url());
//! let agent = Agent::builder(model).approvals(safepoint::approval::ApprovalMode::Auto).tool(tools.gated("pay")).build();
//! let handle = agent.run("pay").detach();
//! tools.gate().came(1).await;
//! handle.stop(StopRequest::now());
//! let closed = Invariants::of(&handle).server(&server).ledger(tools.ledger()).check().await.unwrap();
//! assert!(closed.outcome.answer().is_none());
//! # });
//! ```

use std::{fmt, sync::Arc, time::Duration};

use safepoint::{
    Outcome, Receipt, RunHandle,
    event::Fact,
    log::Log,
    outcome::Persisted,
    receipt::{CallStatus, Ending, QuietReport, SideEffect},
};

use crate::{
    ledger::{Ledger, Mark},
    recorder::{RecordedAttempt, Settled},
    server::ModelServer,
};

mod account;
mod children;
mod world;

/// How long, by the real clock, the server may take to see what is already so.
const PATIENCE: Duration = Duration::from_secs(5);

/// One of the invariants of SPEC §14. Exhaustive: the six of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// One `settled`, the last event, equal to the outcome and to what is stored.
    I1,
    /// Nothing of the attempt after it.
    I2,
    /// Every request's history is valid.
    I3,
    /// The ledger agrees with the receipt.
    I4,
    /// Nothing is left, or it is named.
    I5,
    /// A stop is neither a success nor a failure.
    I6,
}

/// An invariant that does not hold, and how.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{invariant:?} does not hold: {what}")]
pub struct BrokenInvariant {
    /// Which.
    pub invariant: Invariant,
    /// What is so, for people.
    pub what: String,
}

/// Fails with `what` if `holds` is not so.
fn must(invariant: Invariant, holds: bool, what: impl FnOnce() -> String) -> Result<(), BrokenInvariant> {
    if holds { Ok(()) } else { Err(BrokenInvariant { invariant, what: what() }) }
}

/// What a closed scenario came to.
#[derive(Clone, Debug)]
pub struct ClosedScenario {
    /// How the run ended.
    pub outcome: Outcome,
    /// The final account.
    pub receipt: Arc<Receipt>,
    /// What it showed.
    pub recording: RecordedAttempt,
}

/// The end of a scenario: a run, and what else is known of it.
///
/// An example is in the documentation of the crate.
#[derive(Clone)]
#[must_use = "nothing is checked before `check`"]
pub struct Invariants<'w> {
    handle: &'w RunHandle,
    server: Option<&'w ModelServer>,
    first_request: Option<usize>,
    ledger: Option<&'w Ledger>,
    log: Option<&'w dyn Log>,
}

impl fmt::Debug for Invariants<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invariants").field("handle", self.handle).finish_non_exhaustive()
    }
}

impl<'w> Invariants<'w> {
    /// Closes a scenario around one attempt of a run.
    pub fn of(handle: &'w RunHandle) -> Self {
        Self { handle, server: None, first_request: None, ledger: None, log: None }
    }

    /// Adds the model's server: its requests are judged (I3), its exchanges must be over (I5).
    pub fn server(mut self, server: &'w ModelServer) -> Self {
        self.server = Some(server);
        self
    }

    /// Says that the server's requests from this one on, and no others, are the attempt's: they are then
    /// counted (I2).
    pub fn first_request(mut self, id: usize) -> Self {
        self.first_request = Some(id);
        self
    }

    /// Adds the ledger of the attempt's tools.
    pub fn ledger(mut self, ledger: &'w Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Adds the log in which the run is recorded.
    pub fn log(mut self, log: &'w dyn Log) -> Self {
        self.log = Some(log);
        self
    }

    /// Waits until the run is settled and quiet, and checks I1–I6.
    ///
    /// Waits for the server are bounded by the real clock, so that a paused one does not matter.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    pub async fn check(self) -> Result<ClosedScenario, BrokenInvariant> {
        let outcome = self.handle.done().await;
        let entries = self.ledger.map(|ledger| ledger.count(Mark::Entry));
        let facts = self.facts().await?.len();
        let recording = RecordedAttempt::of(self.handle).await;
        let settled = account::one_settled(&recording, &outcome)?;
        children::settled_inside(&settled.receipt, &recording)?;
        self.stored(&outcome, &settled).await?;
        let quiet = self.handle.quiet().await;
        self.nothing_after(entries, facts, &recording).await?;
        world::settled_down(self.handle, &quiet)?;
        children::quiet_inside(&quiet, &recording)?;
        if let Some(server) = self.server {
            world::valid(server, self.first_request.unwrap_or(0))?;
            world::exchanges_over(server, self.first_request.unwrap_or(0)).await?;
        }
        let receipt = Arc::clone(quiet.receipt());
        if let Some(ledger) = self.ledger {
            account::ledger_agrees(ledger, &receipt, &recording)?;
        }
        account::a_stop_is_a_stop(&outcome, &settled, &receipt)?;
        children::a_call_is_what_its_run_is(&receipt)?;
        Ok(ClosedScenario { outcome, receipt, recording })
    }

    async fn facts(&self) -> Result<Vec<Arc<Fact>>, BrokenInvariant> {
        let Some(log) = self.log else { return Ok(Vec::new()) };
        let records = log.read().await.map_err(|error| BrokenInvariant {
            invariant: Invariant::I1,
            what: format!("the log: {error}"),
        })?;
        Ok(records.into_iter().filter(|record| record.path.is_root()).map(|record| record.fact).collect())
    }

    /// I1: the stored outcome is the returned one.
    async fn stored(&self, outcome: &Outcome, settled: &Settled) -> Result<(), BrokenInvariant> {
        if self.log.is_none() || *outcome.persisted() != Persisted::Yes {
            return Ok(());
        }
        let facts = self.facts().await?;
        let stored = facts.iter().rev().find_map(|fact| match &**fact {
            Fact::Settled { receipt, .. } => Some(Arc::clone(receipt)),
            _ => None,
        });
        must(Invariant::I1, stored.as_ref() == Some(&settled.receipt), || {
            format!("stored is {stored:?}, returned was {:?}", settled.receipt)
        })
    }

    /// I2: no entry, no fact and no request after the settling.
    async fn nothing_after(
        &self,
        entries: Option<usize>,
        facts: usize,
        recording: &RecordedAttempt,
    ) -> Result<(), BrokenInvariant> {
        let now = self.ledger.map(|ledger| ledger.count(Mark::Entry));
        must(Invariant::I2, now == entries, || format!("entries went from {entries:?} to {now:?}"))?;
        let recorded = self.facts().await?.len();
        must(Invariant::I2, recorded == facts, || format!("facts went from {facts} to {recorded}"))?;
        let (Some(server), Some(first)) = (self.server, self.first_request) else { return Ok(()) };
        let (sent, most) = (server.requests().len().saturating_sub(first), recording.most_requests());
        must(Invariant::I2, sent <= most, || format!("{sent} requests for {most} announced"))
    }
}
