//! Rows of measurements, as Markdown: those of the goals, with both bare loops, and those of each part beside them.

use std::fmt;

use crate::figures::{Figures, Passes, ends};

/// What was measured, against what, and what was wanted.
#[derive(Debug, Default)]
pub(crate) struct Table {
    goals: Vec<[String; 8]>,
    parts: Vec<[String; 5]>,
    /// Rows of the goals of which runs were disturbed.
    disturbed: Vec<String>,
}

/// What is wanted. Exhaustive: ways to judge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// At most this many times the `reqwest` loop's figure.
    Times(f64),
    /// At least this many times.
    TimesAtLeast(f64),
    /// At most this, in the row's unit.
    Most(f64),
}

impl Goal {
    /// Whether it is met, and how it is written.
    fn judge(self, figure: f64, times: f64, unit: &str) -> (bool, String) {
        match self {
            Self::Times(most) => (times <= most, format!("≤ {} × reqwest", short(most))),
            Self::TimesAtLeast(least) => (times >= least, format!("≥ {} × reqwest", short(least))),
            Self::Most(most) => (figure <= most, format!("≤ {most} {unit}").trim_end().to_owned()),
        }
    }
}

impl Table {
    /// A row of the goals that has both bare loops.
    pub(crate) fn goal(&mut self, what: &str, unit: &str, figures: &Figures, goal: Goal) {
        let Figures { each, ratio, ratios, disturbed } = figures;
        let [hyper, reqwest, ours] = each.map(|figure| shown(figure, unit));
        let (is_met, wanted) = goal.judge(each[2], *ratio, unit);
        let ratio = format!("{ratio:.2}");
        self.push_goal(
            *disturbed,
            [what.to_owned(), hyper, reqwest, ours, ratio, spread(ratios), wanted, verdict(is_met)],
        );
    }

    /// A row of the goals that Safepoint alone has: at most this, in its unit.
    pub(crate) fn goal_alone(&mut self, what: &str, unit: &str, ours: impl Into<Passes>, most: f64) {
        let ours = ours.into();
        let (is_met, wanted) = Goal::Most(most).judge(ours.median(), f64::NAN, unit);
        let (figure, none) = (shown(ours.median(), unit), String::new);
        let row =
            [what.to_owned(), none(), none(), figure, none(), spread(&ours.all), wanted, verdict(is_met)];
        self.push_goal(ours.disturbed, row);
    }

    fn push_goal(&mut self, disturbed: (usize, usize), mut row: [String; 8]) {
        if disturbed.0 > 0 {
            self.disturbed.push(row[0].clone());
        }
        row[7].push_str(&noted(disturbed));
        eprintln!("{}", row.join(" | "));
        self.goals.push(row);
    }

    /// The rows of the goals of which runs were disturbed.
    pub(crate) fn disturbed(&self) -> &[String] {
        &self.disturbed
    }

    /// A figure beside that of something else, and the ratio that is wanted at the most.
    pub(crate) fn ratio(
        &mut self,
        what: &str,
        unit: &str,
        (ours, other): (impl Into<Passes>, impl Into<Passes>),
        most: f64,
    ) {
        let (ours, other) = (ours.into(), other.into());
        let ratio = ours.median() / other.median();
        let figures = [shown(ours.median(), unit), shown(other.median(), unit), format!("{ratio:.2}")];
        let goal = format!("≤ {}: {}", short(most), verdict(ratio <= most));
        self.push(what, figures, goal + &noted(ours.disturbed.max(other.disturbed)));
    }

    /// A figure alone, and what is wanted at the most.
    pub(crate) fn alone(&mut self, what: &str, unit: &str, ours: impl Into<Passes>, most: f64) {
        let ours = ours.into();
        let figure = ours.median();
        let (is_met, wanted) = Goal::Most(most).judge(figure, f64::NAN, unit);
        let goal = format!("{wanted}: {}{}", verdict(is_met), noted(ours.disturbed));
        self.push(what, [shown(figure, unit), String::new(), String::new()], goal);
    }

    /// A figure beside that of the same without, and how much more it may be.
    pub(crate) fn added(
        &mut self,
        what: &str,
        unit: &str,
        (ours, without): (impl Into<Passes>, impl Into<Passes>),
        most: f64,
    ) {
        let (ours, without) = (ours.into(), without.into());
        let added = ours.less(&without);
        let more = added.median();
        let figures = [shown(ours.median(), unit), shown(without.median(), unit), format!("{more:+.1}")];
        let goal = format!("≤ +{} {unit}: {}", short(most), verdict(more <= most));
        self.push(what, figures, goal + &noted(added.disturbed));
    }

    /// A figure alone, and what is wanted at the least.
    pub(crate) fn least(&mut self, what: &str, unit: &str, ours: impl Into<Passes>, least: f64) {
        let ours = ours.into();
        let figure = ours.median();
        let goal =
            format!("≥ {} {unit}: {}{}", short(least), verdict(figure >= least), noted(ours.disturbed));
        self.push(what, [format!("{figure:.0} {unit}"), String::new(), String::new()], goal);
    }

    /// A figure that explains the one above it.
    pub(crate) fn beside(&mut self, what: &str, unit: &str, figure: impl Into<Passes>) {
        let figure = figure.into();
        let figures = [String::new(), shown(figure.median(), unit), String::new()];
        self.push(what, figures, format!("for comparison{}", noted(figure.disturbed)));
    }

    fn push(&mut self, what: &str, [ours, other, ratio]: [String; 3], goal: String) {
        let row = [what.to_owned(), ours, other, ratio, goal];
        eprintln!("{}", row.join(" | "));
        self.parts.push(row);
    }

    /// The one table of the goals, as it stands in the documentation.
    pub(crate) fn goals(&self) -> String {
        let head = "| what | bare hyper | bare reqwest | Safepoint | ratio | passes | goal | verdict |\n|---|---|---|---|---|---|---|---|";
        rows(head, &self.goals)
    }

    /// What the parts measured beside it.
    pub(crate) fn parts(&self) -> String {
        rows("| what | Safepoint | beside it | ratio | goal |\n|---|---|---|---|---|", &self.parts)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", [self.goals(), self.parts()].join("\n"))
    }
}

fn rows<const N: usize>(head: &str, rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let lines: String = rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect();
    format!("{head}\n{lines}")
}

fn verdict(is_met: bool) -> String {
    if is_met { "met" } else { "**not met**" }.to_owned()
}

/// How many runs were disturbed, if any were.
fn noted(disturbed: (usize, usize)) -> String {
    match disturbed {
        (0, _) => String::new(),
        (some, all) => format!(" ({some} of {all} runs not quiet)"),
    }
}

/// The least and the greatest of some passes.
fn spread(passes: &[f64]) -> String {
    let (least, greatest) = ends(passes);
    if passes.len() < 2 { String::new() } else { format!("{least:.2} to {greatest:.2}") }
}

/// A goal, with as many digits as it has, and three at the most.
fn short(goal: f64) -> String {
    let rounded = format!("{goal:.2}");
    rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A figure with three digits that mean something.
fn shown(figure: f64, unit: &str) -> String {
    let digits = match figure.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{figure:.digits$} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_has_no_more_digits_than_it_needs() {
        assert_eq!(["3.08", "1", "0.5", "1.02", "100000"], [0.4 / 0.13, 1.0, 0.5, 1.02, 1e5].map(short)[..]);
    }

    #[test]
    fn a_row_with_a_disturbed_run_is_named_and_says_so() {
        let mut table = Table::default();
        table.goal_alone("quiet", "µs", Passes { all: vec![1.0, 3.0, 2.0], disturbed: (0, 3) }, 2.0);
        table.goal_alone("busy", "µs", Passes { all: vec![1.0, 3.0, 2.0], disturbed: (1, 3) }, 1.0);
        assert_eq!(table.disturbed(), ["busy"]);
        let said = table.goals();
        assert!(said.contains("| quiet |  |  | 2.00 µs |  | 1.00 to 3.00 | ≤ 2 µs | met |"), "{said}");
        assert!(said.contains("≤ 1 µs | **not met** (1 of 3 runs not quiet) |"), "{said}");
    }
}
