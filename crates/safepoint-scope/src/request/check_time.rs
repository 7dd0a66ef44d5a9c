//! When a check of demands is made.

use std::cell::OnceCell;

use tokio::time::Instant;

/// The instant of one check. The clock is read once, and only where a deadline is compared with it: most demands have none.
#[derive(Default)]
pub(crate) struct CheckTime(OnceCell<Instant>);

impl CheckTime {
    pub(crate) fn now(&self) -> Instant {
        *self.0.get_or_init(Instant::now)
    }
}

impl From<Instant> for CheckTime {
    fn from(now: Instant) -> Self {
        Self(now.into())
    }
}
