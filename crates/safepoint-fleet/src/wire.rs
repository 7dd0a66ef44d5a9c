//! The store as one node reaches it: over a network that delays, loses and is cut.
//!
//! **Invariants**: a request is done once at most, however often it is sent. It is done even if the one that asked has stopped waiting,
//! was paused or has crashed. The judge sees it at the moment in which it is done.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use safepoint::{
    ids::{ApprovalId, NodeId, SessionId},
    raw::store::{
        Among, Appended, ApprovalCursor, ApprovalRow, Cause, ChainCheck, Change, ChangeStream, Changes,
        DecisionResult, Due, Durability, InboxRow, Lease, Leaving, NewDecision, NewItem, NewSession,
        NodeLease, NodeRow, NodeState, OverImage, Page, PageCursor, Pushed, Rest, SessionApproval,
        SessionImage, Since, StopIntent, StopRow, StoreFuture, Tenure, Withdrawn, Write,
    },
    store::{Error, NewNode, SessionRow, Store},
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout_at},
};

use super::{
    delivery::{Delivery, Once},
    link::NodeLink,
    site::StoreSite,
};

/// How long an answer is waited for before the request is sent again.
const AGAIN: Duration = Duration::from_millis(700);
/// For how long a request is sent again at most (S7.51).
const ANSWER: Duration = Duration::from_secs(5);

/// The store of one node.
#[derive(Clone, Debug)]
pub(super) struct WireStore {
    site: Arc<StoreSite>,
    link: Arc<NodeLink>,
}

impl WireStore {
    pub(super) fn new(site: Arc<StoreSite>, link: Arc<NodeLink>) -> Self {
        Self { site, link }
    }

    /// Sends a request until there is an answer or the time is over. What becomes of it then is unknown.
    fn ask<T: Clone + Send + 'static>(
        &self,
        name: &'static str,
        does: impl FnOnce(&StoreSite, &NodeLink) -> BoxFuture<'static, Result<T, Error>> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let (site, link) = (Arc::clone(&self.site), Arc::clone(&self.link));
        async move {
            let ends = Instant::now() + ANSWER;
            let once = Once::new(does);
            while Instant::now() < ends {
                let (answers, answer) = oneshot::channel();
                let (site, link) = (Arc::clone(&site), Arc::clone(&link));
                Delivery { site, link, name, once: once.clone(), answers }.send();
                match timeout_at((Instant::now() + AGAIN).min(ends), answer).await {
                    Ok(Ok(answer)) => return answer,
                    // It was lost on its way.
                    Ok(Err(_)) => sleep(AGAIN / 2).await,
                    Err(_elapsed) => {}
                }
            }
            Err(Error::Unknown(Cause::new("no answer came in time")))
        }
        .boxed()
    }
}

/// Methods of the trait, handed on as they are: before the semicolon stands what a method borrows.
macro_rules! hand_on {
    ($($name:ident($($of:ident: $key:ty),*; $($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $name(&self, $($of: &$key,)* $($arg: $type),*) -> StoreFuture<'_, $answer> {
            $(let $of = $of.clone();)*
            self.ask(concat!("ask ", stringify!($name)), move |site, _| {
                let store = site.store();
                async move { store.$name($(&$of,)* $($arg),*).await }.boxed()
            })
        }
    )*};
}

impl Store for WireStore {
    hand_on! {
        create(; session: NewSession) -> SessionRow;
        open(session: SessionId;) -> SessionRow;
        list(; most: usize, older: Option<PageCursor>) -> Vec<SessionRow>;
        remove(session: SessionId;) -> ();
        remove_if_at_rest(session: SessionId;) -> bool;
        nodes(;) -> Vec<NodeRow>;
        due(; most: usize, pools: Vec<String>) -> Vec<Due>;
        unpark(session: SessionId;) -> ();
        tenures(session: SessionId;) -> Vec<Tenure>;
        image(session: SessionId;) -> SessionImage;
        restore(; image: SessionImage, over: OverImage) -> SessionRow;
        read(session: SessionId; from: u64, most: usize) -> Page;
        check(session: SessionId;) -> ChainCheck;
        push(session: SessionId; push: NewItem) -> Pushed;
        inbox(session: SessionId;) -> Vec<InboxRow>;
        accepted(session: SessionId; item: u64) -> Option<jiff::Timestamp>;
        withdraw(session: SessionId; item: u64) -> Withdrawn;
        ask_stop(session: SessionId; stop: StopIntent) -> u64;
        ask_stops(; among: Among, stop: StopIntent) -> u64;
        stops(session: SessionId; after: u64) -> Vec<StopRow>;
        decide(session: SessionId; decision: NewDecision) -> DecisionResult;
        approval(session: SessionId, id: ApprovalId;) -> Option<ApprovalRow>;
        approvals(session: SessionId;) -> Vec<ApprovalRow>;
        open_approvals(; most: usize, after: Option<ApprovalCursor>) -> Vec<SessionApproval>;
        notice(session: SessionId;) -> Changes;
    }

    fn join(&self, node: NewNode) -> StoreFuture<'_, NodeLease> {
        // The holder counts from before it asked.
        let (since, id, ttl) = (Since::now(), node.id.clone(), node.ttl);
        let joins = self.ask("ask join", move |site, link| site.join(node, link.number));
        async move {
            joins.await?;
            let lease = NodeLease::new(id, ttl, since);
            self.link.has_lease(&lease);
            Ok(lease)
        }
        .boxed()
    }

    fn beat(&self, node: &NodeLease, load: u32) -> StoreFuture<'_, NodeState> {
        let (since, node) = (Since::now(), node.clone());
        let theirs = StoreSite::theirs(&node);
        let beats = self.ask("ask beat", move |site, _| {
            let store = site.store();
            async move { store.beat(&theirs, load).await }.boxed()
        });
        beats.map(move |beaten| beaten.inspect(|_state| node.renewed(since))).boxed()
    }

    fn leave(&self, node: &NodeId, how: Leaving) -> StoreFuture<'_, ()> {
        let node = node.clone();
        self.ask("ask leave", move |site, _| site.leave(node, how))
    }

    fn bury(&self) -> StoreFuture<'_, Vec<NodeId>> {
        self.ask("ask bury", move |site, _| site.bury())
    }

    fn acquire(&self, session: &SessionId, node: &NodeLease) -> StoreFuture<'_, Lease> {
        let (id, theirs) = (session.clone(), StoreSite::theirs(node));
        let acquired = self.ask("ask acquire", move |site, link| site.acquire(id, theirs, link.number));
        let (session, node) = (session.clone(), node.clone());
        acquired.map(move |epoch| epoch.map(|epoch| Lease::new(session, epoch, node))).boxed()
    }

    fn release(&self, lease: &Lease, seen: Changes, rest: Rest) -> StoreFuture<'_, ()> {
        let lease = lease.clone();
        self.ask("ask release", move |site, _| site.release(lease, seen, rest))
    }

    fn append(&self, lease: &Lease, writes: Vec<Write>, class: Durability) -> StoreFuture<'_, Appended> {
        let lease = lease.clone();
        self.ask("ask append", move |site, _| site.append(lease, writes, class))
    }

    /// Each change takes as long as a message. Where one cannot arrive the connection is broken, and changes may have been missed.
    fn changes(&self, node: &NodeLease) -> ChangeStream {
        let changes = self.site.store().changes(&StoreSite::theirs(node));
        let link = Arc::clone(&self.link);
        Box::pin(stream::unfold(Some((changes, link)), |listening| async move {
            let (mut changes, link) = listening?;
            let change: Result<Change, Error> = changes.next().await?;
            let is_here = link.carries().await;
            let change =
                if is_here { change } else { Err(Error::Failed(Cause::new("the connection was cut"))) };
            match &change {
                Ok(change) => link.wake(&change.session),
                Err(_) => link.wake_all(),
            }
            let next = change.is_ok().then_some((changes, link));
            Some((change, next))
        }))
    }
}
