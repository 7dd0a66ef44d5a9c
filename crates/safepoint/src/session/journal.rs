//! A session's journal in a store: what its owner records, and what another owner finds there.
//!
//! **Invariants**: nothing is written without a lease that holds for a margin more; what a fact changes of the inbox
//! or of an approval is written in the same transaction as the fact.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::{Either, pending, select};
use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    contract::store::{self, Appended, Chain, Durability, Lease, Record, SessionRow, Store, Write},
    sync::{Mutex, callback},
    value::{
        ids::{ItemId, SessionId, TurnId},
        message::UserMessage,
    },
};

mod line;
mod recover;
mod turn_log;
mod unasked;

pub(super) use line::Line;
pub(super) use recover::{Found, LeftTurn, recover};
pub(super) use turn_log::TurnLog;
pub(super) use unasked::put_right;

/// A lease must hold for so much more before anything begins (S7.4).
const MARGIN: Duration = Duration::from_millis(500);

/// How long the store may take for what is recorded outside a run.
const APPEND: Duration = Duration::from_secs(5);

/// How much longer the store may take once that is over, while it is asked whether it was written.
const GRACE: Duration = Duration::from_secs(2);

/// How often it is asked.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// How soon a session that could not be given back is given back again.
const AGAIN: Duration = Duration::from_millis(100);

/// How many records are read at once.
const PAGE: usize = 1024;

/// The most characters of a title.
const TITLE: usize = 80;

/// How long a lease holds without being renewed.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// Waits for the store, but not for ever.
pub(super) async fn in_time<T>(
    asked: impl Future<Output = Result<T, store::Error>>,
) -> Result<T, store::Error> {
    timeout(APPEND, asked).await.unwrap_or_else(|_elapsed| Err(silent()))
}

/// The same for what a run waits for. A machine that slept finds the time over and the answer on its way, so there is some more
/// (S3.4).
async fn within<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, store::Error>>,
) -> Result<T, store::Error> {
    let mut asked = pin!(asked);
    match timeout(limit, &mut asked).await {
        Ok(answer) => answer,
        Err(_elapsed) => timeout(limit.min(GRACE), asked).await.unwrap_or_else(|_elapsed| Err(silent())),
    }
}

fn silent() -> store::Error {
    store::Error::Unknown(store::Cause::new("the store did not answer in time"))
}

/// The owner's hold on its session.
pub(super) struct Journal {
    store: Arc<dyn Store>,
    session: SessionId,
    lease: Mutex<Lease>,
    head: AtomicU64,
    /// Whether the lease was over before it could be renewed: nothing is written any more.
    lapsed: AtomicBool,
    heard: Option<OnLease>,
    has_title: bool,
    numbers: Mutex<Numbers>,
}

/// Is told until when the lease holds, as the time since the machine's start.
pub(super) type OnLease = Arc<dyn Fn(Duration) + Send + Sync>;

/// Which number of the store is which item here.
#[derive(Default)]
struct Numbers {
    of: HashMap<ItemId, u64>,
    items: HashMap<u64, ItemId>,
    /// Those that nobody has looked for in the store yet.
    fresh: Vec<u64>,
}

impl Journal {
    pub(super) fn new(store: Arc<dyn Store>, row: &SessionRow, lease: Lease, heard: Option<OnLease>) -> Self {
        tell(heard.as_ref(), &lease);
        Self {
            store,
            session: row.id.clone(),
            lease: Mutex::new(lease),
            head: AtomicU64::new(row.head),
            lapsed: AtomicBool::new(false),
            heard,
            has_title: !row.title.is_empty(),
            numbers: Mutex::default(),
        }
    }

    /// What the session is called, after what its first turn was given; nothing if it has a title.
    pub(super) fn title(&self, turn: TurnId, said: &UserMessage) -> Option<Write> {
        let line = said.text.lines().map(str::trim).find(|line| !line.is_empty());
        let is_wanted = !self.has_title && turn == TurnId::new(1);
        line.filter(|_| is_wanted).map(|line| Write::Title(line.chars().take(TITLE).collect()))
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(super) fn lease(&self) -> Lease {
        self.lease.lock().clone()
    }

    /// Holds on to the session.
    pub(super) async fn renew(&self) -> Result<(), store::Error> {
        self.must_not_have_lapsed()?;
        let renewed = self.store.renew(&self.lease()).await?;
        // Before anything begins under it: what is told ends the session's commands.
        tell(self.heard.as_ref(), &renewed);
        *self.lease.lock() = renewed;
        Ok(())
    }

    /// The lease was over before it could be renewed. Nothing is written under it any more, also if the store can be reached
    /// again (S7.14).
    pub(super) fn lapse(&self) -> store::Error {
        self.lapsed.store(true, Ordering::SeqCst);
        store::Error::Lapsed(self.session.clone())
    }

    fn must_not_have_lapsed(&self) -> Result<(), store::Error> {
        if self.lapsed.load(Ordering::SeqCst) {
            return Err(store::Error::Lapsed(self.session.clone()));
        }
        Ok(())
    }

    /// Gives the session back. If the store does not take that, it is tried again as long as the lease could lock anybody out.
    pub(super) async fn give_back(&self) -> Result<(), store::Error> {
        let lease = self.lease();
        let given = in_time(self.store.release(&lease)).await;
        match given {
            // It was given back before, and the answer got lost; or it is somebody else's.
            Err(store::Error::Fenced { .. } | store::Error::NoSession(_)) => Ok(()),
            given => given,
        }
    }

    /// The same, again and again, until it is given back or over.
    pub(super) async fn give_back_at_last(self: Arc<Self>) {
        let ends = Instant::now() + self.lease().ttl();
        while let Err(error) = self.give_back().await {
            if matches!(error, store::Error::Gone) || Instant::now() >= ends {
                return;
            }
            sleep(AGAIN).await;
        }
    }

    pub(super) async fn append(&self, writes: Vec<Write>, class: Durability) -> Result<u64, store::Error> {
        self.append_within(writes, class, APPEND).await
    }

    /// Writes all of it and says where its first record stands. An answer that is late is not yet unknown: the store is asked
    /// whether it was written, so that a machine that slept goes on (S3.4).
    pub(super) async fn append_within(
        &self,
        writes: Vec<Write>,
        class: Durability,
        limit: Duration,
    ) -> Result<u64, store::Error> {
        within(limit, self.hold()).await?;
        let (from, written) = (self.head(), Sought::of(&self.session, &writes));
        let mut appending = pin!(self.store.append(&self.lease(), writes, class));
        let place = match timeout(limit, &mut appending).await {
            Ok(appended) => self.grown(appended?),
            Err(_elapsed) => {
                let asking = pin!(self.find(from, written));
                // Whoever is first has seen the same; the other one has changed nothing that is not in the store.
                match timeout(limit.min(GRACE), select(appending, asking)).await {
                    Ok(Either::Left((appended, _))) => self.grown(appended?),
                    Ok(Either::Right((place, _))) => place,
                    Err(_elapsed) => return Err(silent()),
                }
            }
        };
        // What this announces begins now, however long the store took: the lease holds for it, or it does not begin.
        within(limit, self.hold()).await?;
        Ok(place)
    }

    fn grown(&self, appended: Appended) -> u64 {
        self.head.fetch_max(appended.next, Ordering::Relaxed);
        appended.first
    }

    /// Looks for these records at `from` or after it, until they are there: by their place and, since the store verifies it
    /// as it reads, by the chain. Never ends where there is nothing that could be found.
    async fn find(&self, from: u64, written: Option<Sought>) -> u64 {
        let Some(sought) = written else { return pending().await };
        loop {
            if let Ok(Some(place)) = self.place_of(from, &sought).await {
                self.head.fetch_max(place + sought.records, Ordering::Relaxed);
                return place;
            }
            sleep(ASK_AGAIN).await;
        }
    }

    /// Where this record stands. Each says when and whose it is, so that there are no two alike.
    async fn place_of(&self, from: u64, sought: &Sought) -> Result<Option<u64>, store::Error> {
        let mut from = Some(from);
        while let Some(position) = from {
            let page = self.store.read(&self.session, position, PAGE).await?;
            let is_it = |record: &Record| mark(&self.session, record) == sought.first;
            let found = page.entries.iter().find(|entry| entry.record.as_ref().is_ok_and(is_it));
            if let Some(entry) = found {
                return Ok(Some(entry.position));
            }
            from = page.next;
        }
        Ok(None)
    }

    /// Makes sure that the lease holds for a margin more (S7.4).
    async fn hold(&self) -> Result<(), store::Error> {
        self.must_not_have_lapsed()?;
        if self.lease().left() < MARGIN { self.renew().await } else { Ok(()) }
    }

    /// Tells those who look back that nothing of a turn is alive, or what is. Nothing depends on it: where it cannot be
    /// written, they do not know.
    pub(super) async fn tell_quiet(&self, turn: TurnId, survivors: Vec<String>) {
        let line = Line::Quiet { turn, at: Timestamp::now(), survivors };
        if let Ok(write) = line.write()
            && self.append(vec![write], Durability::Recorded).await.is_err()
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
        let mut numbers = self.numbers.lock();
        numbers.of.insert(item, number);
        numbers.fresh.push(number);
        numbers.items.insert(number, item);
    }

    /// Items that are in the store since the last time this was asked.
    pub(super) fn take_fresh(&self) -> Vec<u64> {
        std::mem::take(&mut self.numbers.lock().fresh)
    }

    pub(super) fn number_of(&self, item: ItemId) -> Option<u64> {
        self.numbers.lock().of.get(&item).copied()
    }

    pub(super) fn item_of(&self, number: u64) -> Option<ItemId> {
        self.numbers.lock().items.get(&number).copied()
    }
}

fn tell(heard: Option<&OnLease>, lease: &Lease) {
    if let (Some(heard), Some(until)) = (heard, lease.until())
        && callback::call(|| heard(until)).is_err()
    {
        // Whoever listens has failed; the session goes on, and its lease is as it is.
    }
}

/// What is looked for where it is not known whether it was written: not the records, which may be large, but a mark of the
/// first one.
struct Sought {
    first: Chain,
    records: u64,
}

impl Sought {
    fn of(session: &SessionId, writes: &[Write]) -> Option<Self> {
        let mut records = writes.iter().filter_map(|write| match write {
            Write::Record(record) => Some(record),
            _ => None,
        });
        let first = mark(session, records.next()?);
        Some(Self { first, records: 1 + records.count() as u64 })
    }
}

/// By what a record is known again: its checksum, as if it were the session's first.
fn mark(session: &SessionId, record: &Record) -> Chain {
    Chain::of(session).then(0, record)
}
