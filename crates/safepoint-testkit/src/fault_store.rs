//! A store in which one operation fails: for tests of code that builds on stores.

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

use safepoint::{
    ids::{ApprovalId, SessionId},
    raw::store::{
        Appended, ApprovalRow, Cause, ChainCheck, ChangeMark, Changes, DecisionResult, Durability, InboxRow,
        Lease, NewDecision, NewItem, NewSession, Page, PageCursor, Pushed, StopIntent, StopRow, StoreFuture,
        Withdrawn, Write,
    },
    store::{Error, OwnerProcess, SessionRow, Store},
};

use crate::tool_gate::ToolGate;

/// What goes wrong with an operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OperationFault {
    /// It fails, and is not done.
    Refused,
    /// There is no room: it fails, and is not done.
    Full,
    /// It is done, and the answer says that the result is unknown.
    Unknown,
    /// The store is gone before it is done, and stays so: the process has died, for all that can be seen.
    GoneBefore,
    /// The store is gone after it was done, and stays so.
    GoneAfter,
    /// It waits at this gate, and is done then.
    Held(ToolGate),
    /// It is done, and no answer ever comes.
    Mute,
    /// From here on nothing is done and nothing answered, until the store [comes
    /// back](FaultStore::come_back).
    Away,
    /// From here on everything is done, and takes so long, until the store [comes
    /// back](FaultStore::come_back).
    Slow(Duration),
    /// It panics, at this moment.
    Panics(At),
}

/// When an operation panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum At {
    /// As it is called: it is not done.
    ItsCall,
    /// As its answer is polled: it is not done.
    ItsPoll,
    /// As its answer is dropped: it is done.
    ItsDrop,
}

/// A store that hands everything on to another one, but for one operation.
#[derive(Debug)]
pub struct FaultStore {
    inner: Arc<dyn Store>,
    /// Which operation goes wrong. This and `done` are SeqCst: an operation takes its number, and then looks
    /// here. Arm it while no operation begins, so that the next one is meant.
    at: AtomicUsize,
    /// The operations of one name that still go well before the one that does not.
    /// Held for one look, so that one operation is the one. Never held together with `names`.
    named: Mutex<Option<(&'static str, usize)>>,
    fault: OperationFault,
    done: AtomicUsize,
    /// Held for one name or one copy.
    names: Mutex<BTreeSet<&'static str>>,
}

enum Course {
    Well,
    Refused,
    Full,
    Unknown,
    Gone,
    GoneAfter,
    Held(ToolGate),
    Mute,
    Away,
    Slow(Duration),
    Panics(At),
}

impl FaultStore {
    /// Everything goes well but the operation of this number, counted from 0.
    pub fn over(inner: Arc<dyn Store>, at: usize, fault: OperationFault) -> Self {
        let (at, done) = (AtomicUsize::new(at), AtomicUsize::new(0));
        Self { inner, at, named: Mutex::default(), fault, done, names: Mutex::default() }
    }

    /// Everything goes well until it is [armed](Self::arm).
    pub fn unarmed(inner: Arc<dyn Store>, fault: OperationFault) -> Self {
        Self::over(inner, usize::MAX, fault)
    }

    /// From now on the next operation is the one that goes wrong.
    pub fn arm(&self) {
        // Two steps: an operation that begins between them goes well, and where one alone is meant, it was that one.
        self.at.store(self.asked(), Ordering::SeqCst);
    }

    /// From now on the operation of this name fails, after this many of that name succeed.
    pub fn arm_named(&self, name: &'static str, well: usize) {
        *self.named.lock().unwrap_or_else(PoisonError::into_inner) = Some((name, well));
    }

    /// Whether the operation that goes wrong was asked.
    pub fn was_met(&self) -> bool {
        // SeqCst: see `at`.
        self.asked() > self.at.load(Ordering::SeqCst)
    }

    /// From now on everything goes well; what was asked before is never answered.
    pub fn come_back(&self) {
        // SeqCst: see `at`.
        self.at.store(usize::MAX, Ordering::SeqCst);
    }

    /// How many operations were asked so far.
    pub fn asked(&self) -> usize {
        // SeqCst: see `at`.
        self.done.load(Ordering::SeqCst)
    }

    /// Which operations were asked so far, by the names of the trait's methods.
    pub fn names(&self) -> BTreeSet<&'static str> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it is this one that goes wrong, of those of its name.
    fn is_named(&self, name: &'static str) -> bool {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *named {
            Some((wanted, 0)) if *wanted == name => {
                *named = None;
                true
            }
            Some((wanted, well)) if *wanted == name => {
                *well -= 1;
                false
            }
            _ => false,
        }
    }

    fn course(&self, name: &'static str) -> Course {
        // SeqCst: see `at`. One update, so that each operation has its own number.
        let number = self.done.fetch_add(1, Ordering::SeqCst);
        if self.is_named(name) {
            self.at.store(number, Ordering::SeqCst);
        }
        let at = self.at.load(Ordering::SeqCst);
        match &self.fault {
            OperationFault::GoneBefore if number >= at => Course::Gone,
            OperationFault::GoneAfter if number > at => Course::Gone,
            OperationFault::GoneAfter if number == at => Course::GoneAfter,
            OperationFault::Refused if number == at => Course::Refused,
            OperationFault::Full if number == at => Course::Full,
            OperationFault::Unknown if number == at => Course::Unknown,
            OperationFault::Held(gate) if number == at => Course::Held(gate.clone()),
            OperationFault::Mute if number == at => Course::Mute,
            OperationFault::Away if number >= at => Course::Away,
            OperationFault::Slow(time) if number >= at => Course::Slow(*time),
            OperationFault::Panics(when) if number == at => Course::Panics(*when),
            OperationFault::Refused
            | OperationFault::Full
            | OperationFault::Unknown
            | OperationFault::GoneBefore
            | OperationFault::GoneAfter
            | OperationFault::Held(_)
            | OperationFault::Mute
            | OperationFault::Away
            | OperationFault::Slow(_)
            | OperationFault::Panics(_) => Course::Well,
        }
    }

    fn ask<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        ask: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let inner = &*self.inner;
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
        match self.course(name) {
            Course::Well => ask(inner),
            Course::Refused => Box::pin(async { Err(Error::Failed(Cause::new("a fault was wanted here"))) }),
            Course::Full => Box::pin(async { Err(Error::Full(Cause::new("no space is left here"))) }),
            Course::Gone => Box::pin(async { Err(Error::Gone) }),
            Course::Unknown => Box::pin(async move {
                lost(ask(inner).await);
                Err(Error::Unknown(Cause::new("a fault was wanted here")))
            }),
            Course::GoneAfter => Box::pin(async move {
                lost(ask(inner).await);
                Err(Error::Gone)
            }),
            Course::Away => Box::pin(std::future::pending()),
            Course::Mute => Box::pin(async move {
                lost(ask(inner).await);
                std::future::pending().await
            }),
            Course::Slow(time) => Box::pin(async move {
                tokio::time::sleep(time).await;
                ask(inner).await
            }),
            Course::Held(gate) => Box::pin(async move {
                gate.pass().await;
                ask(inner).await
            }),
            Course::Panics(At::ItsCall) => panic!("a panic was wanted at the call of {name}"),
            Course::Panics(At::ItsPoll) => {
                Box::pin(async move { panic!("a panic was wanted at the poll of {name}") })
            }
            Course::Panics(At::ItsDrop) => Box::pin(Dropping { answer: ask(inner), name }),
        }
    }
}

/// An answer that comes as it should, and panics as it is dropped.
struct Dropping<'a, T> {
    answer: StoreFuture<'a, T>,
    name: &'static str,
}

impl<T> Future for Dropping<'_, T> {
    type Output = Result<T, Error>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.answer.as_mut().poll(cx)
    }
}

impl<T> Drop for Dropping<'_, T> {
    fn drop(&mut self) {
        assert!(thread::panicking(), "a panic was wanted at the drop of {}", self.name);
    }
}

/// The answer is lost, even if it is a refusal.
fn lost<T>(answer: Result<T, Error>) {
    drop(answer);
}

impl Store for FaultStore {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionRow> {
        self.ask("create", |store| store.create(session))
    }

    fn open(&self, session: &SessionId) -> StoreFuture<'_, SessionRow> {
        let session = session.clone();
        self.ask("open", move |store| Box::pin(async move { store.open(&session).await }))
    }

    fn list(&self, most: usize, older: Option<PageCursor>) -> StoreFuture<'_, Vec<SessionRow>> {
        self.ask("list", move |store| store.list(most, older))
    }

    fn remove(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        let session = session.clone();
        self.ask("remove", move |store| Box::pin(async move { store.remove(&session).await }))
    }

    fn acquire(&self, session: &SessionId, owner: OwnerProcess, ttl: Duration) -> StoreFuture<'_, Lease> {
        let session = session.clone();
        self.ask("acquire", move |store| Box::pin(async move { store.acquire(&session, owner, ttl).await }))
    }

    fn renew(&self, lease: &Lease) -> StoreFuture<'_, Lease> {
        let lease = lease.clone();
        self.ask("renew", move |store| Box::pin(async move { store.renew(&lease).await }))
    }

    fn release(&self, lease: &Lease) -> StoreFuture<'_, ()> {
        let lease = lease.clone();
        self.ask("release", move |store| Box::pin(async move { store.release(&lease).await }))
    }

    fn append(&self, lease: &Lease, writes: Vec<Write>, class: Durability) -> StoreFuture<'_, Appended> {
        let lease = lease.clone();
        self.ask("append", move |store| Box::pin(async move { store.append(&lease, writes, class).await }))
    }

    fn read(&self, session: &SessionId, from: u64, most: usize) -> StoreFuture<'_, Page> {
        let session = session.clone();
        self.ask("read", move |store| Box::pin(async move { store.read(&session, from, most).await }))
    }

    fn check(&self, session: &SessionId) -> StoreFuture<'_, ChainCheck> {
        let session = session.clone();
        self.ask("check", move |store| Box::pin(async move { store.check(&session).await }))
    }

    fn push(&self, session: &SessionId, push: NewItem) -> StoreFuture<'_, Pushed> {
        let session = session.clone();
        self.ask("push", move |store| Box::pin(async move { store.push(&session, push).await }))
    }

    fn inbox(&self, session: &SessionId) -> StoreFuture<'_, Vec<InboxRow>> {
        let session = session.clone();
        self.ask("inbox", move |store| Box::pin(async move { store.inbox(&session).await }))
    }

    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn> {
        let session = session.clone();
        self.ask("withdraw", move |store| Box::pin(async move { store.withdraw(&session, item).await }))
    }

    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64> {
        let session = session.clone();
        self.ask("ask_stop", move |store| Box::pin(async move { store.ask_stop(&session, stop).await }))
    }

    fn stops(&self, session: &SessionId, after: u64) -> StoreFuture<'_, Vec<StopRow>> {
        let session = session.clone();
        self.ask("stops", move |store| Box::pin(async move { store.stops(&session, after).await }))
    }

    fn decide(&self, session: &SessionId, decision: NewDecision) -> StoreFuture<'_, DecisionResult> {
        let session = session.clone();
        self.ask("decide", move |store| Box::pin(async move { store.decide(&session, decision).await }))
    }

    fn approval(&self, session: &SessionId, id: &ApprovalId) -> StoreFuture<'_, Option<ApprovalRow>> {
        let (session, id) = (session.clone(), id.clone());
        self.ask("approval", move |store| Box::pin(async move { store.approval(&session, &id).await }))
    }

    fn approvals(&self, session: &SessionId) -> StoreFuture<'_, Vec<ApprovalRow>> {
        let session = session.clone();
        self.ask("approvals", move |store| Box::pin(async move { store.approvals(&session).await }))
    }

    fn stamp(&self) -> StoreFuture<'_, ChangeMark> {
        self.ask("stamp", |store| store.stamp())
    }

    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes> {
        let session = session.clone();
        self.ask("notice", move |store| Box::pin(async move { store.notice(&session).await }))
    }
}
