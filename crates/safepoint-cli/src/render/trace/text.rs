//! A story as text: readable at 80 columns, one line a step, in the order of time.

use std::time::Duration;

use jiff::Timestamp;
use safepoint::raw::lasting;
use unicode_width::UnicodeWidthStr as _;

use super::{
    holder::Holder,
    timeline::{Kind, Step, Timeline, Turn, many, standing},
};
use crate::render::text::{cut, moment, one_line};

/// How wide the text is.
const WIDTH: usize = 80;
/// What stands before the words of a step: when, and for how long.
const TIMES: usize = 22;

/// The whole story.
pub(crate) fn text(story: &Timeline) -> String {
    let mut out = String::new();
    head(story, &mut out);
    let mut on = None;
    let mut steps = |of: Option<&Turn>, out: &mut String| {
        for step in story.steps_of(of.map(|turn| turn.id)) {
            let holder = story.holder(step.position).map(Holder::shown).filter(|_| story.has_named_holders());
            if let Some(holder) = holder.filter(|holder| on != Some(*holder)) {
                push(out, &cut(&format!("  on {}", one_line(holder)), WIDTH));
                on = Some(holder);
            }
            line(story, step, of.and_then(|turn| turn.from), out);
        }
    };
    steps(None, &mut out);
    for turn in &story.turns {
        turn_head(turn, &mut out);
        steps(Some(turn), &mut out);
    }
    out
}

fn head(story: &Timeline, out: &mut String) {
    let row = &story.row;
    let damaged = story.damaged();
    push(out, &cut(&one_line(&format!("session {}: {}", row.id, story.state)), WIDTH));
    push(out, &format!("created {}, last changed {}", moment(row.created), moment(row.updated)));
    push(out, &story.counts());
    if damaged > 0 {
        let damaged = many(damaged, "record");
        push(out, &format!("warning: {damaged} cannot be read; each is marked in its place"));
    }
}

fn turn_head(turn: &Turn, out: &mut String) {
    let took = match (turn.from, turn.to) {
        (Some(from), Some(to)) => format!(", {}", span(from, to)),
        _ => String::new(),
    };
    let at = turn.from.map(|from| format!(", {}", moment(from))).unwrap_or_default();
    out.push('\n');
    push(out, &format!("{}: {}{took}{at}", turn.id, standing(turn.fate)));
    if !turn.asked.is_empty() {
        push(out, &cut(&format!("  > {}", one_line(&turn.asked)), WIDTH));
    }
}

fn line(story: &Timeline, step: &Step, from: Option<Timestamp>, out: &mut String) {
    let when = match (from, step.from) {
        (Some(from), Some(at)) => elapsed(from, at),
        _ => String::new(),
    };
    let took = match (step.kind.is_span(), step.from, step.to) {
        (true, Some(from), Some(to)) => span(from, to),
        (true, _, None) => "…".to_owned(),
        _ => String::new(),
    };
    let lane = &story.runs[step.run];
    let depth = lane.depth() + usize::from(step.kind != Kind::Attempt && !is_mark(step.kind));
    let whose = if lane.name.is_empty() { String::new() } else { format!("[{}] ", lane.name) };
    let lead = format!("{}{whose}", "  ".repeat(depth));
    let room = (WIDTH - TIMES).saturating_sub(lead.width()).max(LEAST);
    let mut times = format!("{when:>10}  {took:>8}");
    for words in rows(&words(step, room), room) {
        push(out, &cut(&format!("{times}  {lead}{words}").replace('\u{a0}', " "), WIDTH));
        times = " ".repeat(TIMES - 2);
    }
}

/// The least room for words, however deep their run hangs.
const LEAST: usize = 20;
/// The most lines of one step.
const ROWS: usize = 4;

/// The words in rows of so much room, as few as hold them, but no more than [`ROWS`].
fn rows(words: &str, room: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in words.split(' ') {
        let last = rows.len() - 1;
        if rows[last].is_empty() {
            rows[last] = cut(word, room);
        } else if rows[last].width() + 1 + word.width() <= room {
            rows[last] = format!("{} {word}", rows[last]);
        } else if rows.len() < ROWS {
            rows.push(format!("  {}", cut(word, room - 2)));
        } else {
            rows[last] = cut(&format!("{}…{}", rows[last], " ".repeat(room)), room);
            break;
        }
    }
    rows
}

/// What concerns the whole run stands as far left as the run does.
fn is_mark(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::StopAsked
            | Kind::StopEscalated
            | Kind::StopObserved
            | Kind::Settled
            | Kind::Quiet
            | Kind::TurnEnded
            | Kind::Damaged
    )
}

/// The least of the arguments that a line shows.
const ARGUMENTS: usize = 12;

/// What it is, with as much of its arguments as leaves room for how it went.
fn words(step: &Step, room: usize) -> String {
    let mark = match step.kind {
        Kind::StopAsked | Kind::StopEscalated | Kind::StopObserved => "■ ",
        Kind::Damaged => "! ",
        Kind::Steer => "> ",
        Kind::Approval => "? ",
        _ => "",
    };
    let title = one_line(&step.title);
    let taken = title.width() + one_line(&step.said).width() + ": ".len() + 1;
    let arguments = match (step.kind, step.fields.get("args")) {
        (Kind::Call | Kind::Child, Some(args)) => {
            // One word, however long: it is not broken at its spaces.
            let left = room.saturating_sub(taken).max(ARGUMENTS);
            format!(" {}", cut(&one_line(&args.to_string()), left).replace(' ', "\u{a0}"))
        }
        _ => String::new(),
    };
    match step.said.as_str() {
        "" => format!("{mark}{title}{arguments}"),
        said => format!("{mark}{title}{arguments}: {}", one_line(said)),
    }
}

fn push(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// How long after the turn began.
fn elapsed(from: Timestamp, at: Timestamp) -> String {
    const HOUR: i128 = 3_600_000;
    const MINUTE: i128 = 60_000;
    const SECOND: i128 = 1_000;
    let millis = at.duration_since(from).as_millis();
    let (sign, millis) = if millis < 0 { ('-', -millis) } else { ('+', millis) };
    let (seconds, rest) = (millis / SECOND, millis % SECOND);
    match millis {
        HOUR.. => format!("{sign}{}:{:02}:{:02}", millis / HOUR, millis % HOUR / MINUTE, seconds % 60),
        _ => format!("{sign}{seconds}.{rest:03}"),
    }
}

/// How long it took.
fn span(from: Timestamp, to: Timestamp) -> String {
    lasting(Duration::try_from(to.duration_since(from)).unwrap_or_default())
}
