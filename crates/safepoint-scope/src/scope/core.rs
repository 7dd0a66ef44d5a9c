//! What one node holds: a word that is read often, and behind a lock the rest, which exists only once there is a request.
//!
//! **Invariants**: the word changes only under the lock, and only by gaining bits; a reader that sees a demand bit in the
//! word finds the demand behind the lock. Whether a request or the settling came first is decided by that lock, so
//! exactly one wins.

use tokio::time::Instant;

use crate::{
    reason::Reason,
    request::{
        StopRequest,
        check_time::CheckTime,
        demand::{Demand, Mode, Reach},
        points::SafePoints,
    },
    scope::{
        fired::{Fired, Rank},
        logged::{LoggedRequest, StopAck},
    },
    sync::{AtomicU32, Mutex, Ordering, lock},
};

/// Anything was asked.
const ASKED: u32 = 1;
/// The end is fixed.
const SETTLED: u32 = 2;

#[derive(Debug)]
pub(crate) struct Core {
    /// Written only while `log` is locked, so its writers need no read-modify-write. Read without the lock.
    word: AtomicU32,
    /// Held for one request, one settling or one copy of the log. No other lock is taken under it, nothing is
    /// awaited, and waiters are woken after it is released.
    log: Mutex<Vec<LoggedRequest>>,
}

impl Core {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU32::new(0), log: Mutex::new(Vec::new()) }
    }

    /// Acquire: pairs with the release below, so that a seen bit implies a readable log.
    #[inline]
    fn word(&self) -> u32 {
        self.word.load(Ordering::Acquire)
    }

    /// Whether anything was asked.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.word() & ASKED != 0
    }

    /// Whether the end is fixed.
    pub(crate) fn is_settled(&self) -> bool {
        self.word() & SETTLED != 0
    }

    /// The clock is read under the lock: the order of the log is the order in time.
    pub(crate) fn ask(&self, request: StopRequest, clock: impl FnOnce() -> Instant) -> StopAck {
        let mut log = lock(&self.log);
        // Relaxed: every write of the word is made under the lock that is held here, and the lock orders
        // them.
        let word = self.word.load(Ordering::Relaxed);
        if word & SETTLED != 0 {
            return StopAck::TooLate;
        }
        let now = clock();
        let demand = request.demand(now);
        let (asked, joined) = match log.last() {
            None => (StopAck::First, demand),
            Some(last) => {
                let held = last.joined.due(now);
                let joined = held.join(demand);
                (if joined == held { StopAck::Unchanged } else { StopAck::Strengthened }, joined)
            }
        };
        let seq = log.len() as u64;
        let onset = request.onset();
        // Most logs have one entry, which is large.
        if seq == 0 {
            log.reserve_exact(1);
        }
        log.push(LoggedRequest { seq, at: now, reason: request.into_reason(), asked, demand, joined, onset });
        // Release, after the push: a reader that sees the bit finds the entry. One that does not see it yet
        // acted before the request.
        self.word.store(word | ASKED, Ordering::Release);
        asked
    }

    /// Fixes the end; true the first time.
    pub(crate) fn settle(&self) -> bool {
        let _log = lock(&self.log);
        // The lock decides between a request and this: the later one sees what the earlier one wrote. So the
        // load is Relaxed; the store is Release, so that a reader of the bit sees all that came before the
        // end.
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word | SETTLED, Ordering::Release);
        word & SETTLED == 0
    }

    /// The demand as it was asked, its deadline not yet held against the clock.
    pub(crate) fn demand(&self) -> Option<Demand> {
        if !self.is_asked() {
            return None;
        }
        lock(&self.log).last().map(|last| last.joined)
    }

    /// Why what takes effect here does; of a demand that takes effect nowhere yet, why it was asked first.
    pub(crate) fn reason(&self, gate: Option<SafePoints>, check: &CheckTime) -> Option<Reason> {
        if !self.is_asked() {
            return None;
        }
        let log = lock(&self.log);
        let fired = Fired::first(log.iter(), gate, check).map(|(_, fired)| fired.request.reason);
        fired.or_else(|| log.first().map(|first| first.reason.clone()))
    }

    /// The request of this log that takes effect here, if one does, and its rank among those of other logs.
    pub(crate) fn first_to_fire(&self, gate: Option<SafePoints>, check: &CheckTime) -> Option<(Rank, Fired)> {
        if self.is_asked() { Fired::first(lock(&self.log).iter(), gate, check) } else { None }
    }

    /// Adds a copy of the log to `all`.
    pub(crate) fn add_log_to(&self, all: &mut Vec<LoggedRequest>) {
        if self.is_asked() {
            let log = lock(&self.log);
            all.reserve_exact(log.len());
            all.extend_from_slice(&log);
        }
    }
}

/// Which requests of an enclosing node reach a nested run; crossing several links, the strictest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Filter {
    Everything,
    NowOrTree,
    TreeOnly,
}

impl Filter {
    pub(crate) fn lets_through(self, demand: &Demand) -> bool {
        match self {
            Self::Everything => true,
            Self::NowOrTree => demand.mode == Mode::Now || demand.reach == Reach::Tree,
            Self::TreeOnly => demand.reach == Reach::Tree,
        }
    }

    /// Whether the demand could come through later, when its deadline makes it `Now`.
    pub(crate) fn may_let_through(self, demand: &Demand) -> bool {
        match self {
            Self::Everything | Self::NowOrTree => true,
            Self::TreeOnly => demand.reach == Reach::Tree,
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
