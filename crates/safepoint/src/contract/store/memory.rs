//! A store that lasts as long as its process: for tests, and for sessions that need not last.
//!
//! **Invariants:** one lock around everything, never held across an await; a refused request has changed
//! nothing.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use jiff::Timestamp;

use crate::sync::Mutex;
use crate::value::ids::{ApprovalId, SessionId};

use super::{
    ApprovalRow, ChainCheck, ChangeMark, Changes, DecisionResult, Durability, Environment, Error, InboxRow,
    JournalEntry, Lease, LeaseHolder, NewDecision, NewItem, NewSession, OwnerProcess, Page, PageCursor,
    Pushed, Record, SessionRow, Since, StopIntent, StopRow, Store, StoreFuture, Withdrawn, Write, is_free,
    journal::Appended,
};

mod append;
mod items;
mod session;

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
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    sessions: HashMap<SessionId, Session>,
    newest: BTreeSet<(Timestamp, SessionId)>,
    epoch: u64,
    changes: u64,
}

impl MemoryStore {
    /// An empty store with this environment.
    #[must_use]
    pub fn new(outside: Environment) -> Self {
        Self { outside, state: Mutex::default() }
    }

    fn read_one<T: Send + 'static>(
        &self,
        id: &SessionId,
        read: impl FnOnce(&Session) -> Result<T, Error>,
    ) -> StoreFuture<'static, T> {
        ready(self.state.lock().session(id).and_then(read))
    }

    /// Changes a session. If `change` says that it changed anything, it becomes the most recently changed one.
    fn change<T: Send + 'static>(
        &self,
        id: &SessionId,
        change: impl FnOnce(&mut Session, Timestamp) -> Result<(T, bool), Error>,
    ) -> StoreFuture<'static, T> {
        let now = self.outside.now();
        ready(self.state.lock().change(id, now, |session| change(session, now)))
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
            self.changes += 1;
        }
        Ok(answer)
    }

    fn create(&mut self, new: NewSession, now: Timestamp) -> Result<SessionRow, Error> {
        if self.sessions.contains_key(&new.id) {
            return Err(Error::SessionExists(new.id));
        }
        let mut session = Session::new(&new, now);
        session.append(new.records.into_iter().map(Write::Record).collect(), now)?;
        let row = session.row(&new.id);
        for (number, item) in (1..).zip(new.items) {
            let (pushed, _) = session.push(item, now);
            if pushed != Pushed::Accepted(number) {
                return Err(Error::ItemRefused(number));
            }
        }
        self.newest.insert((now, new.id.clone()));
        self.sessions.insert(new.id, session);
        self.changes += 1;
        Ok(row)
    }

    /// The session, unless an owner that may be alive holds it.
    fn free(&mut self, id: &SessionId, outside: &Environment) -> Result<&mut Session, Error> {
        let session = self.session_mut(id)?;
        match &session.held {
            Some(held) if !is_free(held, outside) => Err(Error::Held(id.clone(), Box::new(held.clone()))),
            Some(_) | None => Ok(session),
        }
    }

    fn remove(&mut self, id: &SessionId, outside: &Environment) -> Result<(), Error> {
        let updated = self.free(id, outside)?.updated;
        self.newest.remove(&(updated, id.clone()));
        self.sessions.remove(id);
        self.changes += 1;
        Ok(())
    }

    fn acquire(&mut self, id: &SessionId, held: LeaseHolder, outside: &Environment) -> Result<u64, Error> {
        let epoch = self.epoch + 1;
        let session = self.free(id, outside)?;
        session.held = Some(held);
        session.epoch = epoch;
        self.epoch = epoch;
        self.changes += 1;
        Ok(epoch)
    }
}

impl Store for MemoryStore {
    fn create(&self, session: NewSession) -> StoreFuture<'_, SessionRow> {
        ready(self.state.lock().create(session, self.outside.now()))
    }

    fn open(&self, session: &SessionId) -> StoreFuture<'_, SessionRow> {
        self.read_one(session, |found| Ok(found.row(session)))
    }

    fn list(&self, most: usize, older: Option<PageCursor>) -> StoreFuture<'_, Vec<SessionRow>> {
        let state = self.state.lock();
        let rows = |places: &mut dyn Iterator<Item = &(Timestamp, SessionId)>| {
            places.take(most).map(|(_, id)| Ok(state.session(id)?.row(id))).collect()
        };
        ready(match older {
            Some(PageCursor { updated, id }) => rows(&mut state.newest.range(..(updated, id)).rev()),
            None => rows(&mut state.newest.iter().rev()),
        })
    }

    fn remove(&self, session: &SessionId) -> StoreFuture<'_, ()> {
        ready(self.state.lock().remove(session, &self.outside))
    }

    fn acquire(&self, session: &SessionId, owner: OwnerProcess, ttl: Duration) -> StoreFuture<'_, Lease> {
        let (began, held) = (Since::now(), LeaseHolder::by(owner, ttl, &self.outside));
        let epoch = self.state.lock().acquire(session, held, &self.outside);
        ready(epoch.map(|epoch| Lease::new(session.clone(), epoch, ttl, began)))
    }

    fn renew(&self, lease: &Lease) -> StoreFuture<'_, Lease> {
        let (began, mut state) = (Since::now(), self.state.lock());
        let renewed = state.session_mut(lease.session()).and_then(|session| {
            let held = session.held_by(lease)?;
            held.renew(lease.ttl(), &self.outside);
            Ok(Lease::new(lease.session().clone(), lease.epoch(), lease.ttl(), began))
        });
        ready(renewed)
    }

    fn release(&self, lease: &Lease) -> StoreFuture<'_, ()> {
        let mut state = self.state.lock();
        let released = state.session_mut(lease.session()).and_then(|session| {
            session.held_by(lease)?;
            session.held = None;
            Ok(())
        });
        state.changes += 1;
        ready(released)
    }

    fn append(&self, lease: &Lease, writes: Vec<Write>, _class: Durability) -> StoreFuture<'_, Appended> {
        self.change(lease.session(), |session, now| {
            session.held_by(lease)?;
            let is_news = writes.iter().any(Write::is_news);
            Ok((session.append(writes, now)?, is_news))
        })
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

    fn withdraw(&self, session: &SessionId, item: u64) -> StoreFuture<'_, Withdrawn> {
        self.change(session, |session, _| Ok(session.withdraw(item)))
    }

    fn ask_stop(&self, session: &SessionId, stop: StopIntent) -> StoreFuture<'_, u64> {
        self.change(session, |session, now| Ok(session.ask_stop(stop, now)))
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

    fn stamp(&self) -> StoreFuture<'_, ChangeMark> {
        ready(Ok(ChangeMark::new(self.state.lock().changes)))
    }

    fn notice(&self, session: &SessionId) -> StoreFuture<'_, Changes> {
        self.read_one(session, |session| Ok(session.notice()))
    }
}
