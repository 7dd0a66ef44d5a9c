//! A fleet of nodes, simulated: real [nodes](safepoint::session::Node), leases and placement over a store in memory, in one thread with a
//! paused clock, and everything that goes wrong follows from a seed (S7.63).
//!
//! Owners are scripted: they take sessions by the contract of the store, begin effects, obey stops, and give the sessions back. Or they
//! are the sessions of the engine, with an agent that calls a tool ([`Owners`]). Between
//! each node and the store is a network that delays messages, loses answers and is cut. Processes crash, are paused and drain, the store
//! goes away, clocks are up to 2 % off, and wakes are lost, doubled and brought to the wrong node. At every step it is checked that one
//! owner writes, that no effect begins twice, after its lease or beside one of another owner, and that what is recorded as stopped has
//! ended; and at the end that each stop was recorded and that nothing starves (S7.64).
//!
//! ```
//! use safepoint_testkit::fleet::{FleetPlan, simulate};
//! let report = simulate(&FleetPlan::small(), 7);
//! assert_eq!(report.broken, None, "{}", report.last.join("\n"));
//! assert_eq!(report.hash, simulate(&FleetPlan::small(), 7).hash, "one seed twice is one trace");
//! ```

use std::{sync::Arc, time::Duration};

use safepoint::raw::simulation::Seeded;
use tokio::runtime::Builder;

mod delivery;
mod dice;
mod effect;
mod figures;
mod judge;
mod life;
mod link;
mod owner;
mod payer;
mod plan;
mod sessions;
mod site;
mod trace;
mod wire;
mod world;

pub use figures::FleetFigures;
pub use plan::{FleetPlan, Owners, Sabotage};

use dice::Dice;
use judge::Judge;
use life::MakesTaker;
use owner::ScriptedOwner;
use sessions::SessionOwner;
use world::World;

/// How long the lease of a node is.
const TTL: Duration = Duration::from_secs(4);
/// How long it must be over before another node buries it: within it an effect is dead, by clocks that are 2 % apart.
const MARGIN: Duration = Duration::from_millis(1_250);

/// What came of a simulation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FleetReport {
    /// From which everything followed.
    pub seed: u64,
    /// Two simulations of which anything differs have another one.
    pub hash: u64,
    /// The first rule that was broken, if one was.
    pub broken: Option<String>,
    /// The last steps, a line each.
    pub last: Vec<String>,
    /// What was measured.
    pub figures: FleetFigures,
}

/// Simulates a fleet.
///
/// # Panics
/// Within a tokio runtime.
#[must_use]
pub fn simulate(plan: &FleetPlan, seed: u64) -> FleetReport {
    let (longest, owners) = (plan.effect, plan.owners);
    let dice = Arc::new(Dice::of(seed.rotate_left(u64::BITS / 2)));
    simulated(plan, seed, move |judge| {
        let judge = Arc::clone(judge);
        Arc::new(move |store, node, link| {
            let (judge, dice) = (Arc::clone(&judge), Arc::clone(&dice));
            match owners {
                Owners::Scripted => Arc::new(ScriptedOwner { store, node, link, judge, dice, longest }) as _,
                Owners::Sessions => Arc::new(SessionOwner::new(node, (link, judge, dice), longest)) as _,
            }
        })
    })
}

fn simulated(plan: &FleetPlan, seed: u64, taker: impl FnOnce(&Arc<Judge>) -> MakesTaker) -> FleetReport {
    let _ids = Seeded::with(seed);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime of one thread needs nothing");
    runtime.block_on(async {
        // What counts time is made here, where it is virtual.
        let judge = Arc::new(Judge::new(&plan.watch));
        let taker = taker(&judge);
        let world = World::new(plan.clone(), seed, &judge, taker);
        let machine = world.site().machine().clone();
        machine.run(world.play()).await;
        let (figures, hash, last) = judge.closes();
        FleetReport { seed, hash, broken: judge.broken(), last, figures }
    })
}

#[cfg(test)]
mod tests;
