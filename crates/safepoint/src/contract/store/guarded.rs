//! The one place where the engine calls a store: a panic in it becomes an error, in any method and at any
//! poll (S2.16).

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_util::stream;
use jiff::Timestamp;

use super::{
    Among, Appended, ApprovalCursor, ApprovalRow, Cause, ChainCheck, Change, ChangeStream, Changes,
    DecisionResult, Due, Durability, Error, InboxRow, Lease, Leaving, NewDecision, NewItem, NewNode,
    NewSession, NodeLease, NodeRow, NodeState, OverImage, Page, PageCursor, Pushed, Rest, SessionApproval,
    SessionImage, SessionRow, StopIntent, StopRow, Store, StoreFuture, Tenure, Withdrawn, Write,
};
use crate::{
    sync::callback::{self, Foreign, Panicked},
    value::ids::{ApprovalId, NodeId, SessionId},
};

/// Wraps a store so that none of its panics gets through.
pub(crate) fn guarded(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Foreign::new(store))
}

/// Makes one request to a borrowed store that changes nothing.
pub(crate) async fn read<'a, T: Send>(ask: impl FnOnce() -> StoreFuture<'a, T> + Send) -> Result<T, Error> {
    callback::run(async move { ask().await }).await.unwrap_or_else(|panic| Err(Error::Failed(cause(panic))))
}

/// Makes one request to a borrowed store that changes it. After a panic its result is unknown.
pub(crate) async fn write<'a, T: Send>(ask: impl FnOnce() -> StoreFuture<'a, T> + Send) -> Result<T, Error> {
    callback::run(async move { ask().await }).await.unwrap_or_else(|panic| Err(Error::Unknown(cause(panic))))
}

fn cause(Panicked(why): Panicked) -> Cause {
    Cause::new(format!("the store panicked: {why}"))
}

fn look<'a, T: Send + 'a>(
    store: &'a Foreign<dyn Store>,
    ask: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
) -> StoreFuture<'a, T> {
    let answered = store.run(ask);
    Box::pin(async { answered.await.unwrap_or_else(|panic| Err(Error::Failed(cause(panic)))) })
}

fn change<'a, T: Send + 'a>(
    store: &'a Foreign<dyn Store>,
    ask: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
) -> StoreFuture<'a, T> {
    let answered = store.run(ask);
    Box::pin(async { answered.await.unwrap_or_else(|panic| Err(Error::Unknown(cause(panic)))) })
}

/// The changes of a foreign store: after a panic there are no more.
struct GuardedChanges(Option<ChangeStream>);

impl Stream for GuardedChanges {
    type Item = Result<Change, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(inner) = &mut self.0 else { return Poll::Ready(None) };
        let panic = match callback::call(|| inner.as_mut().poll_next(cx)) {
            Ok(polled) => return polled,
            Err(panic) => panic,
        };
        if callback::drop_caught(self.0.take()).is_err() {
            // The first panic is the one that is reported.
        }
        Poll::Ready(Some(Err(Error::Failed(cause(panic)))))
    }
}

impl Drop for GuardedChanges {
    fn drop(&mut self) {
        if callback::drop_caught(self.0.take()).is_err() {
            // It is gone, and nothing waits for that.
        }
    }
}

impl Store for Foreign<dyn Store> {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionRow> {
        change(self, |store| store.create(session))
    }

    fn open(&self, session: &SessionId) -> StoreFuture<'_, SessionRow> {
        let session = session.clone();
        look(self, move |store| store.open(&session))
    }

    fn list(&self, most: usize, older: Option<PageCursor>) -> StoreFuture<'_, Vec<SessionRow>> {
        look(self, move |store| store.list(most, older))
    }

    fn remove(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        let session = session.clone();
        change(self, move |store| store.remove(&session))
    }

    fn remove_if_at_rest(&self, session: &SessionId) -> StoreFuture<'_, bool> {
        let session = session.clone();
        change(self, move |store| store.remove_if_at_rest(&session))
    }

    fn join(&self, node: NewNode) -> StoreFuture<'_, NodeLease> {
        change(self, |store| store.join(node))
    }

    fn beat(&self, node: &NodeLease, load: u32) -> StoreFuture<'_, NodeState> {
        let node = node.clone();
        change(self, move |store| store.beat(&node, load))
    }

    fn leave(&self, node: &NodeId, how: Leaving) -> StoreFuture<'_, ()> {
        let node = node.clone();
        change(self, move |store| store.leave(&node, how))
    }

    fn nodes(&self) -> StoreFuture<'_, Vec<NodeRow>> {
        look(self, |store| store.nodes())
    }

    fn bury(&self) -> StoreFuture<'_, Vec<NodeId>> {
        change(self, |store| store.bury())
    }

    fn acquire(&self, session: &SessionId, node: &NodeLease) -> StoreFuture<'_, Lease> {
        let (session, node) = (session.clone(), node.clone());
        change(self, move |store| store.acquire(&session, &node))
    }

    fn release(&self, lease: &Lease, seen: Changes, rest: Rest) -> StoreFuture<'_, ()> {
        let lease = lease.clone();
        change(self, move |store| store.release(&lease, seen, rest))
    }

    fn changes(&self, node: &NodeLease) -> ChangeStream {
        match self.call(|store| store.changes(node)) {
            Ok(inner) => Box::pin(GuardedChanges(Some(inner))),
            Err(panic) => Box::pin(stream::iter([Err(Error::Failed(cause(panic)))])),
        }
    }

    fn due(&self, most: usize, pools: Vec<String>) -> StoreFuture<'_, Vec<Due>> {
        change(self, move |store| store.due(most, pools))
    }

    fn unpark(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        let session = session.clone();
        change(self, move |store| store.unpark(&session))
    }

    fn tenures(&self, session: &SessionId) -> StoreFuture<'_, Vec<Tenure>> {
        let session = session.clone();
        look(self, move |store| store.tenures(&session))
    }

    fn image(&self, session: &SessionId) -> StoreFuture<'_, SessionImage> {
        let session = session.clone();
        look(self, move |store| store.image(&session))
    }

    fn restore(&self, image: SessionImage, over: OverImage) -> StoreFuture<'_, SessionRow> {
        change(self, |store| store.restore(image, over))
    }

    fn append(&self, lease: &Lease, writes: Vec<Write>, class: Durability) -> StoreFuture<'_, Appended> {
        let lease = lease.clone();
        change(self, move |store| store.append(&lease, writes, class))
    }

    fn read(&self, session: &SessionId, from: u64, most: usize) -> StoreFuture<'_, Page> {
        let session = session.clone();
        look(self, move |store| store.read(&session, from, most))
    }

    fn check(&self, session: &SessionId) -> StoreFuture<'_, ChainCheck> {
        let session = session.clone();
        look(self, move |store| store.check(&session))
    }

    fn push(&self, session: &SessionId, push: NewItem) -> StoreFuture<'_, Pushed> {
        let session = session.clone();
        change(self, move |store| store.push(&session, push))
    }

    fn inbox(&self, session: &SessionId) -> StoreFuture<'_, Vec<InboxRow>> {
        let session = session.clone();
        look(self, move |store| store.inbox(&session))
    }

    fn accepted(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Option<Timestamp>> {
        let session = session.clone();
        look(self, move |store| store.accepted(&session, item))
    }

    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn> {
        let session = session.clone();
        change(self, move |store| store.withdraw(&session, item))
    }

    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64> {
        let session = session.clone();
        change(self, move |store| store.ask_stop(&session, stop))
    }

    fn ask_stops(&self, among: Among, stop: StopIntent) -> StoreFuture<'_, u64> {
        change(self, move |store| store.ask_stops(among, stop))
    }

    fn stops(&self, session: &SessionId, after: u64) -> StoreFuture<'_, Vec<StopRow>> {
        let session = session.clone();
        look(self, move |store| store.stops(&session, after))
    }

    fn decide(&self, session: &SessionId, decision: NewDecision) -> StoreFuture<'_, DecisionResult> {
        let session = session.clone();
        change(self, move |store| store.decide(&session, decision))
    }

    fn approval(&self, session: &SessionId, id: &ApprovalId) -> StoreFuture<'_, Option<ApprovalRow>> {
        let (session, id) = (session.clone(), id.clone());
        look(self, move |store| store.approval(&session, &id))
    }

    fn approvals(&self, session: &SessionId) -> StoreFuture<'_, Vec<ApprovalRow>> {
        let session = session.clone();
        look(self, move |store| store.approvals(&session))
    }

    fn open_approvals(
        &self,
        most: usize,
        after: Option<ApprovalCursor>,
    ) -> StoreFuture<'_, Vec<SessionApproval>> {
        look(self, move |store| store.open_approvals(most, after))
    }

    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes> {
        let session = session.clone();
        look(self, move |store| store.notice(&session))
    }
}
