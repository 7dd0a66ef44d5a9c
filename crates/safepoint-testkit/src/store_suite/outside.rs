//! A world in which the suite says what time it is and who lives.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use safepoint::raw::store::{Environment, Liveness};

use crate::sync::lock;

/// The time of day and that since the machine's start, which stand still until they are moved. Clones are the
/// same time.
#[derive(Clone, Debug)]
pub struct Time {
    day: Arc<AtomicI64>,
    up: Arc<AtomicU64>,
}

impl Default for Time {
    fn default() -> Self {
        const START: i64 = 1_800_000_000_000_000;
        const UP: u64 = 3_600_000_000;
        Self { day: Arc::new(AtomicI64::new(START)), up: Arc::new(AtomicU64::new(UP)) }
    }
}

impl Time {
    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        // SeqCst, here and below: the two clocks have one order for all. Only `pass` moves both, and a look
        // in between sees the day ahead.
        Timestamp::from_microsecond(self.day.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }

    /// How long the machine has run.
    #[must_use]
    pub fn up(&self) -> Duration {
        // SeqCst: see `now`.
        Duration::from_micros(self.up.load(Ordering::SeqCst))
    }

    /// Jumps ahead, as a clock that a person sets: no time has passed.
    pub fn jump(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        // SeqCst: see `now`. One update, so that no jump is lost.
        self.day.fetch_add(micros, Ordering::SeqCst);
    }

    /// Jumps back, as a clock that a person sets.
    pub fn go_back(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        // SeqCst: see `now`.
        self.day.fetch_sub(micros, Ordering::SeqCst);
    }

    /// Moves on.
    pub fn pass(&self, time: Duration) {
        self.jump(time);
        // SeqCst: see `now`.
        self.up.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::SeqCst);
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
