//! What every backend must do (S10.2), and whether the grade that it declares is the true one (S10.1).
//!
//! The suite needs the peer's *own* account of its work: a [`Probe`] that says whether work runs, whatever
//! the backend says. A false declaration fails, in either direction.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::sync::Arc;
//!
//! use safepoint::{Agent, receipt::StopSupport};
//! use safepoint_testkit::{backend_suite::{self, Subject}, peer::{OnPeerStop, Peer}};
//!
//! let fresh = || {
//!     let peer = Peer::new("coder").waits().answers("done").on_stop(OnPeerStop::Ends);
//!     Subject { backend: Arc::new(Agent::remote(peer.clone()).build()), probe: Arc::new(peer) }
//! };
//! let measured = backend_suite::all(&fresh).await.unwrap();
//! assert_eq!(measured.grade, StopSupport::Hard);
//! # });
//! ```

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use safepoint::{
    Outcome, Receipt, RunHandle, StopRequest,
    raw::backend::{Backend, RunInput},
    receipt::{CallStatus, RemoteStopState, StopSupport},
};
use tokio::time::{Instant, sleep, timeout};

use crate::invariants::Invariants;

mod facts;
mod grade;
mod race;
pub mod table;

pub use facts::{already_over, before_the_start, ends_by_itself, native_stop_once, stops_at_once};
pub use grade::grade;
pub use race::{between_publication_and_start, from_many_threads, racing_the_end};

/// The guide, whose code is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/wrap-your-runtime.md")]
struct Guide;

/// The account of the worker, not of the backend.
pub trait Probe: Send + Sync {
    /// What is so at its end now.
    fn look(&self) -> BoxFuture<'_, Account>;

    /// Lets all of its work, also what is yet to come, end by itself, with an answer.
    fn finish(&self);

    /// How much the backend has shown to its own readers, beside the handle's events. Nothing more may come
    /// after the run has settled.
    fn shown(&self) -> usize {
        0
    }
}

/// What the worker sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// How much work has begun.
    pub begun: usize,
    /// How much work runs now.
    pub in_flight: usize,
    /// How often work got a stop request, or lost its caller.
    pub stops: usize,
}

/// A backend and the account of its worker: fresh for each fact.
#[derive(Clone)]
pub struct Subject {
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// The account.
    pub probe: Arc<dyn Probe>,
}

/// Makes a fresh subject, whose work runs until its probe lets it finish.
pub type Fresh<'a> = &'a (dyn Fn() -> Subject + Sync);

/// How long a stop may take to a settled run: the engine's own bound for clean-ups, and some more.
const SETTLES_WITHIN: Duration = Duration::from_secs(12);

/// How long work that was begun may take to be seen by its probe.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// How far the peer's account may be behind its messages to us: a socket, a process table.
const LAG: Duration = Duration::from_secs(1);

/// How long work that is torn down may take to be gone by its own account.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// What is said of a backend that shows more once its run has settled.
const SHOWN_LATE: &str = "it has shown something after it had settled";

/// How often a probe is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// A fact that does not hold of a backend, and how.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BrokenBackend(String);

impl BrokenBackend {
    fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// What came of a fact.
type Holds<T = ()> = Result<T, BrokenBackend>;

fn must(what: &str, holds: bool) -> Holds {
    if holds { Ok(()) } else { Err(BrokenBackend::new(what)) }
}

/// What was measured of a backend: a row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// The grade, which is the declared one, or the suite would have failed.
    pub grade: StopSupport,
    /// What the receipt said of the call that did the work, where there was one.
    pub row: Option<CallStatus>,
    /// What a peer confirmed, where there is one.
    pub confirmed: Option<RemoteStopState>,
    /// Whether the run was quiet afterwards, by its own word.
    pub is_quiet: bool,
}

/// Every fact, one after the other.
///
/// # Errors
/// The first that does not hold.
///
/// # Cancel safety
/// Work of the subject may continue.
pub async fn all(fresh: Fresh<'_>) -> Result<Measured, BrokenBackend> {
    ends_by_itself(fresh).await?;
    before_the_start(fresh).await?;
    stops_at_once(fresh).await?;
    native_stop_once(fresh).await?;
    between_publication_and_start(fresh).await?;
    from_many_threads(fresh).await?;
    racing_the_end(fresh).await?;
    grade(fresh).await
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("backend", &self.backend.spec()).finish_non_exhaustive()
    }
}

impl Subject {
    fn declared(&self) -> StopSupport {
        self.backend.spec().grade
    }

    fn start(&self) -> RunHandle {
        self.backend.start(RunInput::new("work"))
    }

    /// A run with running work.
    async fn running(&self) -> Holds<RunHandle> {
        let before = self.probe.look().await;
        let handle = self.start();
        let begun = self.until(BEGINS_WITHIN, |now| now.in_flight > before.in_flight).await;
        must("its work does not begin, or the probe does not see it", begun)?;
        Ok(handle)
    }

    /// Whether it becomes so in time, by the peer's own account.
    async fn until(&self, within: Duration, so: impl Fn(&Account) -> bool) -> bool {
        let began = Instant::now();
        loop {
            if so(&self.probe.look().await) {
                return true;
            }
            if began.elapsed() > within {
                return false;
            }
            sleep(LOOK).await;
        }
    }

    /// The outcome of a run that was stopped: at once, or where stops are not supported when its work is let
    /// go.
    async fn settled(&self, handle: &RunHandle) -> Holds<Outcome> {
        if self.declared() == StopSupport::None {
            self.probe.finish();
        }
        let done = timeout(SETTLES_WITHIN, handle.done()).await;
        done.map_err(|_elapsed| {
            BrokenBackend::new(format!("a stopped run has not settled within {SETTLES_WITHIN:?}"))
        })
    }

    /// What must hold once everything was said: the invariants of every run, nothing shown any more, and no
    /// word of an end that the peer's own account does not bear out.
    async fn closed(&self, handle: &RunHandle) -> Holds<Arc<Receipt>> {
        let shown = self.probe.shown();
        let closed =
            Invariants::of(handle).check().await.map_err(|broken| BrokenBackend::new(broken.to_string()))?;
        if closed.receipt.quiet_at.is_some() {
            let gone = self.until(LAG, |now| now.in_flight == 0).await;
            must("it says that it is quiet, and its work continues", gone)?;
        }
        self.probe.finish();
        let gone = self.until(GONE_WITHIN, |now| now.in_flight == 0).await;
        must("its work does not end although it was let go: the suite cannot judge it", gone)?;
        must(SHOWN_LATE, self.probe.shown() == shown)?;
        Ok(closed.receipt)
    }
}

/// Asks, and holds the asking against the clock of the world.
fn stop_now(handle: &RunHandle) -> Holds<safepoint::stop::StopAck> {
    let began = std::time::Instant::now();
    let asked = handle.stop(StopRequest::now());
    must("asking for a stop blocks", began.elapsed() < LAG)?;
    Ok(asked)
}
