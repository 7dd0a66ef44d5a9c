//! Times of what is measured.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;

/// Nanoseconds by the clock that all processes of a machine share.
pub(crate) fn machine_time() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    u64::try_from(nanos).unwrap_or_default()
}

/// CPU time of this process, in microseconds.
pub(crate) fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Microseconds that this work takes.
pub(crate) async fn took(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<f64> {
    let began = Instant::now();
    work.await?;
    Ok(micros(began.elapsed()))
}

/// Waits for all of these tasks.
pub(crate) async fn join(mut running: JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

pub(crate) fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}

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

/// A moment for work in progress to settle, so that all that is compared begins in the same place.
pub(crate) async fn settle_down() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}
