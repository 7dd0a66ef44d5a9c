//! Where the store is: its clocks, whether it is away, and what it does as the judge sees it.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, SystemTime},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use jiff::Timestamp;
use safepoint::{
    ids::{NodeId, SessionId},
    raw::{
        simulation::SimulatedMachine,
        store::{
            Appended, Changes, Durability, Environment, Lease, Leaving, Liveness, NodeLease, Rest, Since,
            Write,
        },
    },
    store::{Error, MemoryStore, NewNode, Store as _},
};
use tokio::time::Instant;

use super::{
    judge::Judge,
    link::NodeLink,
    plan::Sabotage,
    simulation::{MARGIN, TTL},
};
use crate::sync::lock;

/// The store of a fleet.
#[derive(Debug)]
pub(super) struct StoreSite {
    store: Arc<MemoryStore>,
    machine: SimulatedMachine,
    judge: Arc<Judge>,
    sabotage: Sabotage,
    outages: Arc<Outages>,
    /// The nodes that are present, each with its number. Held for one look or one entry.
    present: Mutex<Vec<(NodeId, usize)>>,
    links: OnceLock<Vec<Arc<NodeLink>>>,
}

/// When the store was away. Its lease clock stands still meanwhile, and a lease longer: each node can beat before one is buried (S7.54).
#[derive(Debug)]
struct Outages {
    began: Instant,
    /// Held for one look or one entry.
    state: Mutex<Outage>,
}

#[derive(Debug)]
struct Outage {
    /// Until when it is away.
    away_until: Instant,
    /// Until when its lease clock stands still, and since when.
    stands: Option<(Instant, Instant)>,
    /// How long it stood still before.
    stood: Duration,
}

impl Outages {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            state: Mutex::new(Outage { away_until: now, stands: None, stood: Duration::ZERO }),
        }
    }

    fn lease_clock(&self) -> Duration {
        let (now, state) = (Instant::now(), lock(&self.state));
        let stood = state.stands.map_or(Duration::ZERO, |(since, until)| now.min(until) - since);
        now - self.began - state.stood - stood
    }

    fn begin(&self, time: Duration) {
        let (now, mut state) = (Instant::now(), lock(&self.state));
        if let Some((since, until)) = state.stands.take() {
            state.stood += now.min(until) - since;
        }
        state.away_until = now + time;
        state.stands = Some((now, now + time + TTL));
    }
}

impl StoreSite {
    pub(super) fn new(judge: Arc<Judge>, sabotage: Sabotage) -> Self {
        let machine = SimulatedMachine::new(SystemTime::UNIX_EPOCH + DAY, 0);
        let outages = Arc::new(Outages::new());
        let (clock, uptime) = (machine.clone(), Arc::clone(&outages));
        let outside = Environment {
            clock: Arc::new(move || of(clock.uptime())),
            // They are on other machines: there is no proof.
            witness: Arc::new(|_| Liveness::Unknown),
            uptime: Arc::new(move |_| Some(uptime.lease_clock())),
            margin: if sabotage == Sabotage::NoMargin { Duration::ZERO } else { MARGIN },
        };
        let store = Arc::new(MemoryStore::new(outside));
        Self { store, machine, judge, sabotage, outages, present: Mutex::default(), links: OnceLock::new() }
    }

    pub(super) fn store(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.store)
    }

    pub(super) fn machine(&self) -> &SimulatedMachine {
        &self.machine
    }

    pub(super) fn judge(&self) -> &Judge {
        &self.judge
    }

    pub(super) fn is_away(&self) -> bool {
        Instant::now() < lock(&self.outages.state).away_until
    }

    /// The store goes away for this time.
    pub(super) fn restart(&self, time: Duration) {
        self.outages.begin(time);
    }

    /// A node's lease as the store has it: the node counts by another one.
    pub(super) fn theirs(node: &NodeLease) -> NodeLease {
        NodeLease::new(node.id().clone(), node.ttl(), Since::now())
    }

    /// These are all ways to it.
    pub(super) fn is_reached_by(&self, links: &[Arc<NodeLink>]) {
        if self.links.set(links.to_vec()).is_err() {
            // They are known.
        }
    }

    /// Whether nothing has disturbed the node that is buried.
    fn is_well(&self, id: &NodeId) -> bool {
        let number = lock(&self.present).iter().find(|(known, _)| known == id).map(|(_, number)| *number);
        let link = number.and_then(|number| self.links.get()?.get(number));
        link.is_some_and(|link| !link.is_disturbed())
    }

    pub(super) fn join(&self, node: NewNode, number: usize) -> BoxFuture<'static, Result<(), Error>> {
        let joined = self.store.join(node.clone()).now_or_never();
        if matches!(joined, Some(Ok(_))) {
            let mut present = lock(&self.present);
            // A namesake that was there is buried by this.
            let gone: Vec<NodeId> =
                present.extract_if(.., |(_, other)| *other == number).map(|(id, _)| id).collect();
            present.push((node.id, number));
            drop(present);
            self.judge.ended("buried", &gone);
        }
        answered(joined.map(|joined| joined.map(drop)))
    }

    pub(super) fn leave(&self, node: NodeId, how: Leaving) -> BoxFuture<'static, Result<(), Error>> {
        let left = self.store.leave(&node, how).now_or_never();
        if how == Leaving::Gone && matches!(left, Some(Ok(()))) {
            self.ended("left", &[node]);
        }
        answered(left)
    }

    pub(super) fn bury(&self) -> BoxFuture<'static, Result<Vec<NodeId>, Error>> {
        let buried = self.store.bury().now_or_never();
        if let Some(Ok(buried)) = &buried {
            buried.iter().filter(|id| self.is_well(id)).for_each(|_| self.judge.buried_alive());
            self.ended("buried", buried);
        }
        answered(buried)
    }

    fn ended(&self, how: &'static str, nodes: &[NodeId]) {
        self.judge.ended(how, nodes);
        lock(&self.present).retain(|(id, _)| !nodes.contains(id));
    }

    pub(super) fn acquire(
        &self,
        session: SessionId,
        node: NodeLease,
        number: usize,
    ) -> BoxFuture<'static, Result<u64, Error>> {
        let acquired = self.store.acquire(&session, &node).now_or_never();
        let epoch = acquired.map(|lease| lease.map(|lease| lease.epoch()));
        match &epoch {
            Some(Ok(epoch)) => {
                self.judge.took(number);
                self.judge.acquired(&session, node.id(), *epoch);
            }
            Some(Err(Error::Parked(..))) => self.judge.parked(&session),
            Some(Err(_)) | None => {}
        }
        answered(epoch)
    }

    pub(super) fn release(
        &self,
        lease: Lease,
        seen: Changes,
        rest: Rest,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let released = self.store.release(&lease, seen, rest).now_or_never();
        if matches!(released, Some(Ok(()))) {
            self.judge.released(lease.session(), (seen, rest));
        }
        answered(released)
    }

    pub(super) fn append(
        &self,
        lease: Lease,
        writes: Vec<Write>,
        class: Durability,
    ) -> BoxFuture<'static, Result<Appended, Error>> {
        let stops: Vec<u64> = writes.iter().filter_map(stop_seen).collect();
        let used = match self.sabotage {
            Sabotage::NoEpochCheck => self.newest(&lease),
            Sabotage::Nothing | Sabotage::NoMargin => lease.clone(),
        };
        let appended = self.store.append(&used, writes, class).now_or_never();
        if matches!(appended, Some(Ok(_))) {
            self.judge.appended(lease.session(), lease.node().id(), lease.epoch());
            stops.into_iter().for_each(|number| self.judge.stop_done(lease.session(), number));
        }
        answered(appended)
    }

    /// The lease that may write this session.
    fn newest(&self, lease: &Lease) -> Lease {
        let row = self.store.open(lease.session()).now_or_never().and_then(Result::ok);
        let newest = row.and_then(|row| {
            let node = NodeLease::new(row.holder?.node, TTL, Since::now());
            Some(Lease::new(row.id, row.epoch, node))
        });
        newest.unwrap_or_else(|| lease.clone())
    }
}

fn stop_seen(write: &Write) -> Option<u64> {
    if let Write::StopSeen(number) = write { Some(*number) } else { None }
}

/// The store in memory answers at once.
fn answered<T: Send + 'static>(answer: Option<Result<T, Error>>) -> BoxFuture<'static, Result<T, Error>> {
    let answer = answer.unwrap_or_else(|| Err(Error::Gone));
    std::future::ready(answer).boxed()
}

/// When a simulation begins.
pub(super) const DAY: Duration = Duration::from_secs(1_800_000_000);

fn of(uptime: Duration) -> Timestamp {
    Timestamp::try_from(SystemTime::UNIX_EPOCH + DAY + uptime).unwrap_or(Timestamp::MAX)
}
