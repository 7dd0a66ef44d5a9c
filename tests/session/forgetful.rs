//! A store that does not do all that it is asked to.

use std::sync::Arc;

use jiff::Timestamp;
use safepoint::{
    ids::{ApprovalId, NodeId, SessionId},
    raw::store::{
        Among, Appended, ApprovalCursor, ApprovalRow, Cause, ChainCheck, ChangeStream, Changes,
        DecisionResult, Due, Durability, InboxRow, Lease, Leaving, NewDecision, NewItem, NewSession,
        NodeLease, NodeRow, NodeState, OverImage, Page, PageCursor, Pushed, Rest, SessionApproval,
        SessionImage, StopIntent, StopRow, StoreFuture, Tenure, Withdrawn, Write,
    },
    store::{Error, NewNode, SessionRow, Store},
};

/// What it does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forgets {
    /// A session is created without the records that it begins with.
    Records,
    /// It is created without the last of them.
    LastRecord,
    /// Without any, and nothing is removed.
    RecordsAndToRemove,
}

/// A store that hands everything else on to another one.
#[derive(Debug)]
pub(crate) struct Forgetful {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) forgets: Forgets,
}

/// Methods of the trait, handed on.
macro_rules! hand_on {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $name(&self, $($arg: $type),*) -> StoreFuture<'_, $answer> {
            self.inner.$name($($arg),*)
        }
    )*};
}

impl Store for Forgetful {
    fn create(&self, mut session: NewSession) -> StoreFuture<'_, SessionRow> {
        match self.forgets {
            Forgets::LastRecord => drop(session.records.pop()),
            Forgets::Records | Forgets::RecordsAndToRemove => session.records.clear(),
        }
        self.inner.create(session)
    }

    fn remove(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        match self.forgets {
            Forgets::RecordsAndToRemove => {
                Box::pin(async { Err(Error::Failed(Cause::new("nothing is removed here"))) })
            }
            Forgets::Records | Forgets::LastRecord => self.inner.remove(session),
        }
    }

    hand_on! {
        open(session: &SessionId) -> SessionRow;
        remove_if_at_rest(session: &SessionId) -> bool;
        list(most: usize, older: Option<PageCursor>) -> Vec<SessionRow>;
        join(node: NewNode) -> NodeLease;
        beat(node: &NodeLease, load: u32) -> NodeState;
        leave(node: &NodeId, how: Leaving) -> ();
        nodes() -> Vec<NodeRow>;
        bury() -> Vec<NodeId>;
        acquire(session: &SessionId, node: &NodeLease) -> Lease;
        release(lease: &Lease, seen: Changes, rest: Rest) -> ();
        due(most: usize, pools: Vec<String>) -> Vec<Due>;
        unpark(session: &SessionId) -> ();
        tenures(session: &SessionId) -> Vec<Tenure>;
        image(session: &SessionId) -> SessionImage;
        restore(image: SessionImage, over: OverImage) -> SessionRow;
        ask_stops(among: Among, stop: StopIntent) -> u64;
        append(lease: &Lease, writes: Vec<Write>, class: Durability) -> Appended;
        read(session: &SessionId, from: u64, most: usize) -> Page;
        check(session: &SessionId) -> ChainCheck;
        push(session: &SessionId, push: NewItem) -> Pushed;
        inbox(session: &SessionId) -> Vec<InboxRow>;
        accepted(session: &SessionId, item: u64) -> Option<Timestamp>;
        withdraw(session: &SessionId, item: u64) -> Withdrawn;
        ask_stop(session: &SessionId, stop: StopIntent) -> u64;
        stops(session: &SessionId, after: u64) -> Vec<StopRow>;
        decide(session: &SessionId, decision: NewDecision) -> DecisionResult;
        approval(session: &SessionId, id: &ApprovalId) -> Option<ApprovalRow>;
        approvals(session: &SessionId) -> Vec<ApprovalRow>;
        open_approvals(most: usize, after: Option<ApprovalCursor>) -> Vec<SessionApproval>;
        notice(session: &SessionId) -> Changes;
    }

    fn changes(&self, node: &NodeLease) -> ChangeStream {
        self.inner.changes(node)
    }
}
