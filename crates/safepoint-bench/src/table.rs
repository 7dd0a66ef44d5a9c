//! Rows of measurements, as Markdown.

use std::fmt;

/// What was measured, against what, and what was wanted.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<[String; 5]>);

impl Table {
    /// A figure beside that of the bare loop, and the ratio that is wanted at the most.
    pub(crate) fn ratio(&mut self, what: &str, unit: &str, (ours, bare): (f64, f64), most: f64) {
        let ratio = ours / bare;
        let figures = [format!("{ours:.1} {unit}"), format!("{bare:.1} {unit}"), format!("{ratio:.2}")];
        self.judge(what, figures, ratio <= most, &format!("≤ {most}"));
    }

    /// A figure that is good if its ratio is, or if it is small by itself.
    pub(crate) fn ratio_or_alone(
        &mut self,
        what: &str,
        unit: &str,
        (ours, bare): (f64, f64),
        (most, least): (f64, f64),
    ) {
        let ratio = ours / bare;
        let figures = [format!("{ours:.1} {unit}"), format!("{bare:.1} {unit}"), format!("{ratio:.2}")];
        let is_met = ratio <= most || ours <= least;
        self.judge(what, figures, is_met, &format!("≤ {least} {unit} or ≤ {most}"));
    }

    /// A rate beside that of the bare loop, and the ratio that is wanted at the least.
    pub(crate) fn rate(&mut self, what: &str, unit: &str, (ours, bare): (f64, f64), least: f64) {
        let ratio = ours / bare;
        let figures = [format!("{ours:.0} {unit}"), format!("{bare:.0} {unit}"), format!("{ratio:.2}")];
        self.judge(what, figures, ratio >= least, &format!("≥ {least}"));
    }

    /// A figure alone, and what is wanted at the most.
    pub(crate) fn alone(&mut self, what: &str, unit: &str, ours: f64, most: f64) {
        let figures = [format!("{ours:.1} {unit}"), String::new(), String::new()];
        self.judge(what, figures, ours <= most, &format!("≤ {most} {unit}"));
    }

    /// A figure beside that of the same without, and how much more it may be.
    pub(crate) fn added(&mut self, what: &str, unit: &str, (ours, without): (f64, f64), most: f64) {
        let added = ours - without;
        let figures = [format!("{ours:.1} {unit}"), format!("{without:.1} {unit}"), format!("+{added:.1}")];
        self.judge(what, figures, added <= most, &format!("≤ +{most} {unit}"));
    }

    /// A figure alone, and what is wanted at the least.
    pub(crate) fn least(&mut self, what: &str, unit: &str, ours: f64, least: f64) {
        let figures = [format!("{ours:.0} {unit}"), String::new(), String::new()];
        self.judge(what, figures, ours >= least, &format!("≥ {least} {unit}"));
    }

    /// A figure that explains the one above it.
    pub(crate) fn beside(&mut self, what: &str, unit: &str, figure: f64) {
        let figures = [String::new(), format!("{figure:.1} {unit}"), String::new()];
        self.push(what, figures, "for comparison".to_owned());
    }

    fn judge(&mut self, what: &str, figures: [String; 3], is_met: bool, goal: &str) {
        let verdict = if is_met { "met" } else { "**not met**" };
        self.push(what, figures, format!("{goal}: {verdict}"));
    }

    fn push(&mut self, what: &str, [ours, bare, ratio]: [String; 3], goal: String) {
        let row = [what.to_owned(), ours, bare, ratio, goal];
        eprintln!("{}", row.join(" | "));
        self.0.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | Safepoint | bare loop | ratio | goal |\n|---|---|---|---|---|")?;
        self.0.iter().try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}

/// The middle of some measurements.
pub(crate) fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The middle of one of the figures of each measurement.
pub(crate) fn median_of<const N: usize>(all: &[[f64; N]], index: usize) -> f64 {
    median(all.iter().map(|figures| figures[index]).collect())
}
