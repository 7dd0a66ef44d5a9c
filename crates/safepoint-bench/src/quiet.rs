//! Runs that are repeated when something else used a processor meanwhile, within a bound.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{cpus::ProcessorUse, figures::Passes};

/// How often a row is measured.
pub(crate) const PASSES: usize = 5;

/// How long one row may wait for quiet and repeat its runs, and how long all rows may.
const A_ROW: Duration = Duration::from_secs(120);
const ALL_ROWS: Duration = Duration::from_secs(180);
/// How often one run is repeated.
const REPEATS: usize = 4;
/// How long a look at what else runs lasts.
const LOOK: Duration = Duration::from_millis(250);

/// What all rows have waited and repeated. Held for one sum or one look.
static SPENT: Mutex<Duration> = Mutex::new(Duration::ZERO);

/// What a run gave, and the share of a processor that something else used meanwhile, if any did.
pub(crate) struct Run<T> {
    pub(crate) value: T,
    pub(crate) disturbed: Option<f64>,
}

/// The runs of one row, and the time that it has for waits and repetitions.
pub(crate) struct QuietRow<'a> {
    /// Processes that belong to the measurement, beside this one and its children.
    ours: &'a [u32],
    left: Duration,
}

impl<'a> QuietRow<'a> {
    pub(crate) fn with(ours: &'a [u32]) -> Self {
        Self { ours, left: A_ROW }
    }

    /// Runs it, and again when all is quiet, as long as it was disturbed and there is time. The quietest of these runs.
    pub(crate) async fn run<T>(
        &mut self,
        mut work: impl AsyncFnMut() -> anyhow::Result<T>,
    ) -> anyhow::Result<Run<T>> {
        let mut best = self.once(&mut work).await?;
        for _ in 0..REPEATS {
            if best.disturbed.is_none() || !self.has_time() {
                break;
            }
            let began = Instant::now();
            self.wait().await?;
            let again = self.once(&mut work).await?;
            self.spend(began.elapsed());
            if again.disturbed.unwrap_or_default() < best.disturbed.unwrap_or_default() {
                best = again;
            }
        }
        Ok(best)
    }

    async fn once<T>(&self, work: &mut impl AsyncFnMut() -> anyhow::Result<T>) -> anyhow::Result<Run<T>> {
        let before = ProcessorUse::now(self.ours)?;
        let value = work().await?;
        Ok(Run { value, disturbed: before.disturbed_until(&ProcessorUse::now(self.ours)?) })
    }

    /// Waits until nothing else uses a processor, as long as there is time.
    async fn wait(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < self.left {
            let mut nothing = async || {
                tokio::time::sleep(LOOK).await;
                Ok(())
            };
            let look = self.once(&mut nothing).await?;
            if look.disturbed.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn has_time(&self) -> bool {
        self.left > Duration::ZERO && *SPENT.lock().unwrap_or_else(PoisonError::into_inner) < ALL_ROWS
    }

    fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
        *SPENT.lock().unwrap_or_else(PoisonError::into_inner) += time;
    }
}

/// The runs of a row that has no bare loop.
pub(crate) struct Runs<T>(Vec<Run<T>>);

/// As many runs as a row has passes.
pub(crate) async fn passes<T>(mut work: impl AsyncFnMut() -> anyhow::Result<T>) -> anyhow::Result<Runs<T>> {
    let (mut row, mut runs) = (QuietRow::with(&[]), Vec::new());
    for _ in 0..PASSES {
        runs.push(row.run(&mut work).await?);
    }
    Ok(Runs(runs))
}

impl<T> Runs<T> {
    /// One figure of each run.
    pub(crate) fn figures(&self, of: impl Fn(&T) -> f64) -> Passes {
        let disturbed = self.0.iter().filter(|run| run.disturbed.is_some()).count();
        Passes {
            all: self.0.iter().map(|run| of(&run.value)).collect(),
            disturbed: (disturbed, self.0.len()),
        }
    }
}
