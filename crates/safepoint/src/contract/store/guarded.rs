//! The one place where the engine calls a store: a panic in it becomes an error, in any method and at any
//! poll (S2.16).

use std::{sync::Arc, time::Duration};

use super::{
    Appended, ApprovalRow, Cause, ChainCheck, ChangeMark, Changes, DecisionResult, Durability, Error,
    InboxRow, Lease, NewDecision, NewItem, NewSession, OwnerProcess, Page, PageCursor, Pushed, SessionRow,
    StopIntent, StopRow, Store, StoreFuture, Withdrawn, Write,
};
use crate::{
    sync::callback::{self, Foreign, Panicked},
    value::ids::{ApprovalId, SessionId},
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

    fn acquire(&self, session: &SessionId, owner: OwnerProcess, ttl: Duration) -> StoreFuture<'_, Lease> {
        let session = session.clone();
        change(self, move |store| store.acquire(&session, owner, ttl))
    }

    fn renew(&self, lease: &Lease) -> StoreFuture<'_, Lease> {
        let lease = lease.clone();
        change(self, move |store| store.renew(&lease))
    }

    fn release(&self, lease: &Lease) -> StoreFuture<'_, ()> {
        let lease = lease.clone();
        change(self, move |store| store.release(&lease))
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

    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn> {
        let session = session.clone();
        change(self, move |store| store.withdraw(&session, item))
    }

    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64> {
        let session = session.clone();
        change(self, move |store| store.ask_stop(&session, stop))
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

    fn stamp(&self) -> StoreFuture<'_, ChangeMark> {
        look(self, |store| store.stamp())
    }

    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes> {
        let session = session.clone();
        look(self, move |store| store.notice(&session))
    }
}
