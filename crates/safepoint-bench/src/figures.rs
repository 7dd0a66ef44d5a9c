//! What is made of measurements: figures of a row, and the middle of many.

/// Bare hyper, bare reqwest, Safepoint.
pub(crate) const LOOPS: usize = 3;

/// What a row shows of the three, and the ratio of ours to `reqwest`.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) each: [f64; LOOPS],
    pub(crate) ratio: f64,
    /// How many runs were disturbed, of how many.
    pub(crate) disturbed: (usize, usize),
}

impl Figures {
    /// The same in another unit.
    pub(crate) fn scaled(self, by: f64) -> Self {
        Self { each: self.each.map(|figure| figure * by), ..self }
    }
}

/// The middle of some measurements.
pub(crate) fn median(all: Vec<f64>) -> f64 {
    percentile(all, 50)
}

/// The measurement that this percentage of them is below.
pub(crate) fn percentile(mut all: Vec<f64>, percent: usize) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() * percent / 100).copied().unwrap_or(f64::NAN)
}

/// The middle of one of the figures of each measurement.
pub(crate) fn median_of<const N: usize>(all: &[[f64; N]], index: usize) -> f64 {
    median(all.iter().map(|figures| figures[index]).collect())
}
