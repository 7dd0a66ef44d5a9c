//! A session's journal in a store: what its owner records, and what another owner reads.
//!
//! **Invariants**: every write needs a lease that is valid for a margin more; what a fact changes in the
//! inbox or in an approval is written in the same transaction as the fact.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::{Either, pending, select};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::node::Member;
use crate::{
    contract::store::{
        self, Appended, Chain, Changes, Durability, InboxRow, ItemState, Lease, NewItem, Pushed, Record,
        Rest, SessionRow, Store, Write,
    },
    sync::{Mutex, clock},
    value::{
        ids::{SessionId, TurnId},
        message::UserMessage,
    },
};

mod approvals;
mod beginning;
mod checkpoint;
mod deadline;
mod hold;
mod inherited;
mod line;
mod look;
mod numbers;
mod past;
mod read;
mod recover;
mod turn_log;

pub(super) use approvals::reconcile;
pub(super) use beginning::{begin_with, continued, given};
use deadline::{Deadline, TimeOver};
pub(super) use hold::{acquired, later, rest_after};
pub(super) use inherited::InheritedTurn;
use line::Grown;
pub(super) use line::JournalLine;
pub(super) use look::{looked, opened};
use numbers::ItemNumbers;
pub(super) use past::{LaterCall, Past, past};
pub use read::{JournalFact, JournalStep, read_journal, read_journal_from};
pub(super) use recover::{LeftTurn, Recovered, recover};
pub(super) use turn_log::TurnLog;

/// A lease must be valid for this much longer before anything begins (S7.4).
const MARGIN: Duration = Duration::from_millis(500);

/// How long the store may take for what is recorded outside a run.
const APPEND: Duration = Duration::from_secs(5);

/// How much longer the store may take after that, while it is asked whether the write happened.
const GRACE: Duration = Duration::from_secs(2);

/// How often it is asked.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// How many records are read at once.
const PAGE: usize = 1024;

/// The most characters of a title.
const TITLE: usize = 80;

/// The first line that says something, as a title.
fn title_of(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default().chars().take(TITLE).collect()
}

/// Waits for the store, within a bound.
pub(super) async fn in_time<T>(
    asked: impl Future<Output = Result<T, store::Error>>,
) -> Result<T, store::Error> {
    timeout(APPEND, asked).await.unwrap_or_else(|_elapsed| Err(silent()))
}

/// Like [`in_time`], for writes that a run waits for. A machine that slept finds the time over and the answer
/// on its way, so there is an extra period (S3.4).
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

/// The owner's lease on its session.
pub(super) struct Journal {
    node: Arc<Member>,
    session: SessionId,
    lease: Lease,
    /// Wakes the watcher of the store.
    changed: Arc<Notify>,
    /// What of others was seen. Held to copy or to replace it.
    seen: Mutex<SeenChanges>,
    /// Grows only. The position of the next record, or one before it.
    head: AtomicU64,
    /// Whether it has a title.
    has_title: AtomicBool,
    /// Held for one look-up or one entry; the three tables change together. No other lock is taken under it.
    numbers: Mutex<ItemNumbers>,
    /// Of the writes of a run.
    deadline: Deadline,
}

/// Called with the end of the lease, as the time since the machine's start.
pub(super) type OnLease = Arc<dyn Fn(Duration) + Send + Sync>;

impl Journal {
    pub(super) fn new(node: Arc<Member>, row: &SessionRow, lease: Lease, on_lease: Option<OnLease>) -> Self {
        let changed = node.seat(&row.id, on_lease);
        Self {
            node,
            session: row.id.clone(),
            lease,
            changed,
            seen: Mutex::default(),
            head: AtomicU64::new(row.head),
            has_title: AtomicBool::new(!row.title.is_empty()),
            numbers: Mutex::default(),
            deadline: Deadline::default(),
        }
    }

    /// The session's title, from the input of its first turn; `None` if it has one.
    pub(super) fn title(&self, turn: TurnId, input: &UserMessage) -> Option<Write> {
        // Relaxed: the driver alone reads and writes it.
        let is_wanted = !self.has_title.load(Ordering::Relaxed) && turn == TurnId::new(1);
        let title = title_of(&input.text);
        (is_wanted && !title.is_empty()).then_some(Write::Title(title))
    }

    /// Sets the session's title.
    pub(super) async fn rename(&self, title: &str) -> Result<(), store::Error> {
        self.must_not_have_lapsed()?;
        let title = title_of(title);
        let is_title = !title.is_empty();
        in_time(self.store().append(&self.lease, vec![Write::Title(title)], Durability::Durable)).await?;
        // Relaxed: the driver alone reads and writes it.
        self.has_title.store(is_title, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        self.node.store()
    }

    pub(super) fn node(&self) -> &Arc<Member> {
        &self.node
    }

    pub(super) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Others did nothing beyond this that was not handled.
    pub(super) fn saw(&self, changes: Changes) {
        let mut seen = self.seen.lock();
        if !seen.is_all {
            seen.changes = changes;
        }
    }

    /// What is looked at from here on is handled by none: it is for the next owner.
    pub(super) fn sees_no_more(&self) {
        self.seen.lock().is_all = true;
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Fails once nothing may be written under the lease, and names the session.
    fn must_not_have_lapsed(&self) -> Result<(), store::Error> {
        self.node.is_usable().map_err(|error| self.as_own(error))
    }

    /// What befell the node, as it is said of this session.
    pub(super) fn as_own(&self, error: store::Error) -> store::Error {
        match error {
            store::Error::NodeLapsed(_) => store::Error::Lapsed(self.session.clone()),
            other => other,
        }
    }

    /// Releases the session, which wants an owner again by then. If the store does not accept that, it is retried as long as the lease
    /// could lock others out.
    pub(super) async fn release(&self, rest: Rest) -> Result<(), store::Error> {
        let seen = hold::seen_at_end(self).await;
        hold::released(&self.node, &self.lease, (seen, rest)).await?;
        self.node.part(&self.session).await;
        Ok(())
    }

    /// Retries the release until it succeeds or the lease has ended.
    pub(super) async fn release_with_retries(self: Arc<Self>, rest: Rest) {
        let seen = hold::seen_at_end(&self).await;
        hold::give_back(&self.node, &self.lease, (seen, rest)).await;
        // If that failed: a node for this session alone beats no more, and is buried.
        self.node.part(&self.session).await;
    }

    pub(super) async fn append(&self, writes: Vec<Write>, class: Durability) -> Result<u64, store::Error> {
        let appended = self.append_within(writes, class, APPEND).await;
        // A turn begins or ends: no timer outlasts it.
        self.deadline.rest();
        appended
    }

    /// Writes all records and returns the position of the first. A late answer does not yet mean unknown: the
    /// store is asked whether the write happened, so that a machine that slept can continue (S3.4).
    pub(super) async fn append_within(
        &self,
        writes: Vec<Write>,
        class: Durability,
        limit: Duration,
    ) -> Result<u64, store::Error> {
        within(limit, self.hold()).await?;
        let (from, written) = (self.head(), first_record(&self.session, &writes));
        let mut appending = pin!(self.store().append(&self.lease, writes, class));
        let place = match self.deadline.within(limit, &mut appending).await {
            Ok(appended) => self.grown(appended?),
            Err(TimeOver) => {
                let asking = pin!(self.find(from, written));
                // Either future may finish first: both have seen the same, and the dropped one has changed
                // nothing that is not in the store.
                match timeout(limit.min(GRACE), select(appending, asking)).await {
                    Ok(Either::Left((appended, _))) => self.grown(appended?),
                    Ok(Either::Right((place, _))) => place,
                    Err(_elapsed) => return Err(silent()),
                }
            }
        };
        // What this announces begins now, however long the store took: the lease must be valid for it.
        within(limit, self.hold()).await?;
        Ok(place)
    }

    /// Puts an item into the inbox. As with [`append_within`](Self::append_within), a missing answer does not
    /// yet mean unknown: the store is asked whether the item is there. One that was there before is another sender's.
    pub(super) async fn push(&self, item: NewItem) -> Result<Pushed, store::Error> {
        let (digest, client_id) = (item.digest.clone(), item.client_id.clone());
        let began = store::truncate_to_micros(clock::now());
        let is_it = |row: &InboxRow| {
            let is_same = row.digest == digest && row.client_id == client_id && row.at >= began;
            is_same && row.state == ItemState::Waiting && self.item_of(row.number).is_none()
        };
        match in_time(self.store().push(&self.session, item)).await {
            Err(error) if error.is_uncertain() => {
                let found = timeout(GRACE, self.find_item(is_it)).await;
                found.ok().flatten().map(Pushed::Accepted).ok_or(error)
            }
            pushed => pushed,
        }
    }

    /// Looks for an item until it is found. `None` if the store has gone.
    async fn find_item(&self, is_it: impl Fn(&InboxRow) -> bool) -> Option<u64> {
        loop {
            match self.store().inbox(&self.session).await {
                Ok(rows) => {
                    if let Some(row) = rows.iter().find(|row| is_it(row)) {
                        return Some(row.number);
                    }
                }
                Err(store::Error::Gone) => return None,
                Err(_passing) => {}
            }
            sleep(ASK_AGAIN).await;
        }
    }

    fn grown(&self, appended: Appended) -> u64 {
        // Relaxed: the number orders nothing else, and `fetch_max` keeps it from going back if appends end out of order.
        self.head.fetch_max(appended.next, Ordering::Relaxed);
        appended.first
    }

    /// Looks for these records at `from` or later until they are found: by position and, since the store
    /// verifies the chain as it reads, by the chain. Never returns if there is nothing to find.
    async fn find(&self, from: u64, written: Option<(Chain, u64)>) -> u64 {
        let Some((first, records)) = written else { return pending().await };
        loop {
            if let Ok(Some(place)) = self.place_of(from, &first).await {
                // Relaxed, as in `grown`.
                self.head.fetch_max(place + records, Ordering::Relaxed);
                return place;
            }
            sleep(ASK_AGAIN).await;
        }
    }

    /// The position of the record with this mark. Each record has its time and owner, so no two are alike.
    async fn place_of(&self, from: u64, sought: &Chain) -> Result<Option<u64>, store::Error> {
        let mut from = Some(from);
        while let Some(position) = from {
            let page = self.store().read(&self.session, position, PAGE).await?;
            let is_it = |record: &Record| mark(&self.session, record) == *sought;
            let found = page.entries.iter().find(|entry| entry.record.as_ref().is_ok_and(is_it));
            if let Some(entry) = found {
                return Ok(Some(entry.position));
            }
            from = page.next;
        }
        Ok(None)
    }

    /// Ensures that the lease is valid for a margin more (S7.4).
    async fn hold(&self) -> Result<(), store::Error> {
        self.must_not_have_lapsed()?;
        if self.lease.node().left() >= MARGIN {
            return Ok(());
        }
        self.node.renew().await.map_err(|error| self.as_own(error))
    }

    /// Records for readers of the journal that nothing of a turn is alive, or what is. Nothing depends on
    /// this record; if the write fails, readers do not know, and it has no position: the same failure is handled with
    /// the records that matter.
    pub(super) async fn record_quiet(&self, turn: TurnId, survivors: Vec<String>) -> Option<u64> {
        let line = JournalLine::Quiet { turn, at: clock::now(), survivors };
        self.append(vec![line.write().ok()?], Durability::Recorded).await.ok()
    }

    /// The position of the next record, or one before it.
    pub(super) fn head(&self) -> u64 {
        // Relaxed: a lower one only makes a later reader read more.
        self.head.load(Ordering::Relaxed)
    }
}

/// What of others an owner has seen, and whether it handles no more of it.
#[derive(Debug, Default)]
struct SeenChanges {
    changes: Changes,
    is_all: bool,
}

/// What to look for when it is unknown whether a write happened: the mark of the first record, since records may be
/// large, and how many records there are.
fn first_record(session: &SessionId, writes: &[Write]) -> Option<(Chain, u64)> {
    let mut records = writes.iter().filter_map(|write| match write {
        Write::Record(record) => Some(record),
        _ => None,
    });
    let first = mark(session, records.next()?);
    Some((first, 1 + records.count() as u64))
}

/// The mark of a record: its checksum, as if it were the session's first.
fn mark(session: &SessionId, record: &Record) -> Chain {
    Chain::of(session).then(0, record)
}
