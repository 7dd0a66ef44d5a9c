//! The right to write one session, with an epoch that outdates every earlier one (S7.4).

use std::time::Duration;

use jiff::Timestamp;

use crate::value::ids::SessionId;

use super::{
    environment::{Environment, truncate_to_micros},
    process::{Liveness, OwnerProcess},
    uptime::Since,
};

/// The right to write a session. Every write carries its epoch; once a later lease was given, this one writes
/// nothing.
///
/// An example is at [`Store`](crate::store::Store).
#[derive(Clone, Debug)]
pub struct Lease {
    session: SessionId,
    epoch: u64,
    ttl: Duration,
    since: Since,
}

impl Lease {
    /// For implementations of a store. `since` is a moment *before* the store began to count, so that the
    /// holder's count ends before the store's.
    #[must_use]
    pub fn new(session: SessionId, epoch: u64, ttl: Duration, since: Since) -> Self {
        Self { session, epoch, ttl, since }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Greater than that of every earlier lease.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How long it is valid without being renewed.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How long it is still valid, by a clock of this machine that cannot be set and that counts while the
    /// machine sleeps. An effect needs a margin of it (S7.4).
    #[must_use]
    pub fn left(&self) -> Duration {
        self.since.left(self.ttl)
    }

    /// When it ends, as the time since the machine's start ([`uptime`](super::uptime)); `None` if that is
    /// unknown.
    #[must_use]
    pub fn until(&self) -> Option<Duration> {
        self.since.end_of(self.ttl)
    }
}

/// Who holds a session, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// Who.
    pub owner: OwnerProcess,
    /// Since when.
    pub since: Timestamp,
    /// Until when, unless renewed.
    pub expires: Timestamp,
    /// The end as the time since the start of the owner's machine; `None` if that is unknown.
    pub until: Option<Duration>,
}

impl LeaseHolder {
    /// A lease of this owner, for `ttl` from now.
    #[must_use]
    pub fn by(owner: OwnerProcess, ttl: Duration, outside: &Environment) -> Self {
        let since = outside.now();
        let mut held = Self { owner, since, expires: since, until: None };
        held.renew(ttl, outside);
        held
    }

    /// Renews the lease for `ttl` from now.
    pub fn renew(&mut self, ttl: Duration, outside: &Environment) {
        self.expires = truncate_to_micros(outside.now().saturating_add(ttl).unwrap_or(Timestamp::MAX));
        self.until = (outside.uptime)(&self.owner).map(|up| up.saturating_add(ttl));
    }
}

/// Whether another process may take the session: the holder is provably dead, or its time and the margin are
/// over. On one machine that time is the machine's uptime, so setting a clock takes no lease from a live
/// owner (S7.4).
#[must_use]
pub fn is_free(held: &LeaseHolder, outside: &Environment) -> bool {
    let is_over = || {
        if let (Some(until), Some(up)) = (held.until, (outside.uptime)(&held.owner)) {
            return up > until.saturating_add(outside.margin);
        }
        let over_for = outside.now().duration_since(held.expires);
        over_for.is_positive() && over_for.unsigned_abs() > outside.margin
    };
    match (outside.witness)(&held.owner) {
        Liveness::Dead => true,
        Liveness::Alive | Liveness::Unknown => is_over(),
    }
}
