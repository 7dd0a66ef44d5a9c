//! One simulation: what is given to sessions, what goes wrong, and the wait until all has come to its end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::FutureExt as _;
use safepoint::{
    StopRequest,
    ids::SessionId,
    raw::{
        StoredStop, encode_item,
        store::{ApprovalsToWithdraw, InboxRow, NewItem, NewSession, Pushed, StopIntent},
        store_stop,
    },
    session::{Policy, QueueAfterStop},
    store::Store as _,
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};

use super::{
    dice::Dice,
    judge::Judge,
    life::{Life, LooseWakes, MakesTaker, machine},
    link::NodeLink,
    plan::{FleetFault, FleetPlan, Owners, faults},
    site::StoreSite,
    wire::WireStore,
};
use crate::sync::lock;

/// How long after the last fault everything that wants an owner has had one: a lease, a margin, the longest wait after deaths, and
/// the time until what was named is named again, several times over.
const STARVES_AFTER: Duration = Duration::from_secs(150);
/// How often it is looked whether all has come to its end.
const LOOK: Duration = Duration::from_millis(500);

/// A fleet, as the one that disturbs it has it.
pub(super) struct World {
    plan: FleetPlan,
    dice: Dice,
    judge: Arc<Judge>,
    site: Arc<StoreSite>,
    links: Vec<Arc<NodeLink>>,
    /// The request to drain of each node's process. Held to take it or to replace it.
    drains: Vec<Arc<Mutex<Option<oneshot::Sender<()>>>>>,
    wakes: Arc<LooseWakes>,
    taker: MakesTaker,
    /// Those that were given something, each with the number and the text of its newest item, if it has one.
    given: BTreeMap<usize, (u64, u64)>,
    /// How many items were pushed.
    pushed: u64,
    /// Items of sessions of the engine that are to stop: a turn that was stopped with one waits for a person, who never comes here.
    stopped: BTreeSet<(usize, u64)>,
}

/// What happens at a time.
enum Event {
    Push(usize),
    Stop(usize),
    Fault(FleetFault),
}

impl World {
    pub(super) fn new(plan: FleetPlan, seed: u64, judge: &Arc<Judge>, taker: MakesTaker) -> Self {
        let dice = Dice::of(seed);
        let site = Arc::new(StoreSite::new(Arc::clone(judge), plan.sabotage));
        let link = |number| Arc::new(NodeLink::new(number, dice.number(), plan.loss, machine(&dice)));
        let links: Vec<Arc<NodeLink>> = (0..plan.nodes).map(link).collect();
        site.is_reached_by(&links);
        let wakes = Arc::new(LooseWakes::new(plan.nodes, dice.number()));
        let drains = links.iter().map(|_| Arc::default()).collect();
        let judge = Arc::clone(judge);
        Self {
            plan,
            dice,
            judge,
            site,
            links,
            drains,
            wakes,
            taker,
            given: BTreeMap::new(),
            pushed: 0,
            stopped: BTreeSet::new(),
        }
    }

    pub(super) fn site(&self) -> &Arc<StoreSite> {
        &self.site
    }

    /// Plays it to its end.
    pub(super) async fn play(mut self) {
        for number in 0..self.plan.sessions {
            self.create(number).await;
        }
        (0..self.links.len()).for_each(|node| self.begins(node));
        let began = Instant::now();
        for (at, event) in self.timeline() {
            sleep_until(began + at).await;
            if self.judge.broken().is_some() {
                return;
            }
            match event {
                Event::Push(session) => self.push(session).await,
                Event::Stop(session) => self.stop(session).await,
                Event::Fault(fault) => self.goes_wrong(fault),
            }
        }
        self.comes_to_its_end().await;
    }

    fn timeline(&self) -> Vec<(Duration, Event)> {
        let at = || self.dice.time((Duration::ZERO, self.plan.lasts));
        let session = || self.dice.place(self.plan.sessions);
        let pushes: Vec<usize> = (0..self.plan.items).map(|_| session()).collect();
        let stopped = |_| pushes.get(self.dice.place(pushes.len())).copied().unwrap_or_default();
        let stops: Vec<usize> = (0..self.plan.stops).map(stopped).collect();
        let mut events: Vec<(Duration, Event)> = faults(&self.plan, &self.dice)
            .into_iter()
            .map(|(at, fault)| (at, Event::Fault(fault)))
            .chain(pushes.iter().map(|session| (at(), Event::Push(*session))))
            .chain(stops.iter().map(|session| (at(), Event::Stop(*session))))
            .collect();
        // Stable: what happens at one time happens in the order in which it was thrown.
        events.sort_by_key(|(at, _)| *at);
        events
    }

    async fn create(&self, number: usize) {
        if let Err(error) = self.site.store().create(NewSession::of(id(number))).await {
            self.judge.breaks(format!("a session could not be created: {error}"));
        }
    }

    async fn push(&mut self, session: usize) {
        let item = self.item();
        self.judge.saw("pushed", session);
        self.judge.given(&id(session));
        match self.site.store().push(&id(session), item).await {
            Ok(Pushed::Accepted(number)) => drop(self.given.insert(session, (number, self.pushed))),
            refused => self.judge.breaks(format!("an item could not be pushed: {refused:?}")),
        }
    }

    /// A script is to stop what it does, and a session of the engine its newest item, wherever that is: for a session without one that
    /// means nothing.
    async fn stop(&mut self, session: usize) {
        let (store, id) = (self.site.store(), id(session));
        let (asked, effect) = match (self.plan.owners, self.given.get(&session).copied()) {
            (Owners::Scripted, item) => {
                self.given.insert(session, item.unwrap_or_default());
                let stop = StopIntent { bytes: Vec::new(), approvals: ApprovalsToWithdraw::Stay };
                (store.ask_stop(&id, stop).await, None)
            }
            (Owners::Sessions, Some((item, text))) => {
                self.stopped.insert((session, item));
                let stop = StoredStop::Item(item, StopRequest::now(), QueueAfterStop::Continues);
                (store_stop(&*store, &id, &stop).await, Some(text))
            }
            (Owners::Sessions, None) => return,
        };
        match asked {
            Ok(number) => self.judge.stop_asked(&id, number, effect),
            Err(error) => self.judge.breaks(format!("a stop could not be asked for: {error}")),
        }
    }

    /// The next item: its text is its number, which no other item has.
    fn item(&mut self) -> NewItem {
        const CAPACITY: usize = 1_000;
        self.pushed += 1;
        let text = self.pushed.to_string();
        encode_item(&text, Policy::default(), None, CAPACITY).expect("a text can be written as JSON")
    }

    /// The process of a node begins.
    fn begins(&self, node: usize) {
        let (machine, life) = (self.links[node].machine(), self.life(node));
        drop(tokio::spawn(async move { machine.run(life.run()).await }));
    }

    fn life(&self, node: usize) -> Life {
        let link = &self.links[node];
        Life {
            link: Arc::clone(link),
            store: WireStore::new(Arc::clone(&self.site), Arc::clone(link)),
            judge: Arc::clone(&self.judge),
            taker: Arc::clone(&self.taker),
            wakes: Arc::clone(&self.wakes),
            room: self.plan.room,
            owners: self.plan.owners,
            drains: Arc::clone(&self.drains[node]),
        }
    }

    fn goes_wrong(&self, fault: FleetFault) {
        self.judge.saw("fault", format_args!("{fault:?}"));
        match fault {
            FleetFault::Crash(node, time) => self.crash(node, time),
            FleetFault::Pause(node, time) => {
                let machine = self.links[node].machine();
                self.links[node].disturb(time);
                machine.pause();
                drop(tokio::spawn(sleep(time).map(move |()| machine.resume())));
            }
            FleetFault::Cut(node, time) => self.links[node].cut(time),
            FleetFault::Slow(node, most) => self.links[node].slow(most),
            FleetFault::Restart(time) => {
                self.links.iter().for_each(|link| link.disturb(time));
                self.site.restart(time);
            }
            FleetFault::Drain(node) => {
                self.links[node].disturb(Duration::ZERO);
                let drain = lock(&self.drains[node]).take();
                if drain.is_some_and(|drain| drain.send(()).is_err()) {
                    // A node that is lost at this moment does not drain.
                }
            }
        }
    }

    fn crash(&self, node: usize, time: Duration) {
        let link = &self.links[node];
        let before = link.machine();
        if before.has_crashed() {
            return;
        }
        before.crash();
        link.disturb(time);
        let (link, after, life) = (Arc::clone(link), machine(&self.dice), self.life(node));
        drop(tokio::spawn(async move {
            sleep(time).await;
            link.replace(after.clone());
            after.run(life.run()).await
        }));
    }

    /// Waits until nothing is left to do. What was parked is unparked, as a person would.
    async fn comes_to_its_end(&self) {
        let began = Instant::now();
        let mut looks = 0_u32;
        while self.judge.broken().is_none() {
            let left = self.left().await;
            if left.is_empty() {
                return;
            }
            if began.elapsed() > STARVES_AFTER {
                self.judge.breaks(format!(
                    "{} sessions starve: {:?}",
                    left.len(),
                    left.iter().take(5).collect::<Vec<_>>()
                ));
            }
            const UNPARKS: u32 = 20;
            looks += 1;
            if looks.is_multiple_of(UNPARKS) {
                for session in &left {
                    // One that is not parked only has its deaths counted anew.
                    drop(self.site.store().unpark(session).await);
                }
            }
            sleep(LOOK).await;
        }
    }

    /// The sessions in which something is left to do, and those that a node has.
    async fn left(&self) -> Vec<SessionId> {
        let mut left: Vec<SessionId> = self.judge.busy();
        if !left.is_empty() {
            return left;
        }
        let store = self.site.store();
        for number in self.given.keys() {
            let session = id(*number);
            let is_wanted = |item: &InboxRow| !self.stopped.contains(&(*number, item.number));
            let waits = store.inbox(&session).await.is_ok_and(|items| items.iter().any(is_wanted));
            let stops = store.stops(&session, 0).await.unwrap_or_default();
            if waits || stops.iter().any(|stop| !stop.seen) {
                left.push(session);
            }
        }
        left
    }
}

fn id(number: usize) -> SessionId {
    format!("s{number}").into()
}
