//! What is between a node and the store: how long a message takes, and whether it arrives.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use safepoint::{
    ids::SessionId,
    raw::{simulation::SimulatedMachine, store::NodeLease},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use super::dice::Dice;
use crate::sync::lock;

/// How long a message takes that nothing disturbs.
const DELAY: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(8));

/// The network and the machine of one node.
#[derive(Debug)]
pub(super) struct NodeLink {
    pub(super) number: usize,
    dice: Dice,
    loss: u32,
    /// Held for one look or one entry.
    state: Mutex<LinkState>,
}

#[derive(Debug)]
struct LinkState {
    machine: SimulatedMachine,
    cut_until: Instant,
    slow: Option<(Instant, Duration)>,
    /// Until when its last disturbance may matter.
    disturbed_until: Instant,
    lease: Option<NodeLease>,
    /// Who on this node is woken when others do something to a session.
    seats: BTreeMap<SessionId, Arc<Notify>>,
}

impl NodeLink {
    pub(super) fn new(number: usize, seed: u64, loss: u32, machine: SimulatedMachine) -> Self {
        let now = Instant::now();
        let state = LinkState {
            machine,
            cut_until: now,
            slow: None,
            disturbed_until: now,
            lease: None,
            seats: BTreeMap::new(),
        };
        Self { number, dice: Dice::of(seed), loss, state: Mutex::new(state) }
    }

    pub(super) fn machine(&self) -> SimulatedMachine {
        lock(&self.state).machine.clone()
    }

    /// The node's process begins anew, on this machine.
    pub(super) fn replace(&self, machine: SimulatedMachine) {
        let mut state = lock(&self.state);
        (state.machine, state.lease) = (machine, None);
        state.seats.clear();
    }

    pub(super) fn cut(&self, time: Duration) {
        self.disturb(time);
        let mut state = lock(&self.state);
        state.cut_until = state.cut_until.max(Instant::now() + time);
    }

    pub(super) fn slow(&self, most: Duration) {
        self.disturb(most);
        lock(&self.state).slow = Some((Instant::now() + most, most));
    }

    /// What the node does from now on, and for this time more, may be because of a fault.
    pub(super) fn disturb(&self, time: Duration) {
        // A lease, a margin and an answer.
        const MATTERS: Duration = Duration::from_secs(10);
        let mut state = lock(&self.state);
        state.disturbed_until = state.disturbed_until.max(Instant::now() + time + MATTERS);
    }

    pub(super) fn is_disturbed(&self) -> bool {
        Instant::now() < lock(&self.state).disturbed_until
    }

    pub(super) fn is_cut(&self) -> bool {
        Instant::now() < lock(&self.state).cut_until
    }

    /// A message is on its way; whether it arrives.
    pub(super) async fn carries(&self) -> bool {
        let slow = lock(&self.state).slow.filter(|(until, _)| Instant::now() < *until);
        let most = slow.map_or(DELAY.1, |(_, most)| most);
        let (takes, is_lost) = (self.dice.time((DELAY.0, most)), self.dice.is_in(self.loss));
        let is_cut = self.is_cut();
        sleep(takes).await;
        !(is_cut || is_lost || self.is_cut())
    }

    /// The same for a request: one that meets a cut is lost, or is held somewhere and arrives once the cut is over.
    pub(super) async fn delivers(&self) -> bool {
        const HELD: u32 = 400;
        let until = lock(&self.state).cut_until;
        if Instant::now() < until && self.dice.is_in(HELD) {
            sleep_until(until).await;
        }
        self.carries().await
    }

    pub(super) fn has_lease(&self, lease: &NodeLease) {
        lock(&self.state).lease = Some(lease.clone());
    }

    pub(super) fn lease(&self) -> Option<NodeLease> {
        lock(&self.state).lease.clone()
    }

    /// Wakes this one when others do something to the session.
    pub(super) fn seat(&self, session: &SessionId) -> Arc<Notify> {
        let woken = Arc::<Notify>::default();
        lock(&self.state).seats.insert(session.clone(), Arc::clone(&woken));
        woken
    }

    pub(super) fn leave_seat(&self, session: &SessionId) {
        lock(&self.state).seats.remove(session);
    }

    pub(super) fn wake(&self, session: &SessionId) {
        if let Some(woken) = lock(&self.state).seats.get(session) {
            woken.notify_one();
        }
    }

    pub(super) fn wake_all(&self) {
        lock(&self.state).seats.values().for_each(|woken| woken.notify_one());
    }
}
