//! The store in one SQLite file: many processes may have it open; in each, one thread writes and two read.
//!
//! **Invariants:** every change is a job of the writer's thread, in a transaction that it may share with others; what
//! is read comes from connections that cannot write.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::Connection;
use safepoint::{
    ids::{ApprovalId, NodeId, SessionId},
    raw::store::{
        Among, Appended, ApprovalCursor, ApprovalRow, ChainCheck, ChangeStream, Changes, DecisionResult, Due,
        Durability, Environment, InboxRow, Lease, Leaving, NewDecision, NewItem, NewSession, NodeLease,
        NodeRow, NodeState, OverImage, Page, PageCursor, Pushed, Rest, SessionApproval, SessionImage,
        StopIntent, StopRow, StoreFuture, Tenure, Withdrawn, Write,
    },
    store::{Error, NewNode, SessionRow, Store},
};

mod approvals;
mod asked;
mod column;
mod due;
mod fail;
mod file;
mod image;
mod inbox;
mod journal;
mod leases;
mod nodes;
mod options;
mod reader;
mod records;
mod schema;
mod sessions;
mod stops;
mod turn;
mod writer;

use asked::AskedAt;
use fail::Fail;
pub use options::{Moment, Probe, SqliteOptions};
use reader::ReaderThread;
pub use writer::Commits;
use writer::{Stake, Writer};

/// A store in one file.
///
/// ```
/// use std::sync::Arc;
/// use safepoint::{Agent, Session, session::ChatPlanner, store::OwnerProcess};
/// use safepoint_stores::SqliteStore;
/// /// The conversation `trip`: it continues where it was, also after a crash.
/// async fn open(agent: Agent) -> Result<Session<String>, Box<dyn std::error::Error>> {
///     let store = Arc::new(SqliteStore::open("sessions.db")?);
///     Ok(Session::builder(ChatPlanner::new(agent)).open(store, "trip".into(), OwnerProcess::here()).await?)
/// }
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    outside: Environment,
    writer: Writer,
    /// For questions that are answered at once.
    short: ReaderThread,
    /// For walks through journals.
    long: ReaderThread,
}

impl SqliteStore {
    /// Opens the store in this file, and makes it if there is none. Blocks while it does.
    ///
    /// # Errors
    /// [`Error::Newer`] if a later release wrote it; else why the file cannot be used. A file that can only be read
    /// is opened for reading, and each write says [`Error::ReadOnly`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// As [`SqliteStore::open`], with options.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, Error> {
        let file = file::File::open(path.as_ref(), &options)?;
        let short = ReaderThread::start("safepoint-store-short", file.reader()?)?;
        let long = ReaderThread::start("safepoint-store-long", file.reader()?)?;
        let outside = options.outside.clone();
        let writer = Writer::start(file.writer, file.turn, options)?;
        Ok(Self { outside, writer, short, long })
    }

    /// How often was committed by this handle, and how often of these to the disk itself.
    #[must_use]
    pub fn commits(&self) -> Commits {
        self.writer.commits()
    }

    /// What is wrong with the file itself, in SQLite's words: beside the records, which [`Store::check`] verifies, it holds the
    /// tables and indexes by which they are found. None: nothing. Takes as long as reading the whole file.
    ///
    /// # Errors
    /// [`Error::Gone`] if the store is closed.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    #[must_use]
    pub fn check_file(&self) -> StoreFuture<'static, Option<String>> {
        self.long.ask(|connection| {
            let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
            Ok(match found {
                Ok(sound) if sound == "ok" => None,
                Ok(flaw) => Some(flaw),
                Err(error) => Some(error.to_string()),
            })
        })
    }

    /// Removes a session in which nothing was said: it has no record, and no item waits in it. Returns whether that was so. No
    /// other process can add anything between the look and the removal.
    ///
    /// # Errors
    /// [`Error::NoSession`], and [`Error::Held`] where an owner that may be alive has it.
    ///
    /// # Cancel safety
    /// It may have been removed.
    ///
    /// # Examples
    /// ```
    /// # async fn tidy(store: safepoint_stores::SqliteStore) -> Result<(), safepoint::store::Error> {
    /// if store.remove_if_unused(&"trip".into()).await? {
    ///     println!("nothing was said in it");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn remove_if_unused(&self, session: &SessionId) -> StoreFuture<'static, bool> {
        self.remove_if(Durability::Recorded, session, sessions::is_unused)
    }

    /// Removes a session of which this is so, in one transaction with the look, and returns whether it was.
    fn remove_if(
        &self,
        class: Durability,
        session: &SessionId,
        is_so: fn(&Connection, &SessionId) -> Result<bool, Fail>,
    ) -> StoreFuture<'static, bool> {
        let (id, outside) = (session.clone(), self.outside.clone());
        self.write(class, move |connection, _| {
            leases::must_be_free(connection, &id, &outside)?;
            let is_so = is_so(connection, &id)?;
            if is_so {
                sessions::remove(connection, &id)?;
            }
            Ok(is_so)
        })
    }

    /// Waits until every request is settled and the file is closed; the last one to close it tidies it up. Blocks while
    /// it does. A store that is dropped does the same later, without being waited for.
    pub fn close(self) {
        let Self { writer, short, long, .. } = self;
        short.close();
        long.close();
        // The last one: a connection that cannot write could not tidy up.
        writer.close();
    }

    /// What anybody may ask.
    fn write<T: Send + 'static>(
        &self,
        class: Durability,
        work: impl FnMut(&Connection, Timestamp) -> Result<T, Fail> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.write_as(Stake::None, class, work)
    }

    fn write_as<T: Send + 'static>(
        &self,
        stake: Stake,
        class: Durability,
        mut work: impl FnMut(&Connection, Timestamp) -> Result<T, Fail> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let clock = self.outside.clone();
        self.writer.ask((class, stake), move |connection| work(connection, clock.now()))
    }
}

impl Store for SqliteStore {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionRow> {
        let is_empty = session.items.is_empty() && session.records.is_empty();
        let class = if is_empty { Durability::Recorded } else { Durability::Durable };
        self.write(class, move |connection, now| {
            let row = sessions::create(connection, &session, now)?;
            journal::begin(connection, &session, now)?;
            // A refusal undoes the session too: each request has its own savepoint.
            inbox::begin(connection, &session, now)?;
            Ok(row)
        })
    }

    fn open(&self, session: &SessionId) -> StoreFuture<'_, SessionRow> {
        let id = session.clone();
        self.short.ask(move |connection| sessions::open(connection, &id))
    }

    fn list(&self, most: usize, older: Option<PageCursor>) -> StoreFuture<'_, Vec<SessionRow>> {
        self.short.ask(move |connection| sessions::list(connection, most, older.as_ref()))
    }

    fn remove(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        let removed = self.remove_if(Durability::Durable, session, |_, _| Ok(true));
        Box::pin(async { removed.await.map(drop) })
    }

    fn remove_if_at_rest(&self, session: &SessionId) -> StoreFuture<'_, bool> {
        self.remove_if(Durability::Durable, session, sessions::is_at_rest)
    }

    fn join(&self, node: NewNode) -> StoreFuture<'_, NodeLease> {
        let (outside, asked) = (self.outside.clone(), AskedAt::now());
        self.write(Durability::Durable, move |connection, _| {
            let began = asked.waited();
            nodes::join(connection, &node, &outside)?;
            Ok(NodeLease::new(node.id.clone(), node.ttl, began))
        })
    }

    fn beat(&self, node: &NodeLease, load: u32) -> StoreFuture<'_, NodeState> {
        let (node, outside, asked) = (node.clone(), self.outside.clone(), AskedAt::now());
        let beaten = self.write_as(Stake::Holds, Durability::Recorded, {
            let id = node.id().clone();
            move |connection, _| {
                let began = asked.waited();
                Ok((began, nodes::beat(connection, &id, load, &outside)?))
            }
        });
        Box::pin(async move {
            let (began, state) = beaten.await?;
            node.renewed(began);
            Ok(state)
        })
    }

    fn leave(&self, node: &NodeId, how: Leaving) -> StoreFuture<'_, ()> {
        let node = node.clone();
        self.write(Durability::Recorded, move |connection, now| nodes::leave(connection, &node, how, now))
    }

    fn nodes(&self) -> StoreFuture<'_, Vec<NodeRow>> {
        self.short.ask(nodes::list)
    }

    fn bury(&self) -> StoreFuture<'_, Vec<NodeId>> {
        let outside = self.outside.clone();
        let dead = self.short.ask(move |connection| nodes::dead(connection, &outside));
        Box::pin(async move {
            // Most looks find none, and write nothing.
            if dead.await?.is_empty() {
                return Ok(Vec::new());
            }
            let outside = self.outside.clone();
            let bury = move |connection: &Connection, now| nodes::bury(connection, &outside, now);
            self.write(Durability::Durable, bury).await
        })
    }

    fn acquire(&self, session: &SessionId, node: &NodeLease) -> StoreFuture<'_, Lease> {
        let (id, node, outside) = (session.clone(), node.clone(), self.outside.clone());
        self.write_as(Stake::Takes, Durability::Recorded, move |connection, _| {
            let epoch = leases::acquire(connection, &id, node.id(), &outside)?;
            Ok(Lease::new(id.clone(), epoch, node.clone()))
        })
    }

    fn release(&self, lease: &Lease, seen: Changes, rest: Rest) -> StoreFuture<'_, ()> {
        let lease = lease.clone();
        self.write_as(Stake::GivesBack, Durability::Recorded, move |connection, now| {
            leases::release(connection, &lease, (seen, rest), now)
        })
    }

    fn changes(&self, node: &NodeLease) -> ChangeStream {
        let first = self.short.ask(due::mark);
        due::changes(node.id().clone(), self.short.downgrade(), self.writer.nudges(), first)
    }

    fn due(&self, most: usize, pools: Vec<String>) -> StoreFuture<'_, Vec<Due>> {
        let outside = self.outside.clone();
        let pools = serde_json::Value::from(pools).to_string();
        let of = pools.clone();
        let is_any = self.short.ask(move |connection| due::is_any(connection, &of, outside.now()));
        Box::pin(async move {
            if !is_any.await? {
                return Ok(Vec::new());
            }
            let due = move |connection: &Connection, now| due::due(connection, most, &pools, now);
            self.write(Durability::Recorded, due).await
        })
    }

    fn unpark(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        let id = session.clone();
        self.write(Durability::Durable, move |connection, now| due::unpark(connection, &id, now))
    }

    fn tenures(&self, session: &SessionId) -> StoreFuture<'_, Vec<Tenure>> {
        let id = session.clone();
        self.short.ask(move |connection| due::tenures(connection, &id))
    }

    fn image(&self, session: &SessionId) -> StoreFuture<'_, SessionImage> {
        let id = session.clone();
        self.long.ask(move |connection| image::image(connection, &id))
    }

    fn restore(&self, image: SessionImage, over: OverImage) -> StoreFuture<'_, SessionRow> {
        self.write(Durability::Durable, move |connection, _| image::restore(connection, &image, &over))
    }

    fn append(&self, lease: &Lease, writes: Vec<Write>, class: Durability) -> StoreFuture<'_, Appended> {
        let lease = lease.clone();
        self.write_as(Stake::Holds, class, move |connection, now| {
            journal::append(connection, &lease, &writes, now)
        })
    }

    fn read(&self, session: &SessionId, from: u64, most: usize) -> StoreFuture<'_, Page> {
        let id = session.clone();
        self.long.ask(move |connection| records::read(connection, &id, from, most))
    }

    fn check(&self, session: &SessionId) -> StoreFuture<'_, ChainCheck> {
        let id = session.clone();
        self.long.ask(move |connection| records::check(connection, &id))
    }

    fn push(&self, session: &SessionId, push: NewItem) -> StoreFuture<'_, Pushed> {
        let id = session.clone();
        self.write(Durability::Durable, move |connection, now| inbox::push(connection, &id, &push, now))
    }

    fn inbox(&self, session: &SessionId) -> StoreFuture<'_, Vec<InboxRow>> {
        let id = session.clone();
        self.short.ask(move |connection| inbox::list(connection, &id))
    }

    fn accepted(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Option<Timestamp>> {
        let id = session.clone();
        self.short.ask(move |connection| inbox::accepted(connection, &id, item))
    }

    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn> {
        let id = session.clone();
        self.write(Durability::Durable, move |connection, now| inbox::withdraw(connection, &id, item, now))
    }

    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64> {
        let id = session.clone();
        self.write(Durability::Durable, move |connection, now| stops::ask(connection, &id, &stop, now))
    }

    fn ask_stops(&self, among: Among, stop: StopIntent) -> StoreFuture<'_, u64> {
        self.write(Durability::Durable, move |connection, now| due::ask_stops(connection, &among, &stop, now))
    }

    fn stops(&self, session: &SessionId, after: u64) -> StoreFuture<'_, Vec<StopRow>> {
        let id = session.clone();
        self.short.ask(move |connection| stops::list(connection, &id, after))
    }

    fn decide(&self, session: &SessionId, decision: NewDecision) -> StoreFuture<'_, DecisionResult> {
        let id = session.clone();
        self.write(Durability::Durable, move |connection, now| {
            approvals::decide(connection, &id, &decision, now)
        })
    }

    fn approval(&self, session: &SessionId, id: &ApprovalId) -> StoreFuture<'_, Option<ApprovalRow>> {
        let (session, id) = (session.clone(), id.clone());
        self.short.ask(move |connection| {
            let key = sessions::key(connection, &session)?;
            approvals::find(connection, key, &id)
        })
    }

    fn approvals(&self, session: &SessionId) -> StoreFuture<'_, Vec<ApprovalRow>> {
        let id = session.clone();
        self.short.ask(move |connection| approvals::list(connection, &id))
    }

    fn open_approvals(
        &self,
        most: usize,
        after: Option<ApprovalCursor>,
    ) -> StoreFuture<'_, Vec<SessionApproval>> {
        self.short.ask(move |connection| approvals::list_open(connection, most, after.as_ref()))
    }

    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes> {
        let id = session.clone();
        self.short.ask(move |connection| sessions::notice(connection, &id))
    }
}
