//! What every store must do: one fact after the other, over two handles on the same store, as two processes
//! have.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::sync::Arc;
//!
//! use safepoint::store::{MemoryStore, Store};
//! use safepoint_testkit::store_suite;
//!
//! let fresh = |outside| {
//!     let store: Arc<dyn Store> = Arc::new(MemoryStore::new(outside));
//!     [Arc::clone(&store), store]
//! };
//! store_suite::all(&fresh).await.unwrap();
//! # });
//! ```

use std::{fmt, sync::Arc, time::Duration};

use safepoint::{
    ids::SessionId,
    raw::store::{
        Appended, Durability, Environment, Lease, Leaving, NewItem, NewSession, Record, Rest, StopIntent,
        Write,
    },
    store::{Error, NewNode, OwnerProcess, Store},
};

mod approvals;
mod due;
mod faults;
mod images;
mod inbox;
mod journal;
mod leases;
mod nodes;
mod notices;
mod outside;
pub mod play;
mod sessions;
mod stops;

pub use approvals::approvals;
pub use due::due;
pub use faults::faults;
pub use images::images;
pub use inbox::{deep_inbox, inbox};
pub use journal::journal;
pub use leases::leases;
pub use nodes::nodes;
pub use notices::notices;
pub use outside::{Population, Time, outside};
pub use sessions::sessions;
pub use stops::stops;

/// Makes a fresh store in a world of the suite's, and opens it twice.
pub type Fresh<'a> = &'a (dyn Fn(Environment) -> [Arc<dyn Store>; 2] + Sync);

/// A fact that does not hold of a store, and how.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BrokenStore(String);

impl BrokenStore {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl From<Error> for BrokenStore {
    fn from(error: Error) -> Self {
        Self(format!("an answer was expected, and there was an error: {error}"))
    }
}

/// What came of a fact.
type Holds = Result<(), BrokenStore>;

/// Every part of the suite but [`deep_inbox`], which measures: sessions, nodes, leases, what is due, journal, inbox, stops, approvals, what others
/// notice, images, and what is left by a fault at each operation.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn all(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    sessions(fresh).await?;
    nodes(fresh).await?;
    leases(fresh).await?;
    due(fresh).await?;
    journal(fresh).await?;
    inbox(fresh).await?;
    stops(fresh).await?;
    approvals(fresh).await?;
    notices(fresh).await?;
    images(fresh).await?;
    faults(fresh).await
}

fn same<T: PartialEq + fmt::Debug>(what: &str, is: T, should_be: T) -> Holds {
    if is == should_be {
        Ok(())
    } else {
        Err(BrokenStore(format!("{what}: {is:?} instead of {should_be:?}")))
    }
}

fn must(what: &str, holds: bool) -> Holds {
    if holds { Ok(()) } else { Err(BrokenStore(what.into())) }
}

/// Fails unless the request was refused, in the way that `is` knows.
fn refused<T: fmt::Debug>(what: &str, answer: Result<T, Error>, is: impl Fn(&Error) -> bool) -> Holds {
    match answer {
        Err(error) if is(&error) => Ok(()),
        other => Err(BrokenStore(format!("{what}: {other:?}"))),
    }
}

/// A store that is open twice, and the world around it.
struct Bed {
    /// The holder's handle.
    store: Arc<dyn Store>,
    /// Another process's handle.
    other: Arc<dyn Store>,
    time: Time,
    lives: Population,
}

/// How long leases last here.
const TTL: Duration = Duration::from_secs(10);

impl Bed {
    fn make(fresh: Fresh<'_>) -> Self {
        let (time, lives) = (Time::default(), Population::default());
        let [store, other] = fresh(outside(&time, &lives));
        Self { store, other, time, lives }
    }

    async fn session(&self, id: &str) -> Result<SessionId, BrokenStore> {
        Ok(self.store.create(NewSession::of(id)).await?.id)
    }

    /// A session and the right to write it.
    async fn held(&self, id: &str) -> Result<(SessionId, Lease), BrokenStore> {
        let session = self.session(id).await?;
        let lease = self.take(&session, 1).await?;
        Ok((session, lease))
    }

    /// The right to write a session, for a process by its own handle: this suite's process 1 has the first one.
    async fn take(&self, session: &SessionId, pid: u32) -> Result<Lease, Error> {
        acquire(self.of(pid), session, owner(pid), TTL).await
    }

    fn of(&self, pid: u32) -> &dyn Store {
        if pid == 1 { &*self.store } else { &*self.other }
    }

    /// Gives a session back that wants no owner.
    async fn give_back(&self, lease: &Lease) -> Result<(), BrokenStore> {
        Ok(give_back(&*self.store, lease).await?)
    }

    async fn append(&self, lease: &Lease, writes: Vec<Write>) -> Result<Appended, Error> {
        self.store.append(lease, writes, Durability::Durable).await
    }
}

/// Takes a session for this process, as a node that it joins for that session alone.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// The node may have joined, and hold the session.
pub async fn acquire(
    store: &dyn Store,
    session: &SessionId,
    owner: OwnerProcess,
    ttl: Duration,
) -> Result<Lease, Error> {
    let node = store.join(NewNode::of(owner, ttl)).await?;
    let lease = store.acquire(session, &node).await;
    if lease.is_err() {
        store.leave(node.id(), Leaving::Gone).await?;
    }
    lease
}

/// Gives a session back that was [acquired](acquire), and wants no owner.
///
/// # Errors
/// The store's.
///
/// # Cancel safety
/// It may have been given back.
pub async fn give_back(store: &dyn Store, lease: &Lease) -> Result<(), Error> {
    let seen = store.notice(lease.session()).await?;
    store.release(lease, seen, Rest::Nothing).await?;
    store.leave(lease.node().id(), Leaving::Gone).await
}

/// A process of the suite's world.
#[must_use]
pub fn owner(pid: u32) -> OwnerProcess {
    OwnerProcess {
        host: "here".into(),
        boot: "first".into(),
        space: "all".into(),
        pid,
        started: 1,
        socket: Some(format!("socket-{pid}")),
    }
}

/// Fails unless the answer is that there is no such session.
fn not_there<T: fmt::Debug>(answer: Result<T, Error>) -> Holds {
    refused("a session that is not there", answer, |error| matches!(error, Error::NoSession(_)))
}

/// A write of one record, which says this.
fn a_record(says: &str) -> Vec<Write> {
    vec![Write::Record(record(says))]
}

/// A record that says this.
#[must_use]
pub fn record(says: &str) -> Record {
    Record { path: "1".into(), kind: "said".into(), version: 1, bytes: says.as_bytes().to_vec() }
}

/// An item of this content, under a client's id.
#[must_use]
pub fn item(client: &str, says: &str) -> NewItem {
    const CAPACITY: usize = 3;
    NewItem {
        client_id: Some(client.into()),
        digest: format!("digest of {says}"),
        bytes: says.as_bytes().to_vec(),
        capacity: CAPACITY,
    }
}

fn wish(says: &str) -> StopIntent {
    StopIntent {
        bytes: says.as_bytes().to_vec(),
        approvals: safepoint::raw::store::ApprovalsToWithdraw::Stay,
    }
}
