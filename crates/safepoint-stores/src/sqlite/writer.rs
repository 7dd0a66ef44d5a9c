//! The one thread that writes: requests that wait while a transaction is under way share the next one (group commit).
//!
//! **Invariants:** no caller gets an answer before the transaction's end is known. A request that fails takes nothing of the
//! others with it: it is undone alone, or, where SQLite undid all, each is tried again by itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use rusqlite::Connection;
use safepoint::{
    raw::store::{Cause, Durability, StoreFuture},
    store::Error,
};
use tokio::sync::{oneshot, watch};

use super::{
    fail::{self, Fail},
    options::{Moment, SqliteOptions},
    turn::{Until, Who, WriteTurn},
};

mod job;

pub(super) use job::Stake;
use job::{Job, WriteRequest};

/// Requests that share a transaction at most.
const MOST_SHARED: usize = 256;
/// Commits after which what lies beside the file is moved into it.
const CHECKPOINT_AFTER: u32 = 256;

/// Asks the thread that writes. The thread ends with the last request after this is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    /// Or why nothing can be written.
    thread: Result<Handle, Error>,
    counted: Arc<Counted>,
    /// Counts the commits of what anybody may ask.
    nudges: watch::Receiver<u64>,
}

#[derive(Debug)]
struct Handle {
    jobs: mpsc::Sender<Box<dyn Job>>,
    thread: thread::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Counted {
    /// Written by the writing thread alone, read by anyone.
    all: AtomicU64,
    durable: AtomicU64,
}

/// How often was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commits {
    /// Transactions committed.
    pub all: u64,
    /// Of these, those that waited for the disk itself: one sync each.
    pub durable: u64,
}

impl Writer {
    pub(super) fn start(
        connection: Result<Connection, Error>,
        turn: Option<WriteTurn>,
        options: SqliteOptions,
    ) -> Result<Self, Error> {
        let counted = Arc::<Counted>::default();
        let (nudge, nudges) = watch::channel(0);
        let connection = match connection {
            Ok(connection) => connection,
            Err(why) => return Ok(Self { thread: Err(why), counted, nudges }),
        };
        let (jobs, asked) = mpsc::channel();
        let thread = Thread {
            connection,
            turn,
            options,
            held: 0,
            synced: None,
            since_checkpoint: 0,
            counted: Arc::clone(&counted),
            nudge,
        };
        let builder = thread::Builder::new().name("safepoint-store-writer".into());
        let thread =
            builder.spawn(move || thread.run(&asked)).map_err(|why| Error::Failed(Cause::new(why)))?;
        Ok(Self { thread: Ok(Handle { jobs, thread }), counted, nudges })
    }

    /// Waits until every request is settled and the file is closed.
    pub(super) fn close(self) {
        let Ok(Handle { jobs, thread }) = self.thread else { return };
        drop(jobs);
        if thread.join().is_err() {
            // The caller of the request that panicked already got the answer that the store is gone.
        }
    }

    /// The work may be done more than once; what it did before was undone then.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        (class, stake): (Durability, Stake),
        work: impl FnMut(&Connection) -> Result<T, Fail> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let (reply, reported) = oneshot::channel();
        let jobs = match &self.thread {
            Ok(Handle { jobs, .. }) => jobs,
            Err(why) => {
                let why = why.clone();
                return Box::pin(async move { Err(why) });
            }
        };
        if jobs.send(Box::new(WriteRequest { class, stake, work, answer: None, reply })).is_err() {
            // What could not be sent is dropped, and with it `reply`: `reported` says that the store is gone.
        }
        Box::pin(async move { reported.await.unwrap_or(Err(Error::Gone)) })
    }

    /// Changes when something was committed that anybody may ask.
    pub(super) fn nudges(&self) -> watch::Receiver<u64> {
        self.nudges.clone()
    }

    pub(super) fn commits(&self) -> Commits {
        // Relaxed: the two counts order nothing else. A commit between the two reads may be in only one of them.
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Commits { all: read(&self.counted.all), durable: read(&self.counted.durable) }
    }
}

/// Why a shared transaction did not come to its end.
enum Trouble {
    /// No request was done, and each alone would end the same.
    NotBegun(Error),
    /// Everybody's part was undone.
    Undone(Error),
    /// It may be committed.
    Uncertain(Error),
}

impl Trouble {
    fn reported(self) -> Error {
        match self {
            Self::NotBegun(error) | Self::Undone(error) | Self::Uncertain(error) => error,
        }
    }
}

/// Whether a transaction has anything to commit.
enum Written {
    Some,
    /// Its only request was refused.
    Nothing,
}

struct Thread {
    connection: Connection,
    turn: Option<WriteTurn>,
    options: SqliteOptions,
    /// How many sessions are held through this store.
    held: usize,
    /// The class that the connection is set to.
    synced: Option<Durability>,
    since_checkpoint: u32,
    counted: Arc<Counted>,
    nudge: watch::Sender<u64>,
}

impl Thread {
    fn run(mut self, asked: &mpsc::Receiver<Box<dyn Job>>) {
        while let Ok(first) = asked.recv() {
            let mut batch = vec![first];
            batch.extend(asked.try_iter().take(MOST_SHARED - 1));
            self.settle(batch);
            if self.options.probe(Moment::Reported).is_err() {
                // Nothing is under way that could fail here.
            }
            self.checkpoint();
        }
    }

    fn settle(&mut self, mut batch: Vec<Box<dyn Job>>) {
        let ending = self.share(&mut batch);
        if batch.len() > 1 && matches!(ending, Err(Trouble::Undone(_))) {
            return batch.into_iter().for_each(|job| self.settle(vec![job]));
        }
        let is_full = matches!(ending, Err(Trouble::Undone(Error::Full(_))));
        let ending = ending.map_err(Trouble::reported);
        for job in batch {
            let lacks_room = is_full || ending.is_ok() && job.lacks_room();
            if !(lacks_room && self.make_room()) {
                job.tell(ending.clone());
                continue;
            }
            let mut again = [job];
            let ending = self.share(&mut again);
            let [job] = again;
            job.tell(ending.map_err(Trouble::reported));
        }
    }

    /// Moves what lies beside the file into it, so that its place is written over: that needs no room on the disk. Whether it
    /// could be.
    fn make_room(&self) -> bool {
        let moved = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        self.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], moved).is_ok_and(|waits| waits == 0)
    }

    /// One transaction for all of these, once it is this process's turn.
    fn share(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Trouble> {
        let who = self.who(batch);
        let until = self.options.until(who);
        let mut turn = self.turn.take();
        let shared = match turn.as_mut().map(|turn| turn.take(who, &until)).transpose() {
            Ok(held) => {
                let shared = self.share_in_turn(batch, &until);
                drop(held);
                shared
            }
            Err(busy) => Err(Trouble::NotBegun(busy)),
        };
        self.turn = turn;
        if shared.is_ok() {
            self.count_held(batch);
        }
        if batch.iter().any(|job| job.stake() == Stake::None && job.went_well()) {
            // Sent also where the commit's result is unknown: a listener looks, and finds what is there.
            self.nudge.send_modify(|commits| *commits += 1);
        }
        shared
    }

    /// A holder's write waits for no newcomer, least of all a newcomer in the same process.
    fn who(&self, batch: &[Box<dyn Job>]) -> Who {
        let is_holders = |stake| matches!(stake, Stake::Holds | Stake::GivesBack);
        if self.held > 0 || batch.iter().map(|job| job.stake()).any(is_holders) {
            Who::Holder
        } else {
            Who::Comer
        }
    }

    fn count_held(&mut self, batch: &[Box<dyn Job>]) {
        for job in batch.iter().filter(|job| job.went_well()) {
            match job.stake() {
                Stake::Takes => self.held += 1,
                Stake::GivesBack => self.held = self.held.saturating_sub(1),
                Stake::None | Stake::Holds => {}
            }
        }
    }

    fn share_in_turn(&mut self, batch: &mut [Box<dyn Job>], until: &Until) -> Result<(), Trouble> {
        let class = batch.iter().map(|job| job.class()).max().unwrap_or(Durability::Recorded);
        self.begin(class, until).map_err(Trouble::NotBegun)?;
        match self.write(batch) {
            Ok(Written::Some) => {}
            Ok(Written::Nothing) => {
                self.undo();
                return Ok(());
            }
            Err(error) => {
                self.undo();
                return Err(Trouble::Undone(error));
            }
        }
        if let Err(error) = self.run_statement("COMMIT") {
            self.undo();
            let error = fail::reported_of_commit(error);
            return Err(if error.is_uncertain() {
                Trouble::Uncertain(error)
            } else {
                Trouble::Undone(error)
            });
        }
        self.count(class);
        let unsure = |why| Trouble::Uncertain(Error::Unknown(Cause::new(why)));
        self.options.probe(Moment::Committed).map_err(unsure)
    }

    fn begin(&mut self, class: Durability, until: &Until) -> Result<(), Error> {
        self.set(class).map_err(fail::reported)?;
        self.connection.busy_timeout(until.left()).map_err(fail::reported)?;
        self.probe(Moment::Begin)?;
        self.run_statement("BEGIN IMMEDIATE").map_err(fail::reported)
    }

    /// Each in its own savepoint, so that a failed one is undone alone. One that is alone needs none.
    fn write(&self, batch: &mut [Box<dyn Job>]) -> Result<Written, Error> {
        let run = |sql| self.run_statement(sql).map_err(fail::reported);
        let is_shared = batch.len() > 1;
        for job in &mut *batch {
            if is_shared {
                run("SAVEPOINT one")?;
            }
            job.run(&self.connection);
            if self.connection.is_autocommit() {
                let why = "the transaction was undone by the failure of one of its requests";
                return Err(Error::Failed(Cause::new(why)));
            }
            if is_shared {
                if !job.went_well() {
                    run("ROLLBACK TO one")?;
                }
                run("RELEASE one")?;
            }
            self.probe(Moment::Written)?;
        }
        self.probe(Moment::Commit)?;
        let is_nothing = !is_shared && batch.iter().all(|job| !job.went_well());
        Ok(if is_nothing { Written::Nothing } else { Written::Some })
    }

    /// Runs a statement of the transaction, which is kept prepared.
    fn run_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn undo(&self) {
        if !self.connection.is_autocommit() && self.connection.execute_batch("ROLLBACK").is_err() {
            // SQLite has undone it already; the next `BEGIN` would say otherwise.
        }
    }

    fn probe(&self, moment: Moment) -> Result<(), Error> {
        self.options.probe(moment).map_err(|why| Error::Failed(Cause::new(why)))
    }

    /// A commit syncs the log, and with it whatever was committed before without a sync.
    fn set(&mut self, class: Durability) -> rusqlite::Result<()> {
        if self.synced == Some(class) {
            return Ok(());
        }
        let synchronous = match class {
            Durability::Recorded => "normal",
            Durability::Durable => "full",
        };
        self.connection.pragma_update(None, "synchronous", synchronous)?;
        self.synced = Some(class);
        Ok(())
    }

    fn count(&mut self, class: Durability) {
        self.since_checkpoint += 1;
        // Relaxed: only this thread writes them, and the answer to a caller, sent later, orders its own commit before
        // it.
        self.counted.all.fetch_add(1, Ordering::Relaxed);
        if class == Durability::Durable {
            self.counted.durable.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// After every caller has an answer: no caller waits for this.
    fn checkpoint(&mut self) {
        if self.since_checkpoint < CHECKPOINT_AFTER {
            return;
        }
        self.since_checkpoint = 0;
        if self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).is_err() {
            // It is tried again later; until then the log grows.
        }
    }
}
