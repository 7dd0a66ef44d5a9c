//! A store that lasts as long as its process: for tests, and for sessions that need not last.
//!
//! **Invariants:** one lock around everything, never held across an await; a refused request has changed
//! nothing.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;

use crate::sync::Mutex;
use crate::value::ids::{ApprovalId, NodeId, SessionId};

use super::{
    Among, ApprovalCursor, ApprovalRow, ChainCheck, ChangeStream, Changes, DecisionResult, Due, Durability,
    Environment, Error, InboxRow, JournalEntry, Lease, Leaving, NewDecision, NewItem, NewNode, NewSession,
    NodeLease, NodeRow, NodeState, OverImage, Page, PageCursor, Pushed, Record, Rest, SessionApproval,
    SessionImage, SessionRow, Since, StopIntent, StopRow, Store, StoreFuture, Tenure, Withdrawn, Write,
    journal::Appended,
};

mod append;
mod changes;
mod due;
mod image;
mod items;
mod nodes;
mod session;

use nodes::Members;
use session::Session;

/// A store in memory.
///
/// ```
/// use std::sync::Arc;
/// use safepoint::{Agent, Session, session::ChatPlanner, store::{Error, MemoryStore, OwnerProcess}};
/// async fn open(agent: Agent, store: Arc<MemoryStore>) -> Result<Session<String>, Box<dyn std::error::Error>> {
///     let builder = Session::builder(ChatPlanner::new(agent));
///     Ok(builder.open(store, "trip".into(), OwnerProcess::here()).await?)
/// }
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    outside: Environment,
    /// One request is one critical section, so all requests have one order. The clock and the process table
    /// of `outside` are read under it; they never call the store.
    state: Arc<Mutex<MemoryState>>,
}

#[derive(Debug, Default)]
struct MemoryState {
    sessions: HashMap<SessionId, Session>,
    newest: BTreeSet<(Timestamp, SessionId)>,
    epoch: u64,
    members: Members,
    /// What wants an owner and has none: by priority, and then by the time since which it does.
    dues: BTreeSet<(i16, Timestamp, SessionId)>,
}

impl MemoryStore {
    /// An empty store with this environment.
    #[must_use]
    pub fn new(outside: Environment) -> Self {
        Self { outside, state: Arc::default() }
    }

    fn read_one<T: Send + 'static>(
        &self,
        id: &SessionId,
        read: impl FnOnce(&Session) -> Result<T, Error>,
    ) -> StoreFuture<'static, T> {
        ready(self.state.lock().session(id).and_then(read))
    }

    /// What a process that need not hold it changes in a session. If `change` says that it changed anything, it becomes the most recently changed one.
    fn change<T: Send + 'static>(
        &self,
        id: &SessionId,
        change: impl FnOnce(&mut Session, Timestamp) -> Result<(T, bool), Error>,
    ) -> StoreFuture<'static, T> {
        let now = self.outside.now();
        let mut state = self.state.lock();
        let mut is_touched = false;
        let answer = state.change(id, now, |session| {
            let (answer, has_changed) = change(session, now)?;
            is_touched = has_changed;
            Ok((answer, has_changed))
        });
        if is_touched {
            state.touch(id, now);
        }
        ready(answer)
    }
}

fn ready<T: Send + 'static>(answer: Result<T, Error>) -> StoreFuture<'static, T> {
    Box::pin(std::future::ready(answer))
}

impl MemoryState {
    fn session(&self, id: &SessionId) -> Result<&Session, Error> {
        self.sessions.get(id).ok_or_else(|| Error::NoSession(id.clone()))
    }

    fn session_mut(&mut self, id: &SessionId) -> Result<&mut Session, Error> {
        self.sessions.get_mut(id).ok_or_else(|| Error::NoSession(id.clone()))
    }

    fn change<T>(
        &mut self,
        id: &SessionId,
        now: Timestamp,
        change: impl FnOnce(&mut Session) -> Result<(T, bool), Error>,
    ) -> Result<T, Error> {
        let session = self.session_mut(id)?;
        let (answer, has_changed) = change(session)?;
        if has_changed {
            let before = std::mem::replace(&mut session.updated, now);
            self.newest.remove(&(before, id.clone()));
            self.newest.insert((now, id.clone()));
        }
        Ok(answer)
    }

    fn create(&mut self, new: NewSession, now: Timestamp) -> Result<SessionRow, Error> {
        if self.sessions.contains_key(&new.id) {
            return Err(Error::SessionExists(new.id));
        }
        let mut session = Session::new(&new, now);
        session.append(new.records.into_iter().map(Write::Record).collect(), now)?;
        let row = session.row(&new.id, None);
        let has_items = !new.items.is_empty();
        for (number, item) in (1..).zip(new.items) {
            let (pushed, _) = session.push(item, now);
            if pushed != Pushed::Accepted(number) {
                return Err(Error::ItemRefused(number));
            }
        }
        self.newest.insert((now, new.id.clone()));
        self.sessions.insert(new.id, session);
        if has_items {
            self.touch(&row.id, now);
        }
        Ok(row)
    }

    fn row(&self, id: &SessionId) -> Result<SessionRow, Error> {
        let session = self.session(id)?;
        let held = session.held.as_ref();
        let holder = held.and_then(|held| Some(self.members.get(&held.node)?.row.as_holder(held.since)));
        Ok(session.row(id, holder))
    }

    fn open_approvals(&self, most: usize, after: Option<&ApprovalCursor>) -> Vec<SessionApproval> {
        let mut open: Vec<SessionApproval> = self
            .sessions
            .iter()
            .flat_map(|(id, session)| {
                session.side.still_open().map(|row| SessionApproval { session: id.clone(), row: row.clone() })
            })
            .filter(|found| after.is_none_or(|after| found.after() > *after))
            .collect();
        open.sort_by_cached_key(SessionApproval::after);
        open.truncate(most);
        open
    }

    fn remove(&mut self, id: &SessionId, outside: &Environment) -> Result<(), Error> {
        self.dead_holder(id, outside)?;
        self.forget(id);
        Ok(())
    }

    fn forget(&mut self, id: &SessionId) {
        self.let_go(id);
        self.make_due(id, None);
        if let Some(session) = self.sessions.remove(id) {
            self.newest.remove(&(session.updated, id.clone()));
        }
    }
}

impl Store for MemoryStore {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionRow> {
        ready(self.state.lock().create(session, self.outside.now()))
    }

    fn open(&self, session: &SessionId) -> StoreFuture<'_, SessionRow> {
        ready(self.state.lock().row(session))
    }

    fn list(&self, most: usize, older: Option<PageCursor>) -> StoreFuture<'_, Vec<SessionRow>> {
        let state = self.state.lock();
        let rows = |places: &mut dyn Iterator<Item = &(Timestamp, SessionId)>| {
            places.take(most).map(|(_, id)| state.row(id)).collect()
        };
        ready(match older {
            Some(PageCursor { updated, id }) => rows(&mut state.newest.range(..(updated, id)).rev()),
            None => rows(&mut state.newest.iter().rev()),
        })
    }

    fn remove(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        ready(self.state.lock().remove(session, &self.outside))
    }

    fn remove_if_at_rest(&self, session: &SessionId) -> StoreFuture<'_, bool> {
        let mut state = self.state.lock();
        ready(state.session(session).map(Session::waits).and_then(|waits| match waits {
            // One that is held is refused as such.
            true => state.dead_holder(session, &self.outside).map(|_dead| false),
            false => state.remove(session, &self.outside).map(|()| true),
        }))
    }

    fn join(&self, node: NewNode) -> StoreFuture<'_, NodeLease> {
        let lease = NodeLease::new(node.id.clone(), node.ttl, Since::now());
        ready(self.state.lock().join(node, &self.outside).map(|()| lease))
    }

    fn beat(&self, node: &NodeLease, load: u32) -> StoreFuture<'_, NodeState> {
        let began = Since::now();
        let beaten = self.state.lock().beat(node.id(), load, &self.outside);
        ready(beaten.inspect(|_state| node.renewed(began)))
    }

    fn leave(&self, node: &NodeId, how: Leaving) -> StoreFuture<'_, ()> {
        self.state.lock().leave(node, how, self.outside.now());
        ready(Ok(()))
    }

    fn nodes(&self) -> StoreFuture<'_, Vec<NodeRow>> {
        ready(Ok(self.state.lock().members.rows()))
    }

    fn bury(&self) -> StoreFuture<'_, Vec<NodeId>> {
        ready(Ok(self.state.lock().bury(&self.outside)))
    }

    fn acquire(&self, session: &SessionId, node: &NodeLease) -> StoreFuture<'_, Lease> {
        let epoch = self.state.lock().acquire(session, node.id(), &self.outside);
        ready(epoch.map(|epoch| Lease::new(session.clone(), epoch, node.clone())))
    }

    fn release(&self, lease: &Lease, seen: Changes, rest: Rest) -> StoreFuture<'_, ()> {
        ready(self.state.lock().release(lease, seen, rest, self.outside.now()))
    }

    fn changes(&self, node: &NodeLease) -> ChangeStream {
        changes::of(Arc::clone(&self.state), node.id().clone())
    }

    fn due(&self, most: usize, pools: Vec<String>) -> StoreFuture<'_, Vec<Due>> {
        ready(Ok(self.state.lock().due(most, &pools, self.outside.now())))
    }

    fn unpark(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        ready(self.state.lock().unpark(session, self.outside.now()))
    }

    fn tenures(&self, session: &SessionId) -> StoreFuture<'_, Vec<Tenure>> {
        self.read_one(session, |session| Ok(session.tenures.clone()))
    }

    fn image(&self, session: &SessionId) -> StoreFuture<'_, SessionImage> {
        ready(self.state.lock().image(session))
    }

    fn restore(&self, image: SessionImage, over: OverImage) -> StoreFuture<'_, SessionRow> {
        ready(self.state.lock().restore(image, &over))
    }

    fn append(&self, lease: &Lease, writes: Vec<Write>, _class: Durability) -> StoreFuture<'_, Appended> {
        let now = self.outside.now();
        let mut state = self.state.lock();
        ready(state.must_hold(lease).and_then(|()| {
            state.change(lease.session(), now, |session| {
                let is_news = writes.iter().any(Write::is_news);
                Ok((session.append(writes, now)?, is_news))
            })
        }))
    }

    fn read(&self, session: &SessionId, from: u64, most: usize) -> StoreFuture<'_, Page> {
        self.read_one(session, |session| {
            let entry = |(position, (record, _)): (usize, &(Record, _))| JournalEntry {
                position: position as u64,
                record: Ok(record.clone()),
            };
            let skipped = usize::try_from(from).unwrap_or(usize::MAX);
            let entries: Vec<JournalEntry> =
                session.records.iter().enumerate().skip(skipped).take(most).map(entry).collect();
            let next = from + entries.len() as u64;
            Ok(Page { entries, next: (next < session.records.len() as u64).then_some(next) })
        })
    }

    fn check(&self, session: &SessionId) -> StoreFuture<'_, ChainCheck> {
        self.read_one(session, |found| Ok(found.check(session)))
    }

    fn push(&self, session: &SessionId, push: NewItem) -> StoreFuture<'_, Pushed> {
        self.change(session, |session, now| Ok(session.push(push, now)))
    }

    fn inbox(&self, session: &SessionId) -> StoreFuture<'_, Vec<InboxRow>> {
        self.read_one(session, |session| Ok(session.items.present()))
    }

    fn accepted(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Option<Timestamp>> {
        self.read_one(session, |session| Ok(session.items.get(item).map(|row| row.at)))
    }

    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn> {
        self.change(session, |session, _| Ok(session.withdraw(item)))
    }

    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64> {
        self.change(session, |session, now| Ok(session.ask_stop(stop, now)))
    }

    fn ask_stops(&self, among: Among, stop: StopIntent) -> StoreFuture<'_, u64> {
        ready(self.state.lock().ask_stops(among, &stop, self.outside.now()))
    }

    fn stops(&self, session: &SessionId, after: u64) -> StoreFuture<'_, Vec<StopRow>> {
        self.read_one(session, |session| Ok(session.stops(after)))
    }

    fn decide(&self, session: &SessionId, decision: NewDecision) -> StoreFuture<'_, DecisionResult> {
        self.change(session, |session, now| Ok(session.decide(decision, now)))
    }

    fn approval(&self, session: &SessionId, id: &ApprovalId) -> StoreFuture<'_, Option<ApprovalRow>> {
        self.read_one(session, |session| Ok(session.approval(id).cloned()))
    }

    fn approvals(&self, session: &SessionId) -> StoreFuture<'_, Vec<ApprovalRow>> {
        self.read_one(session, |session| Ok(session.side.approvals.clone()))
    }

    fn open_approvals(
        &self,
        most: usize,
        after: Option<ApprovalCursor>,
    ) -> StoreFuture<'_, Vec<SessionApproval>> {
        ready(Ok(self.state.lock().open_approvals(most, after.as_ref())))
    }

    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes> {
        self.read_one(session, |session| Ok(session.notice()))
    }
}
