//! What a simulated fleet is measured by.

use std::{collections::BTreeMap, fmt, time::Duration};

/// What was measured of one simulation. Times are virtual.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FleetFigures {
    /// Steps that were checked.
    pub steps: u64,
    /// Steps by kind; `ask …` are requests to the store, by the trait's methods, each counted once however often it was sent.
    pub counts: BTreeMap<&'static str, u64>,
    /// Effects that began.
    pub effects: u64,
    /// Sessions that were parked.
    pub parked: u64,
    /// Nodes that were buried though they ran and could be reached.
    pub false_burials: u64,
    /// How many sessions each node took.
    pub load: BTreeMap<usize, u64>,
    /// From being given something to do until there was an owner.
    waits: Vec<Duration>,
    /// From the burial of the owner until there was another one.
    bereft: Vec<Duration>,
    /// From the request until an owner recorded that it is done.
    stops: Vec<Duration>,
}

impl FleetFigures {
    pub(super) fn taken(&mut self, after: Duration, is_bereft: bool) {
        if is_bereft { self.bereft.push(after) } else { self.waits.push(after) }
    }

    pub(super) fn stopped(&mut self, after: Duration) {
        self.stops.push(after);
    }

    pub(super) fn with(mut self, steps: u64, counts: BTreeMap<&'static str, u64>) -> Self {
        [&mut self.waits, &mut self.bereft, &mut self.stops]
            .into_iter()
            .for_each(|times| times.sort_unstable());
        Self { steps, counts, ..self }
    }

    /// From being given something to do until there was an owner: the median, of 20 the 19th, and the longest.
    #[must_use]
    pub fn takes(&self) -> [Duration; 3] {
        spread(&self.waits)
    }

    /// The same from the burial of an owner until there was another one.
    #[must_use]
    pub fn recoveries(&self) -> [Duration; 3] {
        spread(&self.bereft)
    }

    /// The same from a request to stop until an owner had recorded that it is done.
    #[must_use]
    pub fn stops(&self) -> [Duration; 3] {
        spread(&self.stops)
    }
}

fn spread(sorted: &[Duration]) -> [Duration; 3] {
    let at =
        |parts: usize, of: usize| sorted.get((sorted.len() * parts / of).min(sorted.len().saturating_sub(1)));
    [at(1, 2), at(19, 20), sorted.last()].map(|time| time.copied().unwrap_or_default())
}

impl fmt::Display for FleetFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |[median, most, longest]: [Duration; 3]| {
            format!("p50 {median:.1?}, p95 {most:.1?}, longest {longest:.1?}")
        };
        writeln!(f, "  steps checked      {}", self.steps)?;
        writeln!(f, "  effects            {}", self.effects)?;
        writeln!(f, "  given -> owned     {} ({} times)", times(self.takes()), self.waits.len())?;
        writeln!(f, "  buried -> owned    {} ({} times)", times(self.recoveries()), self.bereft.len())?;
        writeln!(f, "  stop -> recorded   {} ({} times)", times(self.stops()), self.stops.len())?;
        let loads: Vec<u64> = {
            let mut loads: Vec<u64> = self.load.values().copied().collect();
            loads.sort_unstable();
            loads
        };
        let (least, median) = (
            loads.first().copied().unwrap_or_default(),
            loads.get(loads.len() / 2).copied().unwrap_or_default(),
        );
        let most = loads.last().copied().unwrap_or_default();
        writeln!(f, "  taken by a node    least {least}, median {median}, most {most}")?;
        writeln!(f, "  parked             {}; buried though it ran: {}", self.parked, self.false_burials)?;
        for (kind, count) in &self.counts {
            writeln!(f, "  {kind:<18} {count}")?;
        }
        Ok(())
    }
}
