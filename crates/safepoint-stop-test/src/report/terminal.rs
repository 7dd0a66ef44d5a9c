//! A report as a person reads it at a terminal.

use std::fmt;

use super::{Report, Row};
use crate::judge::VerdictLimits;

/// A row for each scenario and way that has a verdict, then what has none, with the reason.
pub(super) fn written(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "{}", report.target)?;
    let (judged, not): (Vec<&Row>, Vec<&Row>) = report.rows.iter().partition(|row| row.worst().is_some());
    let width = judged.iter().map(|row| row.words().len()).max().unwrap_or_default();
    let names = judged.iter().map(|row| row.way.len()).chain([USUAL]).max().unwrap_or_default();
    for row in judged {
        let (scenario, way) = (row.scenario, &row.way);
        let words = format!("{:<width$}", row.words());
        // Red is for what leaves whoever asked for the stop worse off than they believe.
        let is_bad = f.alternate() && row.worst().is_some_and(crate::Verdict::is_bad);
        let words = if is_bad { format!("\x1b[31m{words}\x1b[0m") } else { words };
        writeln!(f, "{:>3} {:<15} {way:<names$} {words}  {}", scenario.number, scenario.name, row.because())?;
    }
    for (why, names) in by_reason(&not) {
        writeln!(f, "  - {}: {why}", names.join(", "))?;
    }
    for (_, name, why) in &report.unplayed {
        writeln!(f, "  - {name}: cannot be expressed: {why}")?;
    }
    let VerdictLimits { blur, late, hang, again } = report.limits;
    let blur = blur.as_millis();
    writeln!(
        f,
        "limits: {blur} ms is the same moment, late is within {late:?}, a hang is no control within {hang:?}, what begins again is looked for during {again:?}"
    )
}

/// How long the name of a way usually is.
const USUAL: usize = 14;

/// The scenarios without a verdict, by why they have none; each reason where it comes first.
fn by_reason(rows: &[&Row]) -> Vec<(String, Vec<&'static str>)> {
    let mut reasons: Vec<(String, Vec<&'static str>)> = Vec::new();
    for row in rows {
        let (why, name) = (row.because(), row.scenario.name);
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    reasons
}
