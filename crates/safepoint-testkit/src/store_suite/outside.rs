//! A world in which the suite says what time it is and who lives.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use safepoint::store::{Life, Outside};

/// The time of day, which stands still until it is moved. Clones are the same time.
#[derive(Clone, Debug)]
pub struct Time(Arc<AtomicI64>);

impl Default for Time {
    fn default() -> Self {
        const START: i64 = 1_800_000_000_000_000;
        Self(Arc::new(AtomicI64::new(START)))
    }
}

impl Time {
    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }

    /// Goes back, as a clock does that somebody sets.
    pub fn go_back(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        self.0.fetch_sub(micros, Ordering::SeqCst);
    }

    /// Moves on.
    pub fn pass(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

/// Who lives: everybody of whom nothing else was said. Clones are the same lives.
#[derive(Clone, Debug, Default)]
pub struct Lives(Arc<Mutex<HashMap<u32, Life>>>);

impl Lives {
    /// Says how it is with a process.
    pub fn say(&self, pid: u32, life: Life) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, life);
    }

    fn of(&self, pid: u32) -> Life {
        let lives = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lives.get(&pid).copied().unwrap_or(Life::Alive)
    }
}

/// The world of these.
#[must_use]
pub fn outside(time: &Time, lives: &Lives) -> Outside {
    let (time, lives) = (time.clone(), lives.clone());
    Outside {
        clock: Arc::new(move || time.now()),
        witness: Arc::new(move |owner| lives.of(owner.pid)),
        ..Outside::default()
    }
}
