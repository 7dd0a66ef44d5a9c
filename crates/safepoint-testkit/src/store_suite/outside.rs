//! A world in which the suite says what time it is and who lives.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use safepoint::raw::store::{Environment, Liveness};

use crate::sync::lock;

/// The time of day and that since the machine's start, which stand still until they are moved. Clones are the
/// same time.
/// The lock is held for one look or one move, so that both clocks move at once. A store may look under its own lock.
#[derive(Clone, Debug)]
pub struct Time(Arc<Mutex<Clocks>>);

#[derive(Debug)]
struct Clocks {
    day: Timestamp,
    up: Duration,
}

impl Default for Time {
    fn default() -> Self {
        const START: Timestamp = Timestamp::constant(1_800_000_000, 0);
        const UP: Duration = Duration::from_secs(3600);
        Self(Arc::new(Mutex::new(Clocks { day: START, up: UP })))
    }
}

impl Time {
    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        lock(&self.0).day
    }

    /// How long the machine has run.
    #[must_use]
    pub fn up(&self) -> Duration {
        lock(&self.0).up
    }

    /// Jumps ahead, as a clock that a person sets: no time has passed.
    pub fn jump(&self, time: Duration) {
        lock(&self.0).jump(time);
    }

    /// Jumps back, as a clock that a person sets.
    pub fn go_back(&self, time: Duration) {
        let mut clocks = lock(&self.0);
        clocks.day = clocks.day.saturating_sub(time).unwrap_or(Timestamp::MIN);
    }

    /// Moves on.
    pub fn pass(&self, time: Duration) {
        let mut clocks = lock(&self.0);
        clocks.jump(time);
        clocks.up += time;
    }
}

impl Clocks {
    fn jump(&mut self, time: Duration) {
        self.day = self.day.saturating_add(time).unwrap_or(Timestamp::MAX);
    }
}

/// Who lives: everybody of whom nothing else was said. Clones are the same lives.
/// The lock is held for one entry or one look-up. A store may look under its own lock.
#[derive(Clone, Debug, Default)]
pub struct Population(Arc<Mutex<HashMap<u32, Liveness>>>);

impl Population {
    /// Says how it is with a process.
    pub fn say(&self, pid: u32, life: Liveness) {
        lock(&self.0).insert(pid, life);
    }

    fn of(&self, pid: u32) -> Liveness {
        let lives = lock(&self.0);
        lives.get(&pid).copied().unwrap_or(Liveness::Alive)
    }
}

/// The world of these.
#[must_use]
pub fn outside(time: &Time, lives: &Population) -> Environment {
    let (time, up, lives) = (time.clone(), time.clone(), lives.clone());
    Environment {
        clock: Arc::new(move || time.now()),
        uptime: Arc::new(move |_owner| Some(up.up())),
        witness: Arc::new(move |owner| lives.of(owner.pid)),
        ..Environment::default()
    }
}
