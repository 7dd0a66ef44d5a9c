//! The right to write one session, with an epoch that outdates every earlier one (S7.4).

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::ids::SessionId;

use super::{
    outside::Outside,
    owner::{Life, Owner},
};

/// The right to write a session. Every write carries its epoch; once another was given, this one writes nothing.
#[derive(Clone, Debug)]
pub struct Lease {
    session: SessionId,
    epoch: u64,
    ttl: Duration,
    since: Instant,
}

impl Lease {
    /// For those who implement a store. `since` is a moment *before* the store was asked, so that the holder's count
    /// ends before the store's.
    #[must_use]
    pub fn new(session: SessionId, epoch: u64, ttl: Duration, since: Instant) -> Self {
        Self { session, epoch, ttl, since }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Greater than that of every lease that the store gave before.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How long it holds without being renewed.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How long it still holds by this process's monotonic clock: an effect needs a margin of it (S7.4).
    #[must_use]
    pub fn left(&self) -> Duration {
        self.ttl.saturating_sub(self.since.elapsed())
    }
}

/// Who holds a session, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Who.
    pub owner: Owner,
    /// Since when.
    pub since: Timestamp,
    /// Until when, unless it renews.
    pub expires: Timestamp,
}

/// Whether somebody else may take what is held thus: the holder is provably dead, or its time and the margin are over.
#[must_use]
pub fn is_free(held: &Held, outside: &Outside) -> bool {
    let is_over = || {
        let over_for = outside.now().duration_since(held.expires);
        over_for.is_positive() && over_for.unsigned_abs() > outside.margin
    };
    match (outside.witness)(&held.owner) {
        Life::Dead => true,
        Life::Alive | Life::Unknown => is_over(),
    }
}
