//! A report as a person reads it at a terminal.

use std::fmt;

use super::{Report, Row};
use crate::judge::Limits;

/// A row for each scenario and way that was tried, then what was not.
pub(super) fn written(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "{}", report.target)?;
    let (tried, not): (Vec<&Row>, Vec<&Row>) = report.rows.iter().partition(|row| !row.is_unexpressed());
    let width = tried.iter().map(|row| row.words().len()).max().unwrap_or_default();
    for row in tried {
        let (scenario, way) = (row.scenario, &row.way);
        let words = format!("{:<width$}", row.words());
        // Red is for what leaves whoever asked for the stop worse off than they believe.
        let is_bad = f.alternate() && row.worst().is_some_and(crate::Verdict::is_bad);
        let words = if is_bad { format!("\x1b[31m{words}\x1b[0m") } else { words };
        writeln!(f, "{:>3} {:<15} {way:<14} {words}  {}", scenario.number, scenario.name, row.because())?;
    }
    let mut seen = Vec::new();
    for row in not {
        let why = (row.scenario.name, row.because());
        if !seen.contains(&why) {
            writeln!(f, "{:>3} {:<15} {}", row.scenario.number, why.0, why.1)?;
            seen.push(why);
        }
    }
    for (number, name, why) in &report.unplayed {
        writeln!(f, "{number:>3} {name:<15} cannot be expressed: {why}")?;
    }
    let Limits { blur, late, hang } = report.limits;
    let blur = blur.as_millis();
    writeln!(f, "limits: {blur} ms is the same moment, late is within {late:?}, a hang is no control within {hang:?}")
}
