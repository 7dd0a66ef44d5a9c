//! A report as one page of HTML: for each row a line of time, with what was said above what was so.

use std::{fmt::Write as _, time::Duration};

use super::{Report, Row, junit::escaped};
use crate::{
    facts::{Work, WorkEnd},
    trial::Trial,
};

/// How wide a line of time is, in the units of its picture.
const WIDTH: f64 = 640.0;
/// How high one line of it is.
const LINE: f64 = 18.0;

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:15px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h2{font-size:1rem;margin:2rem 0 .25rem}.bad{color:#c22}.good{color:#292}p{margin:.25rem 0}svg{width:100%;height:auto}\
text{font:11px system-ui,sans-serif;fill:currentColor}.said{fill:#36c}.cut{fill:#292}.open{fill:#c22}";

/// The whole page.
pub(super) fn written(report: &Report) -> String {
    let target = escaped(&report.target);
    let rows: String = report.rows.iter().filter(|row| row.worst().is_some()).map(section).collect();
    let limits = report.limits;
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>What the stop of {target} does</title><style>{STYLE}</style>\n<h1>What the stop of {target} does</h1>\n\
         <p>Blue is what was said, green is work until it ended, red is work that went on longer than its caller was told. \
         {blur} ms count as the same moment; late is within {late:?}; a hang is no control within {hang:?}.</p>\n{rows}</html>\n",
        blur = limits.blur.as_millis(),
        late = limits.late,
        hang = limits.hang,
    )
}

fn section(row: &Row) -> String {
    let is_bad = row.worst().is_some_and(crate::Verdict::is_bad);
    let class = if is_bad { "bad" } else { "good" };
    let worst = row.judged().max_by_key(|trial| trial.judged.verdict);
    format!(
        "<h2>{} {} by {}: <span class=\"{class}\">{}</span></h2>\n<p>{}: {}</p>\n{}\n",
        row.scenario.number,
        row.scenario.name,
        escaped(&row.way),
        escaped(&row.words()),
        row.scenario.what,
        escaped(&row.because()),
        worst.map(picture).unwrap_or_default(),
    )
}

/// A line of time of one trial: from the stop to the end of what was watched.
fn picture(trial: &Trial) -> String {
    let (facts, claims) = (&trial.facts, &trial.claims);
    let watched = facts.watched.max(Duration::from_millis(1)).as_secs_f64();
    let place = |at: Duration| (at.as_secs_f64() / watched).min(1.0) * WIDTH;
    let height = LINE * (facts.work.len() as f64 + 1.0);
    let mut lines =
        format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"a line of time\">");
    let mut bar = |line: usize, class: &str, (to, words): (f64, String)| {
        let top = LINE * line as f64;
        let (y, base, to) = (top + 2.0, top + 13.0, to.max(2.0));
        let drawn = write!(
            lines,
            "<rect class=\"{class}\" opacity=\".3\" x=\"0\" y=\"{y}\" width=\"{to:.1}\" height=\"14\"/>\
             <text x=\"4\" y=\"{base}\">{}</text>",
            escaped(&words)
        );
        drawn.expect("writing to memory cannot fail");
    };
    let said = match claims.free {
        Some(free) => (place(free), format!("{} after {} ms", claims.says, free.as_millis())),
        None => (WIDTH, "no word to its caller".to_owned()),
    };
    bar(0, "said", said);
    let free = claims.free.unwrap_or_default();
    for (place_of, work) in facts.work.iter().enumerate() {
        let until = work.until();
        let is_beyond = until.is_none_or(|until| until > free + Duration::from_millis(50));
        let words = format!("{work}, {}", ended(work));
        bar(place_of + 1, if is_beyond { "open" } else { "cut" }, (until.map_or(WIDTH, place), words));
    }
    lines.push_str("</svg>");
    lines
}

fn ended(work: &Work) -> String {
    match work.end {
        WorkEnd::Cut(at) => format!("cut after {} ms", at.as_millis()),
        WorkEnd::Whole(at) => format!("done after {} ms", at.as_millis()),
        WorkEnd::Never => "did not end".to_owned(),
    }
}
