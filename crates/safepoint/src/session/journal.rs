//! A session's journal in a store: what its owner records, and what another owner finds there.
//!
//! **Invariants**: nothing is written without a lease that holds for a margin more; what a fact changes of the inbox
//! or of an approval is written in the same transaction as the fact.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    ids::{ItemId, SessionId, TurnId},
    message::UserMessage,
    store::{self, Appended, Class, Lease, SessionRow, Store, Write},
};

mod line;
mod recover;
mod turn_log;
mod unasked;

pub(super) use line::Line;
pub(super) use recover::{Cut, Found, LeftTurn, recover};
pub(super) use turn_log::TurnLog;
pub(super) use unasked::put_right;

/// A lease must hold for so much more before anything begins (S7.4).
const MARGIN: Duration = Duration::from_millis(500);

/// How long the store may take for what is recorded outside a run.
const APPEND: Duration = Duration::from_secs(5);

/// The most characters of a title.
const TITLE: usize = 80;

/// How long a lease holds without being renewed.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// Waits for the store, but not for ever.
pub(super) async fn in_time<T>(
    asked: impl Future<Output = Result<T, store::Error>>,
) -> Result<T, store::Error> {
    let late = |_elapsed| store::Error::Unknown(store::Cause::new("the store did not answer in time"));
    tokio::time::timeout(APPEND, asked).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

/// The owner's hold on its session.
pub(super) struct Journal {
    store: Arc<dyn Store>,
    session: SessionId,
    lease: Mutex<Lease>,
    head: AtomicU64,
    title: Title,
    numbers: Mutex<Numbers>,
}

/// Whether the session has one. Exhaustive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Title {
    Given,
    Open,
}

/// Which number of the store is which item here.
#[derive(Default)]
struct Numbers {
    of: HashMap<ItemId, u64>,
    items: HashMap<u64, ItemId>,
    /// Those that nobody has looked for in the store yet.
    fresh: Vec<u64>,
}

impl Journal {
    pub(super) fn new(store: Arc<dyn Store>, row: &SessionRow, lease: Lease) -> Self {
        Self {
            store,
            session: row.id.clone(),
            lease: Mutex::new(lease),
            head: AtomicU64::new(row.head),
            title: if row.title.is_empty() { Title::Open } else { Title::Given },
            numbers: Mutex::default(),
        }
    }

    /// What the session is called, after what its first turn was given; nothing if it has a title.
    pub(super) fn title(&self, turn: TurnId, said: &UserMessage) -> Option<Write> {
        let line = said.text.lines().map(str::trim).find(|line| !line.is_empty());
        let is_wanted = self.title == Title::Open && turn == TurnId::new(1);
        line.filter(|_| is_wanted).map(|line| Write::Title(line.chars().take(TITLE).collect()))
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(super) fn lease(&self) -> Lease {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Holds on to the session.
    pub(super) async fn renew(&self) -> Result<(), store::Error> {
        let renewed = self.store.renew(&self.lease()).await?;
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(())
    }

    pub(super) async fn release(&self) -> Result<(), store::Error> {
        self.store.release(&self.lease()).await
    }

    pub(super) async fn append(&self, writes: Vec<Write>, class: Class) -> Result<Appended, store::Error> {
        self.hold().await?;
        let appended = self.store.append(&self.lease(), writes, class).await?;
        self.head.fetch_max(appended.next, Ordering::Relaxed);
        // What this announces begins now, however long the store took: the lease holds for it, or it does not begin.
        self.hold().await?;
        Ok(appended)
    }

    /// The same, for a caller with no deadline of its own: it hears of it in time, and then nobody knows (S3.4).
    pub(super) async fn append_in_time(
        &self,
        writes: Vec<Write>,
        class: Class,
    ) -> Result<Appended, store::Error> {
        in_time(self.append(writes, class)).await
    }

    /// Makes sure that the lease holds for a margin more (S7.4).
    async fn hold(&self) -> Result<(), store::Error> {
        if self.lease().left() < MARGIN { self.renew().await } else { Ok(()) }
    }

    /// Tells those who look back that nothing of a turn is alive, or what is. Nothing depends on it: where it cannot be
    /// written, they do not know.
    pub(super) async fn tell_quiet(&self, turn: TurnId, survivors: Vec<String>) {
        let line = Line::Quiet { turn, at: Timestamp::now(), survivors };
        if let Ok(write) = line.write()
            && self.append_in_time(vec![write], Class::Recorded).await.is_err()
        {
            // The owner meets the same trouble with what matters.
        }
    }

    /// The position of the next record, or one before it.
    pub(super) fn head(&self) -> u64 {
        // Relaxed: a lower one only makes a later reader read more.
        self.head.load(Ordering::Relaxed)
    }

    /// Remembers which item of the store this is.
    pub(super) fn number(&self, item: ItemId, number: u64) {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.of.insert(item, number);
        numbers.fresh.push(number);
        numbers.items.insert(number, item);
    }

    /// Items that are in the store since the last time this was asked.
    pub(super) fn take_fresh(&self) -> Vec<u64> {
        std::mem::take(&mut self.numbers.lock().unwrap_or_else(PoisonError::into_inner).fresh)
    }

    pub(super) fn number_of(&self, item: ItemId) -> Option<u64> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).of.get(&item).copied()
    }

    pub(super) fn item_of(&self, number: u64) -> Option<ItemId> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).items.get(&number).copied()
    }
}
