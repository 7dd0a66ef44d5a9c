//! What the server counts, and what it refuses under load.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::http::StatusCode;

use crate::problem::{Answered, Problem};

/// Requests a second of one token, and how many may come at once.
const RATE: f64 = 50.0;
const BURST: f64 = 100.0;
/// Readers of streams: of all tokens, and of one.
const READERS: usize = 4_096;
const READERS_OF_ONE: usize = 256;
/// What a bucket that is full again is forgotten at.
const MOST_BUCKETS: usize = 10_000;

/// What the server carries now, and what it has done.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Held for one look or one entry; no other lock is taken under it.
    tokens: Mutex<HashMap<String, Bucket>>,
    readers: AtomicUsize,
    /// Held as `tokens` is.
    readers_of: Mutex<HashMap<String, usize>>,
    requests: AtomicU64,
    refused: AtomicU64,
    pub(crate) items: AtomicU64,
    pub(crate) stops: AtomicU64,
    pub(crate) decisions: AtomicU64,
    pub(crate) missed: AtomicU64,
    pub(crate) hooks_delivered: AtomicU64,
    pub(crate) hooks_given_up: AtomicU64,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

/// A reader's place; it is free again when this is dropped.
pub(crate) struct ReaderPlace {
    load: Arc<Load>,
    name: String,
}

impl Load {
    /// Takes one request of this token.
    ///
    /// # Errors
    /// 429 `rate`.
    pub(crate) fn admit(&self, token: &str) -> Answered<()> {
        let now = Instant::now();
        let mut tokens = self.tokens.lock().expect("no code under this lock panics");
        if tokens.len() > MOST_BUCKETS {
            tokens.retain(|_, bucket| bucket.refilled(now) < BURST);
        }
        let bucket = tokens.entry(token.to_owned()).or_insert(Bucket { left: BURST, at: now });
        bucket.left = bucket.refilled(now);
        bucket.at = now;
        if bucket.left < 1.0 {
            let detail = "too many requests of this token";
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate", detail);
            return Err(problem.retry_after(Duration::from_secs(1)));
        }
        bucket.left -= 1.0;
        Ok(())
    }

    /// A request was answered so.
    pub(crate) fn answered(&self, status: StatusCode) {
        // Relaxed, as all counts here: nothing depends on them.
        self.requests.fetch_add(1, Ordering::Relaxed);
        if status.is_client_error() || status.is_server_error() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One more of these.
    pub(crate) fn count(counter: &AtomicU64) {
        // Relaxed: as above.
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// All counts, in the text form that a scraper reads.
    pub(crate) fn text(&self, sessions: usize) -> String {
        // Relaxed: as above.
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let readers = self.readers.load(Ordering::Relaxed) as u64;
        let rows = [
            ("safepoint_sessions_open", "gauge", sessions as u64),
            ("safepoint_readers", "gauge", readers),
            ("safepoint_requests_total", "counter", of(&self.requests)),
            ("safepoint_refused_total", "counter", of(&self.refused)),
            ("safepoint_items_total", "counter", of(&self.items)),
            ("safepoint_stops_total", "counter", of(&self.stops)),
            ("safepoint_decisions_total", "counter", of(&self.decisions)),
            ("safepoint_frames_missed_total", "counter", of(&self.missed)),
            ("safepoint_hooks_delivered_total", "counter", of(&self.hooks_delivered)),
            ("safepoint_hooks_given_up_total", "counter", of(&self.hooks_given_up)),
        ];
        let row = |(name, kind, value)| format!("# TYPE {name} {kind}\n{name} {value}\n");
        rows.into_iter().map(row).collect()
    }
}

impl ReaderPlace {
    /// # Errors
    /// 429 `too_many_readers`.
    pub(crate) fn take(load: &Arc<Load>, name: &str) -> Answered<Self> {
        let mut of = load.readers_of.lock().expect("no code under this lock panics");
        let own = of.entry(name.to_owned()).or_default();
        // Relaxed: counted under the lock, and read by the metrics alone without it.
        if *own >= READERS_OF_ONE || load.readers.load(Ordering::Relaxed) >= READERS {
            let detail = "too many streams are read";
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_readers", detail);
            return Err(problem.retry_after(Duration::from_secs(1)));
        }
        *own += 1;
        // Relaxed: as above.
        load.readers.fetch_add(1, Ordering::Relaxed);
        drop(of);
        Ok(Self { load: Arc::clone(load), name: name.to_owned() })
    }
}

impl Drop for ReaderPlace {
    fn drop(&mut self) {
        let mut of = self.load.readers_of.lock().expect("no code under this lock panics");
        if let Some(own) = of.get_mut(&self.name) {
            *own -= 1;
            if *own == 0 {
                of.remove(&self.name);
            }
        }
        // Relaxed: as in `take`.
        self.load.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Bucket {
    fn refilled(&self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + passed * RATE).min(BURST)
    }
}
