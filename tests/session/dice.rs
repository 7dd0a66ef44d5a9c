//! Chance that a seed repeats.

/// SplitMix64: small, and the same everywhere.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// The seeds to try: that of `SAFEPOINT_SEED`, or the first `count`.
pub(crate) fn seeds(count: u64) -> std::ops::Range<u64> {
    let one = std::env::var("SAFEPOINT_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    one.map_or(0..count, |seed| seed..seed + 1)
}
