//! Requests as values: a list of them can be played to any store, again and again, and compared.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use safepoint::{
    ids::{ApprovalId, SessionId},
    raw::store::{
        Among, ApprovalRow, ChainCheck, Changes, Durability, InboxRow, JournalEntry, Lease, Leaving,
        Liveness, NewDecision, NewItem, NewSession, NodeLease, NodeRow, OverImage, Rest, SessionImage, Since,
        StopIntent, StopRow, Tenure, Write,
    },
    store::{Error, NewNode, SessionRow, Store},
};

mod script;

pub use script::{ask, decision, script};

use super::{BrokenStore, Population, TTL, Time, owner};

/// One request to a store, or one change of the world around it. Exhaustive: a player must do each.
#[derive(Clone, Debug)]
pub enum PlayStep {
    /// A session is created, with these items in its inbox.
    Create(SessionId, Vec<NewItem>),
    /// A session is removed.
    Remove(SessionId),
    /// A session is removed, unless something of it runs or waits.
    RemoveIfAtRest(SessionId),
    /// A process joins as a node, under its number as a name.
    Join(u32),
    /// The newest node of a process beats.
    Beat(u32),
    /// The newest node of a process leaves.
    Leave(u32, Leaving),
    /// The dead are buried.
    Bury,
    /// The newest node of a process takes a session.
    Acquire(SessionId, u32),
    /// The lease is given back, and wants an owner then. Nothing that others did was seen.
    Release(SessionId, Which, Rest),
    /// It is asked what wants an owner.
    Due(usize),
    /// A session may be taken again.
    Unpark(SessionId),
    /// The holder writes.
    Append(SessionId, Which, Vec<Write>, Durability),
    /// A client pushes.
    Push(SessionId, NewItem),
    /// A client takes an item back.
    Withdraw(SessionId, u64),
    /// A client asks for a stop.
    AskStop(SessionId, StopIntent),
    /// A client asks for a stop of many.
    AskStops(Among, StopIntent),
    /// A client decides.
    Decide(SessionId, NewDecision),
    /// An image of a session is taken, and kept by the player.
    Image(SessionId),
    /// The newest image of it is put in its place.
    Restore(SessionId),
    /// A client reads.
    Look(SessionId, StoreQuery),
    /// Time passes. Nothing is asked of the store.
    Pass(Duration),
    /// A process is said to live or to be dead. Nothing is asked of the store.
    Say(u32, Liveness),
}

/// What a client reads. Exhaustive: every request that changes nothing.
#[derive(Clone, Debug)]
pub enum StoreQuery {
    /// The session's row.
    Row,
    /// The newest sessions.
    List,
    /// The journal.
    Journal,
    /// Whether the journal is sound.
    Check,
    /// The inbox.
    Inbox,
    /// When this item was accepted.
    Accepted(u64),
    /// The stop intents.
    Stops,
    /// One approval.
    Approval(ApprovalId),
    /// All of them.
    Approvals,
    /// The first approvals that are open, of whatever session.
    OpenApprovals,
    /// Who held the session.
    Tenures,
    /// The nodes.
    Nodes,
    /// What others may have written.
    Notice,
}

impl StoreQuery {
    async fn at(&self, store: &dyn Store, session: &SessionId) -> Result<String, Error> {
        const MOST: usize = 100;
        match self {
            Self::Row => in_words(store.open(session).await),
            Self::List => in_words(store.list(MOST, None).await),
            Self::Journal => in_words(store.read(session, 0, MOST).await),
            Self::Check => in_words(store.check(session).await),
            Self::Inbox => in_words(store.inbox(session).await),
            Self::Accepted(item) => in_words(store.accepted(session, *item).await),
            Self::Stops => in_words(store.stops(session, 0).await),
            Self::Approval(id) => in_words(store.approval(session, id).await),
            Self::Approvals => in_words(store.approvals(session).await),
            Self::OpenApprovals => in_words(store.open_approvals(MOST, None).await),
            Self::Tenures => in_words(store.tenures(session).await),
            Self::Nodes => in_words(store.nodes().await),
            Self::Notice => in_words(store.notice(session).await),
        }
    }
}

/// Which of the leases on a session that the player was given. Exhaustive: the two that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The last one.
    Newest,
    /// The first one, which is stale if there were more.
    First,
}

/// Plays steps to a store, and keeps the leases that it was given.
#[derive(Clone, Debug)]
pub struct Player {
    /// The store.
    pub store: Arc<dyn Store>,
    time: Time,
    lives: Population,
    leases: HashMap<SessionId, Vec<Lease>>,
    nodes: HashMap<u32, NodeLease>,
    images: HashMap<SessionId, SessionImage>,
    joined: usize,
}

impl Player {
    /// Plays to this store, in the world of these.
    pub fn of(store: Arc<dyn Store>, time: &Time, lives: &Population) -> Self {
        Self {
            store,
            time: time.clone(),
            lives: lives.clone(),
            leases: HashMap::new(),
            nodes: HashMap::new(),
            images: HashMap::new(),
            joined: 0,
        }
    }

    /// Continues with another handle, and the leases of this player.
    #[must_use]
    pub fn on(&self, store: Arc<dyn Store>) -> Self {
        Self { store, ..self.clone() }
    }

    /// Moves into the world of another player.
    #[must_use]
    pub fn within(self, other: &Self) -> Self {
        Self { time: other.time.clone(), lives: other.lives.clone(), ..self }
    }

    fn lease(&self, session: &SessionId, which: Which) -> Lease {
        let leases = self.leases.get(session).map(Vec::as_slice).unwrap_or_default();
        let lease = match which {
            Which::Newest => leases.last(),
            Which::First => leases.first(),
        };
        // A player without a lease tries with one of no epoch.
        let none = || Lease::new(session.clone(), 0, NodeLease::new("none".into(), TTL, Since::now()));
        lease.cloned().unwrap_or_else(none)
    }

    /// The newest node of a process; one that never joined has a lease of no store's.
    fn node(&self, pid: u32) -> NodeLease {
        let none = || NodeLease::new(format!("none-{pid}").into(), TTL, Since::now());
        self.nodes.get(&pid).cloned().unwrap_or_else(none)
    }

    async fn restore(&self, session: &SessionId) -> Result<SessionRow, Error> {
        let image = self.images.get(session).cloned();
        let image = image.ok_or_else(|| Error::NoSession(session.clone()))?;
        let over = OverImage::Unchanged(image.stamp());
        self.store.restore(image, over).await
    }

    /// Plays one step: the answer, in a form that can be compared.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// As that of the store's method.
    pub async fn play(&mut self, step: &PlayStep) -> Result<String, Error> {
        let store = &self.store;
        match step {
            PlayStep::Create(session, items) => {
                let new = NewSession { items: items.clone(), ..NewSession::of(session.clone()) };
                in_words(store.create(new).await)
            }
            PlayStep::Remove(session) => in_words(store.remove(session).await),
            PlayStep::RemoveIfAtRest(session) => in_words(store.remove_if_at_rest(session).await),
            PlayStep::Join(pid) => {
                // Two players of the same steps name their nodes alike.
                let id = format!("node-{}", self.joined).into();
                let new = NewNode { id, name: pid.to_string(), ..NewNode::of(owner(*pid), TTL) };
                let node = store.join(new).await?;
                self.joined += 1;
                self.nodes.insert(*pid, node);
                Ok(String::new())
            }
            PlayStep::Beat(pid) => in_words(store.beat(&self.node(*pid), *pid).await),
            PlayStep::Leave(pid, how) => in_words(store.leave(self.node(*pid).id(), *how).await),
            PlayStep::Bury => in_words(store.bury().await),
            PlayStep::Due(most) => in_words(store.due(*most, Vec::new()).await),
            PlayStep::Unpark(session) => in_words(store.unpark(session).await),
            PlayStep::AskStops(among, stop) => in_words(store.ask_stops(among.clone(), stop.clone()).await),
            PlayStep::Acquire(session, pid) => {
                let lease = store.acquire(session, &self.node(*pid)).await?;
                let epoch = format!("epoch {}", lease.epoch());
                self.leases.entry(session.clone()).or_default().push(lease);
                Ok(epoch)
            }
            PlayStep::Release(session, which, rest) => {
                in_words(store.release(&self.lease(session, *which), Changes::default(), *rest).await)
            }
            PlayStep::Append(session, which, writes, class) => {
                in_words(store.append(&self.lease(session, *which), writes.clone(), *class).await)
            }
            PlayStep::Push(session, push) => in_words(store.push(session, push.clone()).await),
            PlayStep::Withdraw(session, item) => in_words(store.withdraw(session, *item).await),
            PlayStep::AskStop(session, stop) => in_words(store.ask_stop(session, stop.clone()).await),
            PlayStep::Decide(session, decision) => in_words(store.decide(session, decision.clone()).await),
            PlayStep::Image(session) => {
                let image = store.image(session).await?;
                let words = format!("{image:?}");
                self.images.insert(session.clone(), image);
                Ok(words)
            }
            PlayStep::Restore(session) => in_words(self.restore(session).await),
            PlayStep::Look(session, look) => look.at(&**store, session).await,
            PlayStep::Pass(time) => {
                self.time.pass(*time);
                Ok(String::new())
            }
            PlayStep::Say(pid, life) => {
                self.lives.say(*pid, *life);
                Ok(String::new())
            }
        }
    }
}

fn in_words<T: fmt::Debug>(answer: Result<T, Error>) -> Result<String, Error> {
    answer.map(|answer| format!("{answer:?}"))
}

/// Everything that can be seen of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    row: SessionRow,
    records: Vec<JournalEntry>,
    verdict: ChainCheck,
    items: Vec<InboxRow>,
    stops: Vec<StopRow>,
    approvals: Vec<ApprovalRow>,
    tenures: Vec<Tenure>,
    /// All of the store's.
    nodes: Vec<NodeRow>,
    notice: Changes,
}

impl Picture {
    /// Everything that can be seen of a store's sessions, in the order in which it lists them.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn of(store: &dyn Store) -> Result<Vec<Self>, Error> {
        const MOST: usize = 1_000_000;
        let mut pictures = Vec::new();
        for row in store.list(MOST, None).await? {
            let id = row.id.clone();
            pictures.push(Self {
                row,
                records: store.read(&id, 0, MOST).await?.entries,
                verdict: store.check(&id).await?,
                items: store.inbox(&id).await?,
                stops: store.stops(&id, 0).await?,
                approvals: store.approvals(&id).await?,
                tenures: store.tenures(&id).await?,
                nodes: store.nodes().await?,
                notice: store.notice(&id).await?,
            });
        }
        Ok(pictures)
    }

    /// What a release kept that knew no nodes.
    #[must_use]
    pub fn without_nodes(self) -> Self {
        Self { tenures: Vec::new(), nodes: Vec::new(), ..self }
    }

    /// Whether its journal's chain holds.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        matches!(self.verdict, ChainCheck::Intact(_))
    }
}

/// Fails unless both are the same, and says where they first differ.
///
/// # Errors
/// The difference.
pub fn alike(what: &str, is: &[Picture], should_be: &[Picture]) -> Result<(), BrokenStore> {
    for (is, should_be) in is.iter().zip(should_be) {
        super::same(what, is, should_be)?;
    }
    super::same(what, is.len(), should_be.len())
}
