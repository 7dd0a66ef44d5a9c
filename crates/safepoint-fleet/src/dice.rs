//! Chance that follows from a seed.

use std::{sync::Mutex, time::Duration};

use crate::sync::lock;

/// Numbers that follow from a seed, one after the other.
#[derive(Debug)]
pub(super) struct Dice {
    /// Held for one number.
    state: Mutex<u64>,
}

impl Dice {
    pub(super) fn of(seed: u64) -> Self {
        Self { state: Mutex::new(seed) }
    }

    /// Splitmix64.
    pub(super) fn number(&self) -> u64 {
        let mut state = lock(&self.state);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(super) fn below(&self, end: u64) -> u64 {
        // Each is as likely as the other, but for one part in as many as there are u64.
        self.number() % end.max(1)
    }

    /// One of a list's places.
    pub(super) fn place(&self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    /// Whether it is so, so often of a thousand times.
    pub(super) fn is_in(&self, permille: u32) -> bool {
        const ALL: u64 = 1_000;
        self.below(ALL) < u64::from(permille)
    }

    /// A time between the two, in whole microseconds.
    pub(super) fn time(&self, (least, most): (Duration, Duration)) -> Duration {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(micros(least) + self.below(micros(most.saturating_sub(least)) + 1))
    }
}
