//! How long stops take, by the phase in which they were requested (S11.2). Derived from receipts, so runs
//! without one are not counted.

use std::{collections::BTreeMap, time::Duration};

use crate::sync::Mutex;
use crate::value::receipt::Receipt;

/// Upper bounds of the histogram's buckets, in microseconds; the last bucket has none.
pub const BUCKETS_MICROS: [u64; 12] =
    [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000, 1_000_000, 10_000_000, 60_000_000];

/// One histogram: how many stops fell into each bucket of [`BUCKETS_MICROS`], and one more for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Counts by bucket.
    pub counts: [u64; BUCKETS_MICROS.len() + 1],
}

impl Histogram {
    fn note(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_MICROS.partition_point(|bound| *bound < micros);
        self.counts[bucket] += 1;
    }

    /// How many stops it holds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Request to settled, and request to quiet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// From the request to the outcome.
    pub settled: Histogram,
    /// From the request until nothing was alive.
    pub quiet: Histogram,
}

/// The histograms of an agent, by phase.
#[derive(Debug, Default)]
pub struct StopTimes {
    /// Held to count one stop or to copy all. No other lock is taken under it. A copy between the two notes
    /// of one stop has its settling and not yet its quiet.
    phases: Mutex<BTreeMap<String, PhaseTimes>>,
}

impl StopTimes {
    /// A copy of what has been seen so far.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<String, PhaseTimes> {
        self.phases.lock().clone()
    }

    pub(crate) fn note(&self, receipt: &Receipt) {
        self.with(receipt, |times, stop| times.settled.note(between(stop, receipt.settled_at)));
    }

    pub(crate) fn note_quiet(&self, receipt: &Receipt) {
        if let Some(quiet) = receipt.quiet_at {
            self.with(receipt, |times, stop| times.quiet.note(between(stop, quiet)));
        }
    }

    fn with(&self, receipt: &Receipt, note: impl FnOnce(&mut PhaseTimes, jiff::Timestamp)) {
        // Only what a stop really ended: a run that was done first is not a stop (I6).
        if let (crate::value::receipt::Ending::Stopped, Some(stop)) = (receipt.ending, &receipt.stop) {
            let mut phases = self.phases.lock();
            note(phases.entry(stop.phase.clone()).or_default(), stop.requested_at);
        }
    }
}

fn between(from: jiff::Timestamp, to: jiff::Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}
