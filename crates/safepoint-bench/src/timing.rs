//! Times of what is measured.

use std::time::Duration;

/// Microseconds until the caller had its outcome, and until the other side saw the end.
#[derive(Default)]
pub(crate) struct Times {
    pub(crate) caller: Vec<f64>,
    pub(crate) other: Vec<f64>,
}

impl Times {
    pub(crate) fn push(&mut self, (caller, other): (f64, f64)) {
        self.caller.push(caller);
        self.other.push(other);
    }
}

pub(crate) fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

/// A moment for work in progress to settle, so that all that is compared begins in the same place.
pub(crate) async fn settle_down() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}
