//! A report as systems of continuous integration read it.

use super::{Report, Row};
use crate::verdict::Verdict;

/// The report as JUnit's XML.
pub(super) fn written(report: &Report, required: Verdict) -> String {
    let failed = report.worse_than(required).count();
    let cases: String = report.rows.iter().map(|row| case(row, required)).collect();
    let (name, all) = (escaped(&report.target), report.rows.len());
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n\
         <testsuite name=\"{name}\" tests=\"{all}\" failures=\"{failed}\" errors=\"0\">\n{cases}</testsuite>\n</testsuites>\n"
    )
}

fn case(row: &Row, required: Verdict) -> String {
    let seconds = row.times().map_or(0.0, |(_, longest)| longest.as_secs_f64());
    let name = escaped(&format!("{} by {}", row.scenario.name, row.way));
    let head = format!("<testcase classname=\"stop-test\" name=\"{name}\" time=\"{seconds:.3}\"");
    match row.worst() {
        Some(worst) if worst <= required && !row.was_missed() => format!("{head}/>\n"),
        None if row.is_unexpressed() => {
            format!("{head}><skipped message=\"{}\"/></testcase>\n", escaped(&row.because()))
        }
        worst => {
            let word = worst.map_or("no verdict", Verdict::word);
            format!("{head}><failure message=\"{word}\">{}</failure></testcase>\n", escaped(&row.because()))
        }
    }
}

/// A text within XML; what XML cannot hold is left out.
pub(super) fn escaped(text: &str) -> String {
    let is_there = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars().filter(is_there) {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}
