//! Durable storage: what a store keeps for sessions, and what it promises (S7).
//!
//! A store knows nothing of facts: it keeps opaque, versioned records in order of arrival, an inbox, stop
//! intents and approvals, and decides who may write. One suite (`safepoint_testkit::store_suite`) checks
//! every implementation against this contract.
//!
//! **Invariants:** at most one lease of a session can write at a time, and every write of the journal carries
//! its epoch and its node. A node that was buried holds nothing and records nothing again (S7.13). A request that is refused has changed nothing. What was acknowledged as durable survives power
//! loss; what was acknowledged as recorded survives the death of the process.

use std::fmt;

use futures_core::{future::BoxFuture, stream::BoxStream};
use jiff::Timestamp;

use crate::value::ids::{ApprovalId, NodeId, SessionId};

mod approval;
mod chain;
mod due;
mod environment;
mod error;
mod export;
pub(crate) mod guarded;
mod image;
mod inbox;
mod journal;
mod lease;
mod memory;
mod node;
mod process;
mod record;
mod session;
mod stop;
mod uptime;

pub use approval::{
    ApprovalClose, ApprovalCursor, ApprovalRow, ApprovalState, CloseResult, DecisionResult, DecisionUse,
    NewApproval, NewDecision, SessionApproval,
};
pub use chain::{Chain, ChainCheck, ChainReader, ChainSummary};
pub use due::{Change, Due, MOST_TRIES, NAMED_AGAIN_AFTER, PARKED, Tenure, retry_after};
pub use environment::{Clock, Environment, LivenessCheck, Uptime, of_micros, truncate_to_micros};
pub use error::{Cause, Error};
pub use export::export;
pub(crate) use export::export_from;
pub(crate) use guarded::guarded;
pub use image::{ImageStamp, OverImage, SessionImage};
pub use inbox::{InboxRow, ItemState, NewItem, Pushed, Withdrawn};
pub use journal::{Appended, Durability, JournalEntry, Page, Write};
pub use lease::{Lease, LeaseHolder, is_free};
pub use memory::MemoryStore;
pub use node::{Among, FORGOTTEN_AFTER, Leaving, NewNode, NodeLease, NodeRow, NodeState, Rest};
pub use process::{Liveness, OwnerProcess};
pub use record::{Damage, DamageKind, Record};
pub use session::{Changes, NewSession, PageCursor, SessionRow};
pub use stop::{ApprovalsToWithdraw, StopIntent, StopRow};
pub use uptime::{Since, uptime};

/// The future of a store's answer.
///
/// `Box::pin(async move { … })` makes one.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// What others do to the sessions of a node, as it comes.
pub type ChangeStream = BoxStream<'static, Result<Change, Error>>;

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
///     raw::store::{Changes, Durability, NewSession, Record, Rest, Write},
///     store::{Error, MemoryStore, NewNode, OwnerProcess, Store},
/// };
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let store = MemoryStore::default();
/// let session = store.create(NewSession::of("trip")).await?.id;
/// let node = store.join(NewNode::of(OwnerProcess::here(), Duration::from_secs(10))).await?;
/// let lease = store.acquire(&session, &node).await?;
/// let said = Record { path: "1".into(), kind: "said".into(), version: 1, bytes: b"hello".to_vec() };
/// let appended = store.append(&lease, vec![Write::Record(said.clone())], Durability::Durable).await?;
/// assert_eq!((appended.first, appended.next), (0, 1));
/// assert_eq!(store.read(&session, 0, 10).await?.entries[0].record, Ok(said));
/// store.release(&lease, store.notice(&session).await?, Rest::Nothing).await?;
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

    /// The same of a session at rest, in one transaction with the look whether it is: no item waits in it, and no approval is open or
    /// waits to be used. Returns whether that was so; otherwise nothing has changed.
    fn remove_if_at_rest(&self, session: &SessionId) -> StoreFuture<'_, bool>;

    /// Joins as a node, which may hold sessions by one lease (S7.12). A node of its name that may be
    /// [buried](Self::bury) is buried first; another one is [`Error::NodeExists`].
    fn join(&self, node: NewNode) -> StoreFuture<'_, NodeLease>;

    /// Renews the node's lease, and with it all that it holds, for the full time from now; a lease that is over too. The answer says
    /// whether it serves, or was asked to drain. [`Error::Buried`] once the node was buried or left.
    fn beat(&self, node: &NodeLease, load: u32) -> StoreFuture<'_, NodeState>;

    /// The node takes nothing more, or is gone; any process may ask that it drains. What a node that is gone still held
    /// wants an owner. A node that was buried or left before stays as it is.
    fn leave(&self, node: &NodeId, how: Leaving) -> StoreFuture<'_, ()>;

    /// The nodes, in the order in which they joined. Those that ended long ago may be forgotten.
    fn nodes(&self) -> StoreFuture<'_, Vec<NodeRow>>;

    /// Declares those dead that provably are, and those whose lease has been over for longer than the margin
    /// ([`NodeRow::may_be_buried`]). What they held wants an owner, in the same transaction; a session whose owners died
    /// [`MOST_TRIES`] times is parked instead. Durable.
    fn bury(&self) -> StoreFuture<'_, Vec<NodeId>>;

    /// Becomes the only writer of the session, if there is no other, until the node's lease is over. A holder that may be
    /// buried is, in the same transaction; another one is named ([`Error::Held`]). [`Error::Buried`] or [`Error::Draining`] if
    /// the node is not serving, [`Error::Parked`] if no node may take the session.
    fn acquire(&self, session: &SessionId, node: &NodeLease) -> StoreFuture<'_, Lease>;

    /// Gives the session back: the lease can write nothing more. `rest` says when it wants an owner again. It does so now if
    /// others did something that is not in `seen`.
    fn release(&self, lease: &Lease, seen: Changes, rest: Rest) -> StoreFuture<'_, ()>;

    /// What others do to the sessions that this node holds, from now on, each within 250 ms (S7.44). Several changes of one
    /// session may come as one. The last one is an error where the node was buried, or the store is gone; any other error
    /// means that changes may have been missed.
    fn changes(&self, node: &NodeLease) -> ChangeStream;

    /// The sessions of these pools, and of none, that want an owner and have none, at most `most`: by priority, the one that has waited
    /// longest first. Each is named to one caller, and to the next one after 5 s, or for what came after a node took it. Not durable.
    fn due(&self, most: usize, pools: Vec<String>) -> StoreFuture<'_, Vec<Due>>;

    /// Counts the dead owners of the session from none again. Nodes may take it again if it was parked, and it wants an
    /// owner then.
    fn unpark(&self, session: &SessionId) -> StoreFuture<'_, ()>;

    /// Who held the session and from which record on, oldest first. What was before this was kept is not known.
    fn tenures(&self, session: &SessionId) -> StoreFuture<'_, Vec<Tenure>>;

    /// All of a session at one moment, its journal verified ([`Error::Damaged`]). Refused while a node holds it ([`Error::Held`]).
    fn image(&self, session: &SessionId) -> StoreFuture<'_, SessionImage>;

    /// Puts a session as it is in the image, in one transaction: with its times, its numbers and its epochs, and without a holder.
    /// [`Error::SessionExists`] if there is another one than `over` says, [`Error::NoSession`] if there is none and there should be, and
    /// [`Error::Held`] if a node holds it. Later leases have greater epochs than any of it. Durable.
    fn restore(&self, image: SessionImage, over: OverImage) -> StoreFuture<'_, SessionRow>;

    /// Writes all of it in one transaction, or nothing. [`Error::Fenced`] if the lease is not the newest,
    /// [`Error::Buried`] if it is its node's, which was buried.
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

    /// When an item was accepted, wherever it is now; `None`: there was no such item.
    fn accepted(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Option<Timestamp>>;

    /// Withdraws a waiting item, or says why not; any process may. Durable.
    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn>;

    /// Asks for a stop; any process may. Its number among the session's stop intents, counted from 1. Durable.
    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64>;

    /// Asks for a stop of many sessions, of each by a separate intent, in one transaction: all of them, or none. How many
    /// they are. Its approvals must stay. Durable.
    fn ask_stops(&self, among: Among, stop: StopIntent) -> StoreFuture<'_, u64>;

    /// The stop intents with a number greater than `after`, oldest first.
    fn stops(&self, session: &SessionId, after: u64) -> StoreFuture<'_, Vec<StopRow>>;

    /// Decides an approval; any process may, and exactly one decision is taken. Durable.
    fn decide(&self, session: &SessionId, decision: NewDecision) -> StoreFuture<'_, DecisionResult>;

    /// One approval, if it exists.
    fn approval(&self, session: &SessionId, id: &ApprovalId) -> StoreFuture<'_, Option<ApprovalRow>>;

    /// Every approval of the session, oldest first.
    fn approvals(&self, session: &SessionId) -> StoreFuture<'_, Vec<ApprovalRow>>;

    /// The approvals of all sessions that are open, at most `most`, those asked first first; the next page is those `after` the last of
    /// these. What was decided, withdrawn or has expired costs nothing.
    fn open_approvals(
        &self,
        most: usize,
        after: Option<ApprovalCursor>,
    ) -> StoreFuture<'_, Vec<SessionApproval>>;

    /// What others may have put into this session: the newest number of each kind.
    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes>;
}
