//! One simulation: a world that is played to its end in one thread with a paused clock.

use std::{sync::Arc, time::Duration};

use safepoint::raw::simulation::Seeded;
use tokio::runtime::Builder;

use crate::{
    dice::Dice,
    figures::FleetFigures,
    judge::Judge,
    life::MakesTaker,
    owner::ScriptedOwner,
    plan::{FleetPlan, Owners},
    sessions::SessionOwner,
    world::World,
};

/// How long the lease of a node is.
pub(crate) const TTL: Duration = Duration::from_secs(4);
/// How long it must be over before another node buries it: within it an effect is dead, by clocks that are 2 % apart.
pub(crate) const MARGIN: Duration = Duration::from_millis(1_250);

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

pub(crate) fn simulated(
    plan: &FleetPlan,
    seed: u64,
    taker: impl FnOnce(&Arc<Judge>) -> MakesTaker,
) -> FleetReport {
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
