//! What must hold at every step of a simulated fleet (S7.64).
//!
//! **Invariants**: it sees each request at the moment in which the store does it, and each effect as it begins and ends. The first
//! rule that is broken is kept, and nothing after it counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

use safepoint::{
    ids::{NodeId, SessionId},
    raw::store::{Changes, Rest},
};
use tokio::time::Instant;

use super::{figures::FleetFigures, trace::Trace};
use crate::sync::lock;

/// Watches a fleet.
#[derive(Debug)]
pub(super) struct Judge {
    /// Held for one step. No other lock is taken under it.
    court: Mutex<Court>,
}

#[derive(Debug)]
struct Court {
    trace: Trace,
    broken: Option<String>,
    /// Who may write each session, by what the store has answered.
    holders: BTreeMap<SessionId, (NodeId, u64)>,
    /// Effects whose process is alive, with the epoch of their owner.
    alive: BTreeMap<SessionId, BTreeMap<u64, u64>>,
    /// Every effect that ever began: the session and the item.
    begun: BTreeSet<(SessionId, u64)>,
    /// Since when a session wants an owner, and whether a node that held it was buried.
    wanting: BTreeMap<SessionId, (Instant, bool)>,
    /// Stops that were asked for and that no owner has recorded as done.
    stops: BTreeMap<(SessionId, u64), Instant>,
    /// Of stops of one item: the effect that it is to end. Any other stop is to end each of its session.
    item_stops: BTreeMap<(SessionId, u64), u64>,
    figures: FleetFigures,
}

impl Judge {
    pub(super) fn new(watch: &[String]) -> Self {
        let court = Court {
            trace: Trace::new(watch),
            broken: None,
            holders: BTreeMap::new(),
            alive: BTreeMap::new(),
            begun: BTreeSet::new(),
            wanting: BTreeMap::new(),
            stops: BTreeMap::new(),
            item_stops: BTreeMap::new(),
            figures: FleetFigures::default(),
        };
        Self { court: Mutex::new(court) }
    }

    /// Something happened that breaks no rule by itself.
    pub(super) fn saw(&self, kind: &'static str, what: impl std::fmt::Display) {
        lock(&self.court).trace.step(kind, what);
    }

    /// A rule is broken.
    pub(super) fn breaks(&self, what: String) {
        lock(&self.court).breaks(what);
    }

    /// The first rule that was broken.
    pub(super) fn broken(&self) -> Option<String> {
        lock(&self.court).broken.clone()
    }

    /// A session was given something to do.
    pub(super) fn given(&self, session: &SessionId) {
        let mut court = lock(&self.court);
        if !court.holders.contains_key(session) {
            court.wanting.entry(session.clone()).or_insert((Instant::now(), false));
        }
    }

    /// A stop was asked for, of this effect or of all that there are.
    pub(super) fn stop_asked(&self, session: &SessionId, number: u64, effect: Option<u64>) {
        self.given(session);
        let mut court = lock(&self.court);
        court.trace.step("stop", format_args!("{session} {number}"));
        let stop = (session.clone(), number);
        court.item_stops.extend(effect.map(|effect| (stop.clone(), effect)));
        court.stops.insert(stop, Instant::now());
    }

    /// The store gave the session to this node. No effect of an earlier owner may be alive.
    pub(super) fn acquired(&self, session: &SessionId, node: &NodeId, epoch: u64) {
        let mut court = lock(&self.court);
        court.trace.step("acquired", format_args!("{session} {node} {epoch}"));
        let alive = court.alive.get(session).and_then(|alive| alive.keys().next_back().copied());
        if let Some(item) = alive {
            court.breaks(format!("{session} has a new owner while its effect {item} is alive"));
        }
        court.holders.insert(session.clone(), (node.clone(), epoch));
        if let Some((since, is_bereft)) = court.wanting.remove(session) {
            court.figures.taken(since.elapsed(), is_bereft);
        }
    }

    /// The store took a write under this lease.
    pub(super) fn appended(&self, session: &SessionId, node: &NodeId, epoch: u64) {
        let mut court = lock(&self.court);
        court.trace.step("appended", format_args!("{session} {node} {epoch}"));
        let may_write =
            court.holders.get(session).is_some_and(|(holder, newest)| holder == node && *newest == epoch);
        if !may_write {
            let holder = court.holders.get(session).cloned();
            court.breaks(format!("{node} wrote {session} with epoch {epoch}; its owner is {holder:?}"));
        }
    }

    /// The epoch under which this node holds the session; 0 if it does not.
    pub(super) fn epoch_of(&self, session: &SessionId, node: &NodeId) -> u64 {
        let court = lock(&self.court);
        let held = court.holders.get(session).filter(|(holder, _)| holder == node);
        held.map(|(_, epoch)| *epoch).unwrap_or_default()
    }

    /// The store took the session back, with what its holder said of it.
    pub(super) fn released(&self, session: &SessionId, (seen, rest): (Changes, Rest)) {
        let mut court = lock(&self.court);
        court.trace.step("released", format_args!("{session} {rest:?} {seen:?}"));
        court.holders.remove(session);
    }

    /// These nodes hold nothing any more: they were buried, or left.
    pub(super) fn ended(&self, kind: &'static str, nodes: &[NodeId]) {
        if nodes.is_empty() {
            return;
        }
        let mut court = lock(&self.court);
        let ended: BTreeSet<&NodeId> = nodes.iter().collect();
        nodes.iter().for_each(|node| court.trace.step(kind, node));
        let bereft: Vec<SessionId> = court
            .holders
            .iter()
            .filter(|(_, (node, _))| ended.contains(node))
            .map(|(session, _)| session.clone())
            .collect();
        for session in bereft {
            court.holders.remove(&session);
            court.wanting.entry(session).or_insert((Instant::now(), true));
        }
    }

    /// A node was buried that could be reached and ran.
    pub(super) fn buried_alive(&self) {
        lock(&self.court).figures.false_burials += 1;
    }

    /// An effect begins, with so much of its owner's lease left by the owner's clock.
    pub(super) fn begins(&self, session: &SessionId, item: u64, epoch: u64, left: Duration) {
        let mut court = lock(&self.court);
        court.trace.step("begins", format_args!("{session} {item} {epoch}"));
        court.figures.effects += 1;
        if left.is_zero() {
            court.breaks(format!("effect {item} of {session} begins, and its owner's lease is over"));
        }
        if !court.begun.insert((session.clone(), item)) {
            court.breaks(format!("effect {item} of {session} begins twice"));
        }
        let alive = court.alive.entry(session.clone()).or_default();
        alive.insert(item, epoch);
        let of_others = alive.values().any(|other| *other != epoch);
        if of_others {
            court.breaks(format!("effect {item} of {session} begins while one of another owner is alive"));
        }
    }

    /// The process of an effect is gone, if it was not before.
    pub(super) fn ends(&self, session: &SessionId, item: u64, how: &'static str) {
        let mut court = lock(&self.court);
        let Some(alive) = court.alive.get_mut(session) else { return };
        if alive.remove(&item).is_none() {
            return;
        }
        if alive.is_empty() {
            court.alive.remove(session);
        }
        court.trace.step(how, format_args!("{session} {item}"));
    }

    /// An owner recorded that a stop is done. What it was to end is not alive.
    pub(super) fn stop_done(&self, session: &SessionId, number: u64) {
        let mut court = lock(&self.court);
        court.trace.step("stopped", format_args!("{session} {number}"));
        let stop = (session.clone(), number);
        let effect = court.item_stops.get(&stop);
        let is_to_end = |item: &u64| effect.is_none_or(|effect| effect == item);
        if court.alive.get(session).is_some_and(|alive| alive.keys().any(is_to_end)) {
            court.breaks(format!("stop {number} of {session} is recorded as done while an effect is alive"));
        }
        if let Some(asked) = court.stops.remove(&stop) {
            court.figures.stopped(asked.elapsed());
        }
    }

    /// The session is parked until a person asks for it: it wants no owner.
    pub(super) fn parked(&self, session: &SessionId) {
        let mut court = lock(&self.court);
        court.figures.parked += 1;
        court.trace.step("parked", session);
    }

    /// The sessions that want an owner or have one.
    pub(super) fn busy(&self) -> Vec<SessionId> {
        let court = lock(&self.court);
        let stops = court.stops.keys().map(|(session, _)| session);
        let all = court.wanting.keys().chain(court.holders.keys()).chain(court.alive.keys()).chain(stops);
        all.cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What is known at the end.
    pub(super) fn closes(&self) -> (FleetFigures, u64, Vec<String>) {
        let court = lock(&self.court);
        let figures = court.figures.clone().with(court.trace.steps(), court.trace.counts());
        (figures, court.trace.hash(), court.trace.last())
    }

    /// How many times a node took a session.
    pub(super) fn took(&self, node: usize) {
        *lock(&self.court).figures.load.entry(node).or_default() += 1;
    }
}

impl Court {
    fn breaks(&mut self, what: String) {
        self.trace.step("BROKEN", &what);
        if self.broken.is_none() {
            self.broken = Some(what);
        }
    }
}
