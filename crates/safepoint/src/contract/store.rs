//! Durable storage: what a store keeps for sessions, and what it promises (S7).
//!
//! A store knows nothing of facts: it keeps opaque, versioned records in order of arrival, an inbox, stop
//! intents and approvals, and decides who may write. One suite (`safepoint_testkit::store_suite`) checks
//! every implementation against this contract.
//!
//! **Invariants:** at most one lease of a session can write at a time, and every write of the journal carries
//! its epoch. A request that is refused has changed nothing. What was acknowledged as durable survives power
//! loss; what was acknowledged as recorded survives the death of the process.

use std::{fmt, time::Duration};

use futures_core::future::BoxFuture;

use crate::value::ids::{ApprovalId, SessionId};

mod approval;
mod chain;
mod environment;
mod error;
mod export;
pub(crate) mod guarded;
mod inbox;
mod journal;
mod lease;
mod memory;
mod process;
mod record;
mod session;
mod stop;
mod uptime;

pub use approval::{
    ApprovalClose, ApprovalRow, ApprovalState, CloseResult, DecisionResult, DecisionUse, NewApproval,
    NewDecision,
};
pub use chain::{Chain, ChainCheck, ChainReader, ChainSummary};
pub use environment::{Clock, Environment, LivenessCheck, Uptime, of_micros, truncate_to_micros};
pub use error::{Cause, Error};
pub use export::export;
pub(crate) use guarded::guarded;
pub use inbox::{InboxRow, ItemState, NewItem, Pushed, Withdrawn};
pub use journal::{Appended, Durability, JournalEntry, Page, Write};
pub use lease::{Lease, LeaseHolder, is_free};
pub use memory::MemoryStore;
pub use process::{Liveness, OwnerProcess};
pub use record::{Damage, DamageKind, Record};
pub use session::{ChangeMark, Changes, NewSession, PageCursor, SessionRow};
pub use stop::{ApprovalsToWithdraw, StopIntent, StopRow};
pub use uptime::{Since, uptime};

/// The future of a store's answer.
///
/// `Box::pin(async move { … })` makes one.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Keeps sessions. Cheap to call from many tasks at once; many processes may use the same store.
///
/// # Errors
/// Each method fails with the [`Error`] that says why. Nothing was changed then, except possibly with
/// [`Error::Unknown`] and [`Error::Gone`].
///
/// # Cancel safety
/// Dropping a future of a method that only reads loses nothing. Dropping one that writes, even before it was
/// polled, leaves open whether it was written: entirely, or not at all.
///
/// ```
/// use std::time::Duration;
/// use safepoint::{
///     raw::store::{Durability, NewSession, Record, Write},
///     store::{Error, MemoryStore, OwnerProcess, Store},
/// };
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let store = MemoryStore::default();
/// let session = store.create(NewSession::of("trip")).await?.id;
/// let lease = store.acquire(&session, OwnerProcess::here(), Duration::from_secs(10)).await?;
/// let said = Record { path: "1".into(), kind: "said".into(), version: 1, bytes: b"hello".to_vec() };
/// let appended = store.append(&lease, vec![Write::Record(said.clone())], Durability::Durable).await?;
/// assert_eq!((appended.first, appended.next), (0, 1));
/// assert_eq!(store.read(&session, 0, 10).await?.entries[0].record, Ok(said));
/// store.release(&lease).await?;
/// # Ok(())
/// # }
/// ```
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Creates a session, writes its records, and puts its items into its inbox, in one transaction: all of it, or
    /// nothing. Each item is then as after a [`push`](Self::push); one that a push would refuse, or find there already,
    /// refuses the whole ([`Error::ItemRefused`]). Durable with items or records. Without any it is *recorded*: the
    /// first durable write makes it durable too.
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionRow>;

    /// The session's row, as it is now.
    fn open(&self, session: &SessionId) -> StoreFuture<'_, SessionRow>;

    /// The most recently changed sessions, newest first; the next page is those `older` than the last of
    /// these.
    fn list(&self, most: usize, older: Option<PageCursor>) -> StoreFuture<'_, Vec<SessionRow>>;

    /// Removes a session and everything that belongs to it. Refused while an owner that may be alive holds
    /// it. Durable.
    fn remove(&self, session: &SessionId) -> StoreFuture<'_, ()>;

    /// Becomes the only writer, if there is no other. A holder is displaced if it is provably dead, or if its
    /// lease has been over for longer than the margin ([`is_free`]); otherwise the error names it
    /// ([`Error::Held`]).
    fn acquire(&self, session: &SessionId, owner: OwnerProcess, ttl: Duration) -> StoreFuture<'_, Lease>;

    /// Renews the lease for its full time from now. A lease that is over and that no other process took can
    /// be renewed.
    fn renew(&self, lease: &Lease) -> StoreFuture<'_, Lease>;

    /// Releases the session: the lease can write nothing more.
    fn release(&self, lease: &Lease) -> StoreFuture<'_, ()>;

    /// Writes all of it in one transaction, or nothing. [`Error::Fenced`] if the lease is not the newest.
    fn append(&self, lease: &Lease, writes: Vec<Write>, class: Durability) -> StoreFuture<'_, Appended>;

    /// At most `most` records in order, the first at position `from` (counted from 0). A damaged record is an
    /// entry that says so; the others stay readable.
    fn read(&self, session: &SessionId, from: u64, most: usize) -> StoreFuture<'_, Page>;

    /// Walks the whole chain, and names the first bad record or what is lost at the end.
    fn check(&self, session: &SessionId) -> StoreFuture<'_, ChainCheck>;

    /// Puts an item into the inbox; any process may. An acceptance is durable.
    fn push(&self, session: &SessionId, push: NewItem) -> StoreFuture<'_, Pushed>;

    /// The items that wait or are taken, oldest first.
    fn inbox(&self, session: &SessionId) -> StoreFuture<'_, Vec<InboxRow>>;

    /// Withdraws a waiting item, or says why not; any process may. Durable.
    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn>;

    /// Asks for a stop; any process may. Its number among the session's stop intents, counted from 1. Durable.
    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64>;

    /// The stop intents with a number greater than `after`, oldest first.
    fn stops(&self, session: &SessionId, after: u64) -> StoreFuture<'_, Vec<StopRow>>;

    /// Decides an approval; any process may, and exactly one decision is taken. Durable.
    fn decide(&self, session: &SessionId, decision: NewDecision) -> StoreFuture<'_, DecisionResult>;

    /// One approval, if it exists.
    fn approval(&self, session: &SessionId, id: &ApprovalId) -> StoreFuture<'_, Option<ApprovalRow>>;

    /// Every approval of the session, oldest first.
    fn approvals(&self, session: &SessionId) -> StoreFuture<'_, Vec<ApprovalRow>>;

    /// Differs from an earlier stamp if anything in the store may have changed since, by any process. Cheap
    /// enough to call many times a second.
    fn stamp(&self) -> StoreFuture<'_, ChangeMark>;

    /// What others may have put into this session: the newest number of each kind.
    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes>;
}
