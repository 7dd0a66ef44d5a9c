//! Opening a stored session: becoming its one owner, and recovering what the last owner left (S7).

use std::{sync::Arc, time::Duration};

use super::{
    Item, Push, Session, SessionBuilder, SessionHandle, SharedSession,
    builder::engine,
    driver::Driver,
    journal::{
        Journal, LeftTurn, Recovered, acquired, begin_with, given, looked, opened, reconcile, recover,
        rest_after,
    },
    label,
    machine::Machine,
    node::{Member, Node},
    outcome::ItemOutcome,
    shared::InStore,
    store_watch::Watcher,
    stored_item::encode_item,
};
use crate::{
    contract::store::{
        self, Durability, Error, ItemState, Lease, NewItem, NewSession, SessionRow, Store, Write,
    },
    sync::callback,
    value::ids::{ItemId, SessionId},
};

/// The number of the item that a session is created with.
const FIRST: u64 = 1;

/// What happens to items that waited in the store before a session is opened. Exhaustive: they begin a turn,
/// or wait for a newer item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PendingItems {
    /// They begin a turn.
    #[default]
    GoOn,
    /// They wait until a newer item arrives, and then come before it. Meanwhile they can be listed and
    /// withdrawn.
    Wait,
}

impl<T: Item> SessionBuilder<T> {
    /// Sets what happens to items that waited in the store before the session is opened. Default: they begin
    /// a turn, unless one was left open.
    pub fn pending_items(mut self, on_left: PendingItems) -> Self {
        self.on_left = on_left;
        self
    }

    /// Sets text that the store keeps with the session for the program that opens it the next time:
    /// [`SessionRow::setup`](crate::store::SessionRow::setup). Default: the stored text stays.
    pub fn setup(mut self, setup: impl Into<String>) -> Self {
        self.setup = Some(setup.into());
        self
    }

    /// Sets the listener that learns until when this process holds the session, as the time since the machine's start
    /// ([`uptime`](crate::raw::store::uptime)): each time that the lease is taken or renewed, before anything begins under it. What must
    /// not outlive the lease, though this process may be paused, ends by that (S7.14).
    pub fn on_lease(mut self, listener: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.on_lease = Some(Arc::new(listener));
        self
    }

    /// Opens the session of this id in `store`, and creates it if there is none. A caller that pushes an item
    /// at once uses [`open_with`](Self::open_with), so that a new session never exists without the item.
    ///
    /// What the last owner left is restored: the conversation, queued items, open questions, and the turn
    /// that ended early or was cut by the end of its process. Nothing resumes automatically.
    /// [`SessionHandle::resume`] resumes a turn that ended early, a newer item closes it, and a decision made
    /// meanwhile resumes the suspended turn. A stop that was requested meanwhile is applied first. An agent
    /// may opt in to resuming a turn that only the end of its process has cut
    /// ([`AgentBuilder::on_restart`](crate::AgentBuilder::on_restart)).
    ///
    /// # Errors
    /// [`Error::Held`] names the owner; [`Error::Damaged`] says where a record cannot be read, and changes
    /// nothing; [`Error::BegunOtherwise`]: the session is there, and began with another [conversation](Self::history).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// The lease may have been taken; it expires.
    pub async fn open(
        self,
        store: Arc<dyn Store>,
        id: SessionId,
        owner: store::OwnerProcess,
    ) -> Result<Session<T>, Error> {
        let store = store::guarded(store);
        let (row, _) = self.find(&*store, &id, None).await?;
        self.take_alone(store, (row, None), owner).await
    }

    /// Opens the session like [`open`](Self::open), on a node, which holds it by the lease that it has for all its sessions.
    ///
    /// # Errors
    /// As for [`open`](Self::open); [`Error::Parked`] if its owners died again and again, [`Error::Draining`] or
    /// [`Error::Buried`] if the node takes nothing any more.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// The session may have been taken: then it stays with the node until that leaves.
    pub async fn open_on(self, node: &Node, id: SessionId) -> Result<Session<T>, Error> {
        let member = node.member();
        let (row, _) = self.find(&**member.store(), &id, None).await?;
        self.take_on(member, (row, None)).await
    }

    /// Opens the session like [`open_with`](Self::open_with), on a node.
    ///
    /// # Errors
    /// As for [`open_with`](Self::open_with) and [`open_on`](Self::open_on).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// As for [`open_with`](Self::open_with) and [`open_on`](Self::open_on).
    pub async fn open_on_with(
        self,
        node: &Node,
        id: SessionId,
        push: impl Into<Push<T>>,
    ) -> Result<(Session<T>, Push<T>), Error> {
        let (member, mut push) = (node.member(), push.into());
        let row = self.find_with(&**member.store(), &id, &mut push).await?;
        let session = self.take_on(member, (row, push.stored.clone())).await?;
        Ok((session, push))
    }

    /// Becomes the owner, by this node.
    async fn take_on(
        self,
        member: &Arc<Member>,
        found: (SessionRow, Option<Arc<u64>>),
    ) -> Result<Session<T>, Error> {
        member.is_usable()?;
        let lease = acquired(member, &found.0.id).await?;
        self.take(member, found, lease).await
    }

    /// Opens the session like [`open`](Self::open), for an item that the caller pushes next. A session that does
    /// not exist yet is created together with the item, in one transaction: whenever the program is killed,
    /// the session exists with its item, or not at all (S7.16).
    ///
    /// Hand the returned push to [`SessionHandle::push`]: it gives the ticket, and the item may begin its turn. The
    /// item of a new session ([`Push::is_stored`]) waits in the store for the next owner if it is not pushed.
    ///
    /// # Errors
    /// As for [`open`](Self::open). [`Error::ItemElsewhere`]: another process took or withdrew the item before
    /// this one owned the session.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// The session may have been created with the item, which waits there. The lease may have been taken; it
    /// expires.
    pub async fn open_with(
        self,
        store: Arc<dyn Store>,
        id: SessionId,
        owner: store::OwnerProcess,
        push: impl Into<Push<T>>,
    ) -> Result<(Session<T>, Push<T>), Error> {
        let store = store::guarded(store);
        let mut push = push.into();
        let row = self.find_with(&*store, &id, &mut push).await?;
        let session = self.take_alone(store, (row, push.stored.clone()), owner).await?;
        Ok((session, push))
    }

    /// The session's row. If it is created, then with what is to be pushed.
    async fn find_with(
        &self,
        store: &dyn Store,
        id: &SessionId,
        push: &mut Push<T>,
    ) -> Result<SessionRow, Error> {
        let (row, first) = match self.find(store, id, self.first_item(push)).await {
            // The inbox has no room for any item: the push says so.
            Err(Error::ItemRefused(_)) => self.find(store, id, None).await?,
            found => found?,
        };
        push.stored = first.map(Arc::new);
        Ok(row)
    }

    /// The item as a new session is created with it. `None`: the push of it returns it, and says why.
    fn first_item(&self, push: &Push<T>) -> Option<NewItem> {
        let Push { item, client_id, policy, .. } = push;
        let is_blank = self.planner.call(|planner| planner.is_blank(item));
        if !matches!(is_blank, Ok(false)) {
            return None;
        }
        let encoded = callback::call(|| encode_item(item, *policy, client_id.clone(), self.settings.inbox));
        encoded.ok()?.ok()
    }

    /// The session's row, and the number of the item that it was created with.
    async fn find(
        &self,
        store: &dyn Store,
        id: &SessionId,
        first: Option<NewItem>,
    ) -> Result<(SessionRow, Option<u64>), Error> {
        match looked(store.open(id)).await {
            Err(Error::NoSession(_)) if !self.only_existing => {}
            found => return Ok((found?, None)),
        }
        let number = first.as_ref().map(|_item| FIRST);
        // What its program wants to find again is there whenever the item is.
        let setup = self.setup.clone().unwrap_or_default();
        // So is the conversation that the item is about.
        let records = given(&self.history)?;
        let items = Vec::from_iter(first);
        let new = NewSession { setup, items, records, ..NewSession::of(id.clone()) };
        match opened(store.create(new)).await {
            // Another process created it in between: open that one.
            Err(Error::SessionExists(_)) => Ok((looked(store.open(id)).await?, None)),
            created => Ok((created?, number)),
        }
    }

    /// Becomes the owner, by a node for this session alone. A caller that names the session takes it also where its owners died
    /// again and again.
    async fn take_alone(
        self,
        store: Arc<dyn Store>,
        found: (SessionRow, Option<Arc<u64>>),
        owner: store::OwnerProcess,
    ) -> Result<Session<T>, Error> {
        let node = Member::alone(Arc::clone(&store), owner).await?;
        let id = found.0.id.clone();
        let lease = match acquired(&node, &id).await {
            Err(Error::Parked(..)) => {
                opened(store.unpark(&id)).await?;
                acquired(&node, &id).await
            }
            acquired => acquired,
        };
        match lease {
            Ok(lease) => {
                let session = self.take(&node, found, lease).await?;
                node.start_alone();
                Ok(session)
            }
            Err(error) => {
                node.leave_for_good().await;
                Err(error)
            }
        }
    }

    /// Becomes the owner, with the lease that was taken.
    async fn take(
        self,
        node: &Arc<Member>,
        (row, first): (SessionRow, Option<Arc<u64>>),
        lease: Lease,
    ) -> Result<Session<T>, Error> {
        let journal = Arc::new(Journal::new(Arc::clone(node), &row, lease, self.on_lease.clone()));
        let setup = self.setup.clone().filter(|setup| *setup != row.setup);
        let own = async {
            begin_with(&journal, &self.history).await?;
            if let Some(setup) = setup {
                journal.append(vec![Write::Setup(setup)], Durability::Recorded).await?;
            }
            self.own(&journal, (first, row.label == label::RUNNING)).await
        };
        match own.await {
            Ok(session) => Ok(session),
            Err(error) => {
                // Release the lease, so that the next owner need not wait for its end; the original error is
                // returned whatever the release does. It may have been due, and is no more since it was taken.
                drop(journal.release(rest_after(&error)).await);
                Err(error)
            }
        }
    }

    /// Recovers what the last owner left, and starts.
    async fn own(
        self,
        journal: &Arc<Journal>,
        (first, was_running): (Option<Arc<u64>>, bool),
    ) -> Result<Session<T>, Error> {
        let mut found = recover(journal).await?;
        reconcile(journal, &mut found).await?;
        if was_running && found.left.is_some() {
            // Its owner died in a turn; a list of sessions learns that from the label alone.
            journal.append(vec![Write::Label(label::CUT.into())], Durability::Recorded).await?;
        }
        if let Some(checkpoint) = found.checkpoint.take()
            && journal.append(vec![checkpoint], Durability::Recorded).await.is_err()
        {
            // Nothing depends on it; the same failure is met by the records that matter.
        }
        let (shared, received) = self.shared(Some(InStore::new(journal, first.clone())));
        let (items, machine) = self.take_over(&shared, journal, &found, first.as_deref()).await?;
        let is_begun_by_items = self.on_left == PendingItems::GoOn;
        let settings = Arc::new(self.settings);
        let mut driver = Driver::new(Arc::clone(&shared), settings, found.history, received, machine);
        // What the program holds itself waits in any case.
        let holds = found.left.as_ref().and_then(|left| left.holds).filter(|_| is_begun_by_items);
        driver.inherit(Arc::clone(journal), (found.left, found.always), items);
        driver.add_lost_runs(found.lost);
        driver.watch_recovered().await?;
        // What was stored earlier enters the mailbox before anything new.
        let mut watcher = Watcher::new(&shared, Arc::clone(journal));
        if let Some(first) = first {
            watcher.leave(*first);
        }
        if let Some(holds) = holds {
            watcher.keep_behind(holds);
        }
        looked(watcher.look()).await?;
        shared.mailbox.post(super::message::SessionMessage::Inherited);
        // What came after the end of the turn that was left begins a turn, as what comes now does (S5.3).
        watcher.accept_kept();
        drop(engine().spawn("session", driver.into_task()));
        drop(engine().spawn("session's watcher", watcher.watch()));
        let watched = Arc::downgrade(&shared);
        journal.node().stopped_by(journal.session(), move |stop| {
            if let Some(shared) = watched.upgrade() {
                drop(SessionHandle { shared }.stop(stop));
            }
        });
        Ok(Session { handle: SessionHandle { shared } })
    }

    /// Reconciles the inbox, and builds the machine as it was left.
    async fn take_over(
        &self,
        shared: &Arc<SharedSession<T>>,
        journal: &Arc<Journal>,
        found: &Recovered,
        first: Option<&u64>,
    ) -> Result<(Vec<(ItemId, T)>, Machine), Error> {
        let rows = looked(journal.store().inbox(journal.session())).await?;
        let waits =
            |number: u64| rows.iter().any(|row| row.number == number && row.state == ItemState::Waiting);
        if let Some(gone) = first.copied().filter(|first| !waits(*first)) {
            return Err(Error::ItemElsewhere(gone));
        }
        let mut writes: Vec<Write> = Vec::new();
        let mut items = Vec::new();
        for row in rows.iter().filter(|row| row.state == ItemState::Taken) {
            if found.put_back.contains(&row.number) {
                writes.push(Write::PutBackItem(row.number));
            } else if found.left.is_some() {
                // An item of the turn, or a steer of it.
                if let Ok((item, _policy)) = super::stored_item::decode_item::<T>(&row.bytes) {
                    let ticket = shared.inbox.ticket();
                    journal.number(ticket.id(), row.number);
                    items.push((ticket.id(), item));
                }
            } else {
                writes.push(Write::RemoveItem(row.number));
            }
        }
        if !writes.is_empty() {
            journal.append(writes, Durability::Recorded).await?;
        }
        let left = found.left.as_ref().map(|LeftTurn { turn, fate, .. }| {
            let is_suspended = matches!(fate, ItemOutcome::Suspended(_));
            (*turn, items.iter().map(|(id, _)| *id).collect(), is_suspended)
        });
        let mut machine = Machine::recovered(self.settings.rules, found.turns, left);
        if self.on_left == PendingItems::Wait {
            machine.hold_left();
        }
        Ok((items, machine))
    }
}
