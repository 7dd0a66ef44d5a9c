//! Every interleaving of small sessions, breadth first: what a session promises holds in each state (S6.13).

use std::{
    collections::{HashSet, VecDeque},
    hash::{Hash, Hasher},
};

use safepoint_scope::SafePoints;

use super::{
    Action, Input, Machine, Moment, OnTurnFailure, PlanResult, PreemptSpec, PreemptedItems, PushKind,
    QueueAfterStop, RequestAnswer, Rules, SessionPhase, StartFrom, StopWhy, Strength, TurnEnd,
};
use crate::{
    run::steer::SteerTiming,
    session::outcome::{IfUndelivered, ItemOutcome, PreemptOutcome},
    value::ids::{ItemId, TurnId},
};

mod asked;
mod ends;
mod holds;
mod item_stops;
mod stops;
mod witness;
mod world;

use world::{Budget, World};

const PLAIN: PreemptSpec =
    PreemptSpec { points: Some(SafePoints::ANY), grace: None, delay: None, turn: None, forgets: false };
const NOW: PreemptSpec = PreemptSpec { points: None, ..PLAIN };
const WITHIN: PreemptSpec = PreemptSpec { grace: Some(5), ..PLAIN };
const LATER: PreemptSpec = PreemptSpec { delay: Some(3), ..PLAIN };
const NAMED: PreemptSpec = PreemptSpec { turn: Some(TurnId::new(1)), ..PLAIN };
const ROLLBACK: PreemptSpec = PreemptSpec { forgets: true, ..NOW };
const STEER: PushKind = PushKind::Steer(SteerTiming::NextRequest, IfUndelivered::Return);
const STEER_FIRST: PushKind =
    PushKind::SteerTurn(TurnId::new(1), SteerTiming::NextRequest, IfUndelivered::Queue);
const STEER_OR_QUEUE: PushKind = PushKind::Steer(SteerTiming::AtOnce, IfUndelivered::Queue);

/// Visits every state that `budget` allows, and checks each; returns how many there are. States are compared by a
/// 128-bit digest, so that a million of them fit in little room.
fn explore(pushes: &[PushKind], budget: Budget, rules: Rules) -> usize {
    explore_from(World::new(rules, budget), pushes)
}

fn explore_from(first: World, pushes: &[PushKind]) -> usize {
    let mut seen = HashSet::from([digest(&first)]);
    let mut next = VecDeque::from([first]);
    while let Some(world) = next.pop_front() {
        world.can_end();
        for step in world.steps(pushes) {
            let mut after = world.clone();
            after.take(&step);
            if seen.insert(digest(&after)) {
                next.push_back(after);
            }
            assert!(seen.len() < MOST, "more than {MOST} states: choose a smaller configuration");
        }
    }
    seen.len()
}

/// Beyond this a configuration is not small.
const MOST: usize = 400_000;

fn digest(world: &World) -> (u64, u64) {
    let mut lanes = Lanes(1, 2);
    world.hash(&mut lanes);
    (lanes.0, lanes.1)
}

/// Two hashes in one pass, each of folded products; the standard one twice is most of the time of an unoptimised test.
struct Lanes(u64, u64);

impl Lanes {
    fn fold(lane: u64, word: u64, salt: u64) -> u64 {
        let product = u128::from(lane ^ word ^ salt) * u128::from(salt);
        (product >> 64) as u64 ^ product as u64 ^ lane.rotate_left(23)
    }
}

impl Hasher for Lanes {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = Self::fold(self.0, word, 0x9E37_79B9_7F4A_7C15);
        self.1 = Self::fold(self.1, word, 0xC2B2_AE3D_27D4_EB4F);
    }
    fn finish(&self) -> u64 {
        self.0 ^ self.1
    }
}

const RULES: Rules = Rules { max_preempted: 1, on_failure: OnTurnFailure::Wait };
const NONE: Budget = Budget {
    pushes: 0,
    stops: 0,
    stop_turns: 0,
    stop_items: 0,
    resumes: 0,
    withdraws: 0,
    ticks: 0,
    breaks: 0,
    turns: 4,
    asides: 0,
};

/// S6.13, S6.3, S6.7, S6.11: two items of every kind against two stops of the session, escalating.
#[test]
fn pushes_against_stops() {
    let all = [PushKind::Enqueue, PushKind::Reject, STEER, STEER_OR_QUEUE, STEER_FIRST]
        .into_iter()
        .chain([PLAIN, NOW, WITHIN, LATER, NAMED, ROLLBACK].map(PushKind::Preempt));
    let pushes: Vec<PushKind> = all.collect();
    let budget = Budget { pushes: 2, stops: 2, ticks: 2, turns: 3, ..NONE };
    let states = explore(&pushes, budget, RULES);
    println!("pushes against stops: {states} states");
    assert!(states > 10_000, "only {states} states: the search has lost its way");
}

/// S6.13, S6.12: three items, preempts in a row, a protected turn.
#[test]
fn preempts_in_a_row() {
    let pushes = [PushKind::Enqueue, PushKind::Preempt(PLAIN)];
    let states = explore(&pushes, Budget { pushes: 3, stops: 1, ..NONE }, RULES);
    println!("preempts in a row: {states} states");
    assert!(states > 10_000, "only {states} states: the search has lost its way");
}

/// S6.13, S6.9: planners, strategies and readers that fail at every point.
#[test]
fn callbacks_that_fail() {
    let pushes = [PushKind::Enqueue, PushKind::Preempt(PLAIN), PushKind::Preempt(LATER), STEER];
    let states = explore(&pushes, Budget { pushes: 2, stops: 1, ticks: 1, breaks: 1, ..NONE }, RULES);
    println!("callbacks that fail: {states} states");
    assert!(states > 5_000, "only {states} states: the search has lost its way");
}

/// S6.13, S5.3, S8.3: turns that end early, are resumed, decided, stopped alone, and items that are taken back.
#[test]
fn turns_that_end_early() {
    let pushes = [PushKind::Enqueue, PushKind::Preempt(PLAIN), STEER_OR_QUEUE];
    for on_failure in [OnTurnFailure::Wait, OnTurnFailure::Continue] {
        let rules = Rules { on_failure, ..RULES };
        let resumed = Budget { pushes: 2, stop_turns: 1, resumes: 1, ..NONE };
        let taken_back = Budget { pushes: 2, stops: 1, withdraws: 1, ..NONE };
        for budget in [resumed, taken_back] {
            let states = explore(&pushes, budget, rules);
            println!("turns that end early ({on_failure:?}): {states} states");
            assert!(states > 5_000, "only {states} states: the search has lost its way");
        }
    }
}

/// S6.13, S5.3, S6.12: items that are taken back while a resume is planned, or after a stop of the turn alone: the
/// resume still comes, and older items begin no turn.
#[test]
fn items_that_are_taken_back_around_a_resume() {
    let pushes = [PushKind::Enqueue];
    let budget = Budget { pushes: 3, stop_turns: 1, resumes: 1, withdraws: 1, ..NONE };
    let states = explore(&pushes, budget, RULES);
    println!("taken back around a resume: {states} states");
    assert!(states > 5_000, "only {states} states: the search has lost its way");
}

/// S6.19, S6.13: one item is stopped wherever it is, in every order with its turn, its plan, a resume, a decision and stops.
#[test]
fn an_item_is_stopped_wherever_it_is() {
    let pushes = [PushKind::Enqueue, PushKind::Preempt(PLAIN), STEER_OR_QUEUE];
    let alone = Budget { pushes: 2, stop_items: 2, resumes: 1, turns: 2, ..NONE };
    let beside = Budget { pushes: 2, stop_items: 1, stop_turns: 1, stops: 1, turns: 2, ..NONE };
    for budget in [alone, beside] {
        let states = explore(&pushes, budget, RULES);
        println!("an item is stopped: {states} states");
        assert!(states > 5_000, "only {states} states: the search has lost its way");
    }
    let apart = World::new(RULES, Budget { pushes: 2, stop_items: 1, turns: 2, ..NONE }).apart();
    let states = explore_from(apart, &pushes);
    println!("an item is stopped, one message at a time: {states} states");
    assert!(states > 1_000, "only {states} states: the search has lost its way");
}

/// S8.3, S6.13: a suspended turn: decided, preempted, stopped alone, the session stopped, in every order.
#[test]
fn decisions_in_every_order() {
    let pushes = [PushKind::Enqueue, PushKind::Preempt(LATER), PushKind::Preempt(ROLLBACK)];
    let budget = Budget { pushes: 2, stops: 1, stop_turns: 1, resumes: 1, ticks: 1, turns: 2, ..NONE };
    let states = explore(&pushes, budget, RULES);
    println!("decisions: {states} states");
    assert!(states > 5_000, "only {states} states: the search has lost its way");
}

/// S6.8, S9.1: a session with a background run is not idle, however stops and arrivals interleave with it.
#[test]
fn background_work_around_idleness() {
    let pushes = [PushKind::Enqueue];
    let budget = Budget { pushes: 2, stops: 2, ticks: 3, asides: 2, turns: 2, ..NONE };
    let states = explore(&pushes, budget, RULES);
    println!("background work: {states} states");
    assert!(states > 1_000, "only {states} states: the search has lost its way");
}

/// S6.8: idleness with arrivals, stops and withdrawals around it.
#[test]
fn idleness_in_every_order() {
    let pushes = [PushKind::Enqueue, PushKind::Reject, STEER];
    let budget = Budget { pushes: 2, stops: 3, withdraws: 1, ticks: 4, ..NONE };
    let states = explore(&pushes, budget, RULES);
    println!("idleness: {states} states");
    assert!(states > 5_000, "only {states} states: the search has lost its way");
}

/// S6.21, S6.8: a stored session whose turn waits for a decision is idle, however decisions, arrivals and stops interleave with that.
#[test]
fn idleness_of_what_waits_in_a_store() {
    let budget = Budget { pushes: 1, stops: 2, resumes: 1, ticks: 3, turns: 1, ..NONE };
    for stored in [&[][..], &[PushKind::Enqueue]] {
        let opened = World::new(RULES, budget).opened(RULES, Some(true), stored);
        let states = explore_from(opened, &[PushKind::Enqueue, STEER_OR_QUEUE]);
        println!("idleness in a store: {states} states");
        assert!(states > 500, "only {states} states: the search has lost its way");
    }
}

/// S6.13, S6.1: the entrance before the machine: in whatever order items are accepted, received and stopped,
/// a plan sees all items accepted before it, in the order of acceptance, and what arrives while the planner
/// runs is planned too.
#[test]
fn the_door_before_the_machine() {
    let pushes = [PushKind::Enqueue, PushKind::Preempt(PLAIN), STEER_OR_QUEUE];
    let budget = Budget { pushes: 3, turns: 2, ..NONE };
    let stopped = Budget { pushes: 2, stops: 1, stop_turns: 1, withdraws: 1, turns: 2, ..NONE };
    for budget in [budget, stopped] {
        let states = explore_from(World::new(RULES, budget).apart(), &pushes);
        println!("the inbox: {states} states");
        assert!(states > 5_000, "only {states} states: the search has lost its way");
    }
}

/// S6.13, S6.2, S5.3: a session is opened on what the store holds, and more is pushed at once: it runs in the order of
/// acceptance, and the first plan sees all of it.
#[test]
fn what_the_store_holds_comes_before_what_is_pushed() {
    let stored = [PushKind::Enqueue, STEER_OR_QUEUE, PushKind::Enqueue];
    let budget = Budget { pushes: 1, stops: 1, resumes: 1, turns: 3, ..NONE };
    for left in [None, Some(false), Some(true)] {
        let opened = World::new(RULES, budget).opened(RULES, left, &stored).apart();
        let states = explore_from(opened, &[PushKind::Enqueue, PushKind::Preempt(NOW)]);
        println!("opened ({left:?}): {states} states");
        assert!(states > 1_000, "only {states} states: the search has lost its way");
    }
}
