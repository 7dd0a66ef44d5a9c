//! What is made of measurements: figures of a row, and the middle of many.

/// Bare hyper, bare reqwest, Safepoint.
pub(crate) const LOOPS: usize = 3;

/// What a row shows of the three, and the ratio of ours to `reqwest`.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) each: [f64; LOOPS],
    pub(crate) ratio: f64,
    /// The ratio of each pass.
    pub(crate) ratios: Vec<f64>,
    /// How many runs were disturbed, of how many.
    pub(crate) disturbed: (usize, usize),
}

impl Figures {
    /// The same in another unit.
    pub(crate) fn scaled(self, by: f64) -> Self {
        Self { each: self.each.map(|figure| figure * by), ..self }
    }
}

/// One figure of each pass of a row.
#[derive(Clone, Debug)]
pub(crate) struct Passes {
    pub(crate) all: Vec<f64>,
    /// How many of them were disturbed, of how many.
    pub(crate) disturbed: (usize, usize),
}

impl From<f64> for Passes {
    /// A figure of which it was not looked at what else ran.
    fn from(figure: f64) -> Self {
        Self { all: vec![figure], disturbed: (0, 1) }
    }
}

impl Passes {
    pub(crate) fn median(&self) -> f64 {
        median(self.all.clone())
    }

    /// Each pass less another figure of the same run.
    pub(crate) fn less(&self, other: &Self) -> Self {
        let all = self.all.iter().zip(&other.all).map(|(this, other)| this - other).collect();
        Self { all, disturbed: self.disturbed.max(other.disturbed) }
    }
}

/// Disturbed runs of two rows, of all of both.
pub(crate) fn both(one: (usize, usize), other: (usize, usize)) -> (usize, usize) {
    (one.0 + other.0, one.1 + other.1)
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

/// The least and the greatest.
pub(crate) fn ends(all: &[f64]) -> (f64, f64) {
    (percentile(all.to_vec(), 0), all.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}
