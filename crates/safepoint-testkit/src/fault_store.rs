//! A store in which one operation fails: for tests of code that builds on stores.

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{
        Arc, Mutex,
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

use crate::{sync::lock, tool_gate::ToolGate};

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
        *lock(&self.named) = Some((name, well));
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
        lock(&self.names).clone()
    }

    /// Whether it is this one that goes wrong, of those of its name.
    fn is_named(&self, name: &'static str) -> bool {
        let mut named = lock(&self.named);
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

    /// What is wrong with this operation, if anything is.
    fn met(&self, name: &'static str) -> Option<OperationFault> {
        // SeqCst: see `at`. One update, so that each operation has its own number.
        let number = self.done.fetch_add(1, Ordering::SeqCst);
        if self.is_named(name) {
            self.at.store(number, Ordering::SeqCst);
        }
        let at = self.at.load(Ordering::SeqCst);
        match &self.fault {
            // It is gone already.
            OperationFault::GoneAfter if number > at => Some(OperationFault::GoneBefore),
            stays @ (OperationFault::GoneBefore | OperationFault::Away | OperationFault::Slow(_)) => {
                (number >= at).then(|| stays.clone())
            }
            once => (number == at).then(|| once.clone()),
        }
    }

    fn ask<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        ask: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let inner = &*self.inner;
        lock(&self.names).insert(name);
        let Some(fault) = self.met(name) else { return ask(inner) };
        if let OperationFault::Panics(At::ItsCall) = fault {
            panic!("a panic was wanted at the call of {name}");
        }
        if let OperationFault::Panics(At::ItsDrop) = fault {
            return Box::pin(Dropping { answer: ask(inner), name });
        }
        Box::pin(async move {
            match fault {
                OperationFault::Refused => Err(Error::Failed(Cause::new("a fault was wanted here"))),
                OperationFault::Full => Err(Error::Full(Cause::new("no space is left here"))),
                OperationFault::GoneBefore => Err(Error::Gone),
                OperationFault::Unknown => {
                    lost(ask(inner).await);
                    Err(Error::Unknown(Cause::new("a fault was wanted here")))
                }
                OperationFault::GoneAfter => {
                    lost(ask(inner).await);
                    Err(Error::Gone)
                }
                OperationFault::Away => std::future::pending().await,
                OperationFault::Mute => {
                    lost(ask(inner).await);
                    std::future::pending().await
                }
                OperationFault::Slow(time) => {
                    tokio::time::sleep(time).await;
                    ask(inner).await
                }
                OperationFault::Held(gate) => {
                    gate.pass().await;
                    ask(inner).await
                }
                OperationFault::Panics(_) => panic!("a panic was wanted at the poll of {name}"),
            }
        })
    }

    /// The same about this session or lease.
    fn ask_of<'a, K: Clone + Send + 'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        of: &K,
        ask: impl FnOnce(&'a dyn Store, &K) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let of = of.clone();
        self.ask(name, move |store| ask(store, &of))
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
        self.ask_of("open", session, move |store, session| store.open(session))
    }

    fn list(&self, most: usize, older: Option<PageCursor>) -> StoreFuture<'_, Vec<SessionRow>> {
        self.ask("list", move |store| store.list(most, older))
    }

    fn remove(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        self.ask_of("remove", session, move |store, session| store.remove(session))
    }

    fn acquire(&self, session: &SessionId, owner: OwnerProcess, ttl: Duration) -> StoreFuture<'_, Lease> {
        self.ask_of("acquire", session, move |store, session| store.acquire(session, owner, ttl))
    }

    fn renew(&self, lease: &Lease) -> StoreFuture<'_, Lease> {
        self.ask_of("renew", lease, move |store, lease| store.renew(lease))
    }

    fn release(&self, lease: &Lease) -> StoreFuture<'_, ()> {
        self.ask_of("release", lease, move |store, lease| store.release(lease))
    }

    fn append(&self, lease: &Lease, writes: Vec<Write>, class: Durability) -> StoreFuture<'_, Appended> {
        self.ask_of("append", lease, move |store, lease| store.append(lease, writes, class))
    }

    fn read(&self, session: &SessionId, from: u64, most: usize) -> StoreFuture<'_, Page> {
        self.ask_of("read", session, move |store, session| store.read(session, from, most))
    }

    fn check(&self, session: &SessionId) -> StoreFuture<'_, ChainCheck> {
        self.ask_of("check", session, move |store, session| store.check(session))
    }

    fn push(&self, session: &SessionId, push: NewItem) -> StoreFuture<'_, Pushed> {
        self.ask_of("push", session, move |store, session| store.push(session, push))
    }

    fn inbox(&self, session: &SessionId) -> StoreFuture<'_, Vec<InboxRow>> {
        self.ask_of("inbox", session, move |store, session| store.inbox(session))
    }

    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn> {
        self.ask_of("withdraw", session, move |store, session| store.withdraw(session, item))
    }

    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64> {
        self.ask_of("ask_stop", session, move |store, session| store.ask_stop(session, stop))
    }

    fn stops(&self, session: &SessionId, after: u64) -> StoreFuture<'_, Vec<StopRow>> {
        self.ask_of("stops", session, move |store, session| store.stops(session, after))
    }

    fn decide(&self, session: &SessionId, decision: NewDecision) -> StoreFuture<'_, DecisionResult> {
        self.ask_of("decide", session, move |store, session| store.decide(session, decision))
    }

    fn approval(&self, session: &SessionId, id: &ApprovalId) -> StoreFuture<'_, Option<ApprovalRow>> {
        let id = id.clone();
        self.ask_of("approval", session, move |store, session| store.approval(session, &id))
    }

    fn approvals(&self, session: &SessionId) -> StoreFuture<'_, Vec<ApprovalRow>> {
        self.ask_of("approvals", session, move |store, session| store.approvals(session))
    }

    fn stamp(&self) -> StoreFuture<'_, ChangeMark> {
        self.ask("stamp", |store| store.stamp())
    }

    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes> {
        self.ask_of("notice", session, move |store, session| store.notice(session))
    }
}
