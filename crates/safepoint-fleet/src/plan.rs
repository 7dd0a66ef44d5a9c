//! How large a simulated fleet is, and what goes wrong in it.

use std::time::Duration;

use super::dice::Dice;

/// A fleet to simulate.
///
/// An example is at the [module](super).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FleetPlan {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many sessions are stored.
    pub sessions: usize,
    /// How many items are pushed, each to a session that the seed chooses.
    pub items: usize,
    /// How many stops are asked for, of sessions that have been given an item.
    pub stops: usize,
    /// How many faults there are.
    pub faults: usize,
    /// For how long items come and things go wrong.
    pub lasts: Duration,
    /// How long an effect takes at most.
    pub effect: Duration,
    /// How many sessions a node takes at once.
    pub room: usize,
    /// How often an answer of the store is lost on its way, of a thousand times. The request is asked again.
    pub loss: u32,
    /// Steps in whose words one of these occurs are printed as they happen: to follow a session of a seed that fails.
    pub watch: Vec<String>,
    /// What owns the sessions.
    pub owners: Owners,
    /// What is taken out of the store's rules.
    pub sabotage: Sabotage,
}

/// What owns the sessions of a fleet. Exhaustive: both know the contract of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owners {
    /// A script, by the contract of the store alone.
    #[default]
    Scripted,
    /// The engine: [sessions](safepoint::Session) of an agent that calls a tool for each item.
    Sessions,
}

/// A rule that is taken out, to see that the simulation finds it. Exhaustive: there is one for each that keeps two owners apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// None is.
    #[default]
    Nothing,
    /// A stale lease writes all the same.
    NoEpochCheck,
    /// A node is buried as soon as its lease is over, without the margin.
    NoMargin,
}

impl FleetPlan {
    /// Six nodes, 60 sessions and 12 faults: small enough for many seeds.
    #[must_use]
    pub fn small() -> Self {
        Self {
            nodes: 6,
            sessions: 60,
            items: 120,
            stops: 20,
            faults: 12,
            lasts: Duration::from_secs(60),
            effect: Duration::from_secs(6),
            room: 20,
            loss: 10,
            watch: Vec::new(),
            owners: Owners::Scripted,
            sabotage: Sabotage::Nothing,
        }
    }

    /// A thousand nodes, a million sessions of which a hundred thousand act, and an hour.
    #[must_use]
    pub fn large() -> Self {
        const HOUR: Duration = Duration::from_secs(3_600);
        Self {
            nodes: 1_000,
            sessions: 1_000_000,
            items: 100_000,
            stops: 2_000,
            faults: 1_000,
            lasts: HOUR,
            room: 1_000,
            ..Self::small()
        }
    }

    /// Fifty nodes and two thousand sessions as programs have them, with agents that call a tool.
    #[must_use]
    pub fn sessions() -> Self {
        Self {
            nodes: 50,
            sessions: 2_000,
            items: 2_000,
            stops: 200,
            faults: 80,
            lasts: Duration::from_secs(120),
            room: 100,
            owners: Owners::Sessions,
            ..Self::small()
        }
    }

    /// The same without this rule.
    #[must_use]
    pub fn without(self, sabotage: Sabotage) -> Self {
        Self { sabotage, ..self }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum FleetFault {
    /// The node's process dies; another one begins after this time.
    Crash(usize, Duration),
    /// The node's process is stopped, and continues after this time.
    Pause(usize, Duration),
    /// The node and the store do not reach each other for this time.
    Cut(usize, Duration),
    /// For this time each message between the node and the store may take as long as this.
    Slow(usize, Duration),
    /// The store is away for this time.
    Restart(Duration),
    /// The node is drained, and another one begins.
    Drain(usize),
}

/// What goes wrong, and when, in order.
pub(super) fn faults(plan: &FleetPlan, dice: &Dice) -> Vec<(Duration, FleetFault)> {
    const KINDS: u64 = 12;
    let between =
        |least: u64, most: u64| dice.time((Duration::from_millis(least), Duration::from_millis(most)));
    let mut faults: Vec<(Duration, FleetFault)> = (0..plan.faults)
        .map(|_| {
            let (at, node) = (dice.time((Duration::ZERO, plan.lasts)), dice.place(plan.nodes));
            let fault = match dice.below(KINDS) {
                0..3 => FleetFault::Crash(node, between(100, 8_000)),
                3..6 => FleetFault::Pause(node, between(200, 12_000)),
                6..9 => FleetFault::Cut(node, between(200, 12_000)),
                9 => FleetFault::Slow(node, between(100, 1_500)),
                10 => FleetFault::Drain(node),
                _ => FleetFault::Restart(between(200, 8_000)),
            };
            (at, fault)
        })
        .collect();
    // In the order of their times; those of one time in the order in which they were thrown.
    faults.sort_by_key(|(at, _)| *at);
    faults
}
