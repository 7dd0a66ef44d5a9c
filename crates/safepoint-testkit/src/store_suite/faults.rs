//! Facts about faults: whatever goes wrong with one operation, the store is as if it was done, or as if it
//! was not.

use std::sync::Arc;

use futures_util::future::join;
use safepoint::store::{Error, MemoryStore, Store};

use crate::{
    fault_store::{FaultStore, OperationFault},
    tool_gate::ToolGate,
};

use super::{
    BrokenStore, Fresh, Population, Time, outside,
    play::{Picture, PlayStep, Player, alike, script},
    same,
};

/// An error, a lost answer, a death before and after, and a delay, at each operation of a long script. After
/// each fault the store is exactly as its answer says: the operation was done or was not. The script
/// continues to its end.
///
/// # Errors
/// The first fact that does not hold.
///
/// # Cancel safety
/// Nothing is lost but the check.
pub async fn faults(fresh: Fresh<'_>) -> Result<(), BrokenStore> {
    for at in 0..script().iter().filter(|step| is_asked(step)).count() {
        for fault in [
            OperationFault::Refused,
            OperationFault::Unknown,
            OperationFault::GoneBefore,
            OperationFault::GoneAfter,
        ] {
            one_goes_wrong(fresh, at, fault).await?;
        }
        one_is_late(fresh, at).await?;
    }
    Ok(())
}

fn is_asked(step: &PlayStep) -> bool {
    !matches!(step, PlayStep::Pass(_) | PlayStep::Say(..))
}

/// The script, played to the store and to a model of it, in worlds of their own.
async fn one_goes_wrong(fresh: Fresh<'_>, at: usize, fault: OperationFault) -> Result<(), BrokenStore> {
    let what = format!("{fault:?} at operation {at}");
    let (time, lives) = (Time::default(), Population::default());
    let [store, other] = fresh(outside(&time, &lives));
    let faulty: Arc<dyn Store> = Arc::new(FaultStore::over(store, at, fault.clone()));
    let mut player = Player::of(faulty, &time, &lives);
    let mut model = model();
    let mut faults = 0;
    for step in script() {
        let answer = player.play(&step).await;
        let is_fault = matches!(answer, Err(Error::Failed(_) | Error::Unknown(_) | Error::Gone));
        if !is_fault {
            same(&what, shown(answer), shown(model.play(&step).await))?;
            continue;
        }
        faults += 1;
        player = player.on(Arc::clone(&other));
        let is_done = matches!(fault, OperationFault::Unknown | OperationFault::GoneAfter);
        if is_done {
            // What the model answers is what was lost, be it a refusal.
            drop(model.play(&step).await);
            alike(&what, &Picture::of(&*other).await?, &Picture::of(&*model.store).await?)?;
            // A lease that was given is known to the model.
            player = model.on(Arc::clone(&other)).within(&player);
        } else {
            alike(&what, &Picture::of(&*other).await?, &Picture::of(&*model.store).await?)?;
            same(&what, shown(player.play(&step).await), shown(model.play(&step).await))?;
        }
    }
    same(&what, faults, 1)?;
    alike(&what, &Picture::of(&*other).await?, &Picture::of(&*model.store).await?)
}

/// A model of the store, in a separate world.
fn model() -> Player {
    let (time, lives) = (Time::default(), Population::default());
    Player::of(Arc::new(MemoryStore::new(outside(&time, &lives))), &time, &lives)
}

fn shown(answer: Result<String, Error>) -> String {
    format!("{answer:?}")
}

/// Whichever operation is late: others do not wait for it, and it is done then.
async fn one_is_late(fresh: Fresh<'_>, at: usize) -> Result<(), BrokenStore> {
    let what = format!("operation {at}, late");
    let (time, lives) = (Time::default(), Population::default());
    let [store, other] = fresh(outside(&time, &lives));
    let gate = ToolGate::shut();
    let late = Arc::new(FaultStore::over(store, at, OperationFault::Held(gate.clone())));
    let mut player = Player::of(Arc::clone(&late) as Arc<dyn Store>, &time, &lives);
    let mut model = model();
    for step in script() {
        let is_late = is_asked(&step) && late.asked() == at;
        let meanwhile = async {
            if !is_late {
                return Ok(None);
            }
            gate.came(1).await;
            let others = Picture::of(&*other).await;
            gate.open_for_all();
            others.map(Some)
        };
        let before = if is_late { Some(Picture::of(&*model.store).await?) } else { None };
        let (answer, others) = join(player.play(&step), meanwhile).await;
        if let (Some(others), Some(before)) = (others?, before) {
            alike(&what, &others, &before)?;
        }
        same(&what, shown(answer), shown(model.play(&step).await))?;
    }
    alike(&what, &Picture::of(&*other).await?, &Picture::of(&*model.store).await?)
}
