//! What is so, whatever anybody says of it: the model server's log, the marks that a command leaves, the processes that
//! live. Receipts are held against these, and counted.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;

mod model;
mod processes;
mod stops;
mod ticks;

pub(super) use self::{
    model::{Fate, Model},
    processes::marked,
    stops::Stops,
    ticks::Ticks,
};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(10);

/// Polls a condition of the real world.
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) -> anyhow::Result<()> {
    let began = Instant::now();
    while !holds() {
        ensure!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// An empty folder in this place.
pub(super) fn fresh(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(std::fs::create_dir_all(folder)?)
}
