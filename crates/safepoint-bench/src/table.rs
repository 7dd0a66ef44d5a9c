//! Rows of measurements, as Markdown: those of the goals, with both bare loops, and those of each part beside them.

use std::fmt;

use crate::figures::Figures;

/// What was measured, against what, and what was wanted.
#[derive(Debug, Default)]
pub(crate) struct Table {
    goals: Vec<[String; 7]>,
    parts: Vec<[String; 5]>,
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
            Self::Times(most) => (times <= most, format!("≤ {most} × reqwest")),
            Self::TimesAtLeast(least) => (times >= least, format!("≥ {least} × reqwest")),
            Self::Most(most) => (figure <= most, format!("≤ {most} {unit}").trim_end().to_owned()),
        }
    }
}

impl Table {
    /// A row of the goals that has both bare loops.
    pub(crate) fn goal(&mut self, what: &str, unit: &str, figures: &Figures, goal: Goal) {
        let Figures { each, ratio, disturbed } = figures;
        let [hyper, reqwest, ours] = each.map(|figure| shown(figure, unit));
        let (is_met, wanted) = goal.judge(each[2], *ratio, unit);
        let busy = match disturbed {
            (0, _) => String::new(),
            (some, all) => format!(" ({some} of {all} runs not quiet)"),
        };
        let verdict = format!("{}{busy}", verdict(is_met));
        self.push_goal([what.to_owned(), hyper, reqwest, ours, format!("{ratio:.2}"), wanted, verdict]);
    }

    /// A row of the goals that Safepoint alone has: at most this, in its unit.
    pub(crate) fn goal_alone(&mut self, what: &str, unit: &str, ours: f64, most: f64) {
        let (is_met, wanted) = Goal::Most(most).judge(ours, f64::NAN, unit);
        let (none, verdict) = (String::new(), verdict(is_met).to_owned());
        self.push_goal([
            what.to_owned(),
            none.clone(),
            none.clone(),
            shown(ours, unit),
            none,
            wanted,
            verdict,
        ]);
    }

    fn push_goal(&mut self, row: [String; 7]) {
        eprintln!("{}", row.join(" | "));
        self.goals.push(row);
    }

    /// A figure beside that of something else, and the ratio that is wanted at the most.
    pub(crate) fn ratio(&mut self, what: &str, unit: &str, (ours, other): (f64, f64), most: f64) {
        let ratio = ours / other;
        let figures = [format!("{ours:.1} {unit}"), format!("{other:.1} {unit}"), format!("{ratio:.2}")];
        self.judge(what, figures, ratio <= most, &format!("≤ {most}"));
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
        self.push(what, figures, format!("{goal}: {}", verdict(is_met)));
    }

    fn push(&mut self, what: &str, [ours, other, ratio]: [String; 3], goal: String) {
        let row = [what.to_owned(), ours, other, ratio, goal];
        eprintln!("{}", row.join(" | "));
        self.parts.push(row);
    }

    /// The one table of the goals, as it stands in the documentation.
    pub(crate) fn goals(&self) -> String {
        let head = "| what | bare hyper | bare reqwest | Safepoint | ratio | goal | verdict |\n|---|---|---|---|---|---|---|";
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

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "**not met**" }
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
