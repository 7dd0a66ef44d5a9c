//! What happened, step by step: a hash of all of it, and the last steps in words.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    time::Duration,
};

use tokio::time::Instant;

/// How many of the last steps are kept in words.
const KEPT: usize = 60;

/// The steps of a simulation.
#[derive(Debug)]
pub(super) struct Trace {
    began: Instant,
    hash: u64,
    steps: u64,
    last: VecDeque<(Duration, String)>,
    counts: BTreeMap<&'static str, u64>,
    watch: Vec<String>,
}

impl Trace {
    pub(super) fn new(watch: &[String]) -> Self {
        // The basis of FNV-1a.
        const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
        let (began, last, counts) = (Instant::now(), VecDeque::new(), BTreeMap::new());
        Self { began, hash: BASIS, steps: 0, last, counts, watch: watch.to_vec() }
    }

    /// Something happened, of this kind, now.
    pub(super) fn step(&mut self, kind: &'static str, what: impl fmt::Display) {
        let (at, words) = (self.began.elapsed(), format!("{kind} {what}"));
        if self.watch.iter().any(|watched| words.contains(watched)) {
            eprintln!("{:>12.6} {words}", at.as_secs_f64());
        }
        let micros = u64::try_from(at.as_micros()).unwrap_or(u64::MAX);
        self.fold(&micros.to_le_bytes());
        self.fold(words.as_bytes());
        self.steps += 1;
        *self.counts.entry(kind).or_default() += 1;
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back((at, words));
    }

    fn fold(&mut self, bytes: &[u8]) {
        // FNV-1a: two traces that differ anywhere differ in it, and it costs little.
        const PRIME: u64 = 0x0000_0100_0000_01B3;
        self.hash = bytes.iter().fold(self.hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.clone()
    }

    /// The last steps, a line each.
    pub(super) fn last(&self) -> Vec<String> {
        self.last.iter().map(|(at, words)| format!("{:>12.6} {words}", at.as_secs_f64())).collect()
    }
}
