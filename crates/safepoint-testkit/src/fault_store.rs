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

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use safepoint::{
    ids::{ApprovalId, NodeId, SessionId},
    raw::store::{
        Among, Appended, ApprovalCursor, ApprovalRow, Cause, ChainCheck, Change, ChangeStream, Changes,
        DecisionResult, Due, Durability, InboxRow, Lease, Leaving, NewDecision, NewItem, NewSession,
        NodeLease, NodeRow, NodeState, OverImage, Page, PageCursor, Pushed, Rest, SessionApproval,
        SessionImage, StopIntent, StopRow, StoreFuture, Tenure, Withdrawn, Write,
    },
    store::{Error, NewNode, SessionRow, Store},
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
    /// It is done, and its answer waits at this gate.
    Late(ToolGate),
    /// It is done, and no answer ever comes.
    Mute,
    /// From here on nothing is done and nothing answered, until the store [comes
    /// back](FaultStore::come_back).
    Away,
    /// From here on nothing is done, and each request fails after so long, as one whose connection was cut: the
    /// answer is that its result is unknown. Until the store [comes back](FaultStore::come_back).
    Cut(Duration),
    /// From here on no beat of a node is done or answered, and everything else goes well, until the store [comes
    /// back](FaultStore::come_back).
    Lapse,
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
    at: Arc<AtomicUsize>,
    /// The operations of one name that still go well before the one that does not.
    /// Held for one look, so that one operation is the one. Never held together with `names`.
    named: Mutex<Option<(&'static str, usize)>>,
    fault: OperationFault,
    done: Arc<AtomicUsize>,
    /// Held for one name or one copy.
    names: Mutex<BTreeSet<&'static str>>,
}

impl FaultStore {
    /// Everything goes well but the operation of this number, counted from 0.
    pub fn over(inner: Arc<dyn Store>, at: usize, fault: OperationFault) -> Self {
        let (at, done) = (Arc::new(AtomicUsize::new(at)), Arc::default());
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
            OperationFault::Lapse => (number >= at && name == "beat").then_some(OperationFault::Away),
            stays @ (OperationFault::GoneBefore
            | OperationFault::Away
            | OperationFault::Cut(_)
            | OperationFault::Slow(_)) => (number >= at).then(|| stays.clone()),
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
                OperationFault::Away | OperationFault::Lapse => std::future::pending().await,
                OperationFault::Cut(time) => {
                    tokio::time::sleep(time).await;
                    Err(Error::Unknown(Cause::new("the connection was cut here")))
                }
                OperationFault::Mute => {
                    lost(ask(inner).await);
                    std::future::pending().await
                }
                OperationFault::Slow(time) => {
                    tokio::time::sleep(time).await;
                    ask(inner).await
                }
                OperationFault::Late(gate) => {
                    let answer = ask(inner).await;
                    gate.pass().await;
                    answer
                }
                OperationFault::Held(gate) => {
                    gate.pass().await;
                    ask(inner).await
                }
                OperationFault::Panics(_) => panic!("a panic was wanted at the poll of {name}"),
            }
        })
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

/// What others do, as long as the store is there to tell it.
struct FaultyChanges {
    inner: ChangeStream,
    fault: OperationFault,
    at: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
}

impl FaultyChanges {
    fn is_met(&self) -> bool {
        // SeqCst: see `FaultStore::at`.
        self.done.load(Ordering::SeqCst) > self.at.load(Ordering::SeqCst)
    }

    async fn next(&mut self) -> Option<Result<Change, Error>> {
        const LOOK: Duration = Duration::from_millis(10);
        let change = self.inner.next().await?;
        while matches!(self.fault, OperationFault::Away | OperationFault::Cut(_)) && self.is_met() {
            tokio::time::sleep(LOOK).await;
        }
        let is_gone = matches!(self.fault, OperationFault::GoneBefore | OperationFault::GoneAfter);
        Some(if is_gone && self.is_met() { Err(Error::Gone) } else { change })
    }
}

/// The answer is lost, even if it is a refusal.
fn lost<T>(answer: Result<T, Error>) {
    drop(answer);
}

/// Methods of the trait, handed on: before the semicolon stands what a method borrows.
macro_rules! hand_on {
    ($($name:ident($($of:ident: $key:ty),*; $($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $name(&self, $($of: &$key,)* $($arg: $type),*) -> StoreFuture<'_, $answer> {
            $(let $of = $of.clone();)*
            self.ask(stringify!($name), move |store| store.$name($(&$of,)* $($arg),*))
        }
    )*};
}

impl Store for FaultStore {
    hand_on! {
        create(; session: NewSession) -> SessionRow;
        open(session: SessionId;) -> SessionRow;
        list(; most: usize, older: Option<PageCursor>) -> Vec<SessionRow>;
        remove(session: SessionId;) -> ();
        remove_if_at_rest(session: SessionId;) -> bool;
        join(; node: NewNode) -> NodeLease;
        beat(node: NodeLease; load: u32) -> NodeState;
        leave(node: NodeId; how: Leaving) -> ();
        nodes(;) -> Vec<NodeRow>;
        bury(;) -> Vec<NodeId>;
        acquire(session: SessionId, node: NodeLease;) -> Lease;
        release(lease: Lease; seen: Changes, rest: Rest) -> ();
        due(; most: usize, pools: Vec<String>) -> Vec<Due>;
        unpark(session: SessionId;) -> ();
        tenures(session: SessionId;) -> Vec<Tenure>;
        image(session: SessionId;) -> SessionImage;
        restore(; image: SessionImage, over: OverImage) -> SessionRow;
        append(lease: Lease; writes: Vec<Write>, class: Durability) -> Appended;
        read(session: SessionId; from: u64, most: usize) -> Page;
        check(session: SessionId;) -> ChainCheck;
        push(session: SessionId; push: NewItem) -> Pushed;
        inbox(session: SessionId;) -> Vec<InboxRow>;
        accepted(session: SessionId; item: u64) -> Option<Timestamp>;
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

    /// What comes is held back while the store is away or cut off. It is no operation, and has no number.
    fn changes(&self, node: &NodeLease) -> ChangeStream {
        lock(&self.names).insert("changes");
        let (at, done) = (Arc::clone(&self.at), Arc::clone(&self.done));
        let changes = FaultyChanges { inner: self.inner.changes(node), fault: self.fault.clone(), at, done };
        Box::pin(stream::unfold(changes, |mut changes| async move {
            let change = changes.next().await?;
            Some((change, changes))
        }))
    }
}
