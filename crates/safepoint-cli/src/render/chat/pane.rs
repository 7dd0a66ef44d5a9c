//! The pane below the scrollback: the text that streams, what runs, what a stop waits for, the lists, and the input.
//!
//! **Invariants**: a function of the state, the size and the time; the input is always whole in it or around its cursor.

use std::time::Instant;

use ratatui_core::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use safepoint::{
    approval::{AllowScope, ApprovalKind},
    receipt::Ending,
};

use super::{
    completion::Menu,
    markdown::DIM,
    queue::{Items, Origin, Place, Pushed},
    state::{Edge, Leave, Mode, State},
    surface::Pane,
    todo::LIST_TOOL,
};
use crate::{
    render::{
        activity::{Activity, Call, CallState, PendingStop, elapsed},
        approval, call,
        text::in_a_row as one_line,
    },
    visible,
};

const STOPPING: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
pub(super) const LABEL: Style = Style::new().fg(Color::Blue);
const PROMPT: Style = Style::new().fg(Color::Green);
/// Rows of a list, of the input and of the text that streams, at most.
const LISTED: usize = 3;
const TYPED: usize = 4;
const STREAMED: usize = 8;
/// Letters of the arguments beside a question: both ends of them, in a line of a narrow terminal.
const ASKED: usize = 48;

/// What stands below the scrollback now.
pub(crate) fn pane(state: &State, rows: usize, now: Instant) -> Pane {
    let mut lines = Vec::new();
    if let Some(work) = &state.work {
        running(work, state, now, &mut lines);
        lines.extend(work.stop_line(now, "Esc").map(|text| Line::styled(text, STOPPING)));
    }
    lines.extend(state.live.background(state.work.as_ref().map_or(&[], |work| &work.calls), now));
    lines.extend(state.todos.lines());
    lists(&state.items, &mut lines);
    taken_back(&state.handed.texts, &mut lines);
    lines.extend(state.typing.own.lines(now));
    if let Some(asked) = state.questions.front().filter(|_| state.deciding.is_none()) {
        let asks = state.asks_to_edit().unwrap_or_else(|| {
            let args = visible::one_line(&call::in_words(&asked.question.tool, &asked.question.args), ASKED);
            format!("{}: {args}", approval::short(&asked.question))
        });
        lines.push(Line::styled(format!("? {asks}"), STOPPING));
        lines.extend(state.edit_keys().map(|keys| Line::styled(keys, DIM)));
        if state.mode == Mode::Allowing {
            let covers = [("e", AllowScope::Call), ("t", AllowScope::Tool)];
            lines.push(Line::raw("  from now on, in this session and in no other, without a question:"));
            lines.extend(covers.map(|(key, covers)| {
                let what = one_line(&approval::always(covers, &asked.question.tool));
                Line::from(vec![Span::styled(format!("  {key} "), LABEL), Span::raw(what)])
            }));
        }
    }
    let is_asked = !state.questions.is_empty();
    let list = state.kept.pane(rows.saturating_sub(lines.len() + 1), state.columns, is_asked);
    let (typed, cursor) = list.map_or_else(|| input(state), |list| (list.lines, list.cursor));
    let top = lines.len();
    lines.extend(typed);
    lines.extend(state.menu().iter().flat_map(Menu::lines));
    if !state.kept.has_list() {
        let keys = state.typing_hint().unwrap_or_else(|| hint(state, now));
        lines.extend(state.modes.footer(&keys, state.columns));
        lines.extend(state.meter.footer(state.columns, now).map(|row| Line::styled(row, DIM)));
    }
    let mut partial = state.partial();
    let shown = rows.saturating_sub(lines.len() + 1).min(STREAMED);
    partial.drain(..partial.len().saturating_sub(shown));
    // A blank row separates the text from the notes above it, and from the running work.
    if state.edge == Edge::Note && partial.first().is_some_and(|line| line.width() > 0) {
        partial.insert(0, Line::default());
    }
    if !partial.is_empty() || state.edge != Edge::Blank {
        partial.push(Line::default());
    }
    let above = partial.len();
    partial.extend(lines);
    Pane { lines: partial, cursor: (cursor.0, above + top + cursor.1) }
}

fn running(work: &Activity, state: &State, now: Instant, lines: &mut Vec<Line<'static>>) {
    if let Some((what, since)) = work.model {
        let what = format!("{what}  {}", elapsed(since, now));
        lines.push(Line::from(vec![Span::styled("● ", LABEL), Span::raw(what)]));
        lines.extend(state.thoughts.rows(state.live.most_rows(), state.columns, now));
    }
    // What runs comes before what waits.
    let mut calls: Vec<&Call> = work.calls.iter().filter(|call| call.name != LIST_TOOL).collect();
    let count = calls.len();
    calls.sort_by_key(|call| call.state != CallState::Runs);
    let size = (calls.len().min(LISTED), state.columns);
    for call in calls.into_iter().take(LISTED) {
        lines.extend(state.live.rows(call, size, now));
    }
    if count > LISTED {
        lines.push(Line::styled(format!("  and {} more calls", count - LISTED), DIM));
    }
    if let Some((_, since)) = work.settled {
        let text = format!("the turn has ended; what it started is still ending  {}", elapsed(since, now));
        lines.push(Line::styled(text, DIM));
    }
}

fn lists(items: &Items, lines: &mut Vec<Line<'static>>) {
    let steers: Vec<_> = items.steers().map(|(_, item)| (item, Place::Queued)).collect();
    list("steering the next request:", &steers, lines);
    let queue: Vec<_> = items.queue().map(|(id, item)| (item, items.place(id))).collect();
    list("queued for the next turns (Up withdraws the last one):", &queue, lines);
}

fn list(label: &'static str, items: &[(&Pushed, Place)], lines: &mut Vec<Line<'static>>) {
    if items.is_empty() {
        return;
    }
    lines.push(Line::styled(label, LABEL));
    // The last ones: they were just typed, and Up withdraws them.
    let hidden = items.len().saturating_sub(LISTED);
    if hidden > 0 {
        lines.push(Line::styled(format!("  {hidden} before these"), DIM));
    }
    for (index, (item, place)) in items.iter().enumerate().skip(hidden) {
        let mark = match place {
            Place::Preempting => " (instead of the running turn)",
            Place::First => " (before the queue)",
            Place::Queued => "",
        };
        let from = match item.origin {
            Origin::Here => "",
            Origin::Elsewhere => " (from elsewhere)",
            Origin::Before => " (from before)",
        };
        lines.push(Line::raw(format!("  {}. {}{mark}{from}", index + 1, one_line(&item.text))));
    }
}

/// What a stop has taken out of the queue.
fn taken_back(texts: &[String], lines: &mut Vec<Line<'static>>) {
    if texts.is_empty() {
        return;
    }
    lines.push(Line::styled("not sent, yours again when the turn has ended:", LABEL));
    let texts = texts.iter().flat_map(|text| text.lines()).take(LISTED);
    lines.extend(texts.map(|text| Line::raw(format!("  {}", one_line(text)))));
}

/// What comes of a stop while it is under way.
fn stopping_hint(state: &State, stop: PendingStop) -> String {
    let ends = if state.ctrl_c.is_some() { "Ctrl-C ends" } else { "Ctrl-C twice ends" };
    let esc = if stop == PendingStop::Now { "" } else { "Esc stops at once · " };
    match (state.handed.is_asked, state.handed.texts.as_slice()) {
        (true, []) => format!("{esc}{ends}"),
        (true, _) => format!("{esc}what waited comes back to you · {ends}"),
        (false, _) => format!("{esc}the newer message goes next, the queue after it · {ends}"),
    }
}

/// The rows of the input around its cursor.
fn input(state: &State) -> (Vec<Line<'static>>, (usize, usize)) {
    const LEAD: usize = 2;
    let (rows, (column, row)) = state.input.rows(state.input_width());
    let first = (row + 1).saturating_sub(TYPED);
    let lead = match state.mode {
        Mode::Denying => "✗ ",
        Mode::Telling => "= ",
        Mode::Changing => "= ",
        Mode::EditingPlan => "✎ ",
        Mode::Typing | Mode::Allowing | Mode::Rewinding | Mode::Hunks | Mode::Planning => "› ",
    };
    let shown = rows.into_iter().enumerate().skip(first).take(TYPED).map(|(index, text)| {
        Line::from(vec![Span::styled(if index == 0 { lead } else { "  " }, PROMPT), Span::raw(text)])
    });
    (shown.collect(), (column + LEAD, row - first))
}

fn hint(state: &State, now: Instant) -> String {
    let stop = state.pending_stop();
    match (state.leaving, state.mode, state.questions.front()) {
        (Some(Leave::Tidily), ..) => "ending… Ctrl-C ends within a second".to_owned(),
        (Some(Leave::AtOnce), ..) => "ending now…".to_owned(),
        _ if state.kept.hint().is_some() => state.kept.hint().unwrap_or_default(),
        (None, Mode::Denying, _) => "say why not · Enter denies with this message · Esc back".to_owned(),
        (None, Mode::Telling, _) => {
            "what did it come to? · Enter: it is done, with this · Esc back".to_owned()
        }
        (None, Mode::Changing, _) => {
            "the arguments, as JSON · Enter shows the call with these and asks again · Ctrl-J a new line · Esc back"
                .to_owned()
        }
        (None, Mode::Hunks, _) if state.may_answer(now) => {
            "y make this hunk · n leave it out · Esc back: nothing is decided".to_owned()
        }
        (None, Mode::Hunks, _) if !state.input.is_empty() => {
            "Esc empties the input, to decide about the hunk".to_owned()
        }
        (None, Mode::Hunks, _) => "a hunk for you, when you pause typing · Esc back".to_owned(),
        (None, Mode::Rewinding, _) => state.rewind_hint(now),
        (None, Mode::Planning, _) => state.plan_hint(now),
        (None, Mode::EditingPlan, _) => {
            "the plan · Enter carries it out as it stands here · Ctrl-J a new line · Esc back".to_owned()
        }
        (None, Mode::Allowing, _) => "e exactly this · t the tool · Esc back".to_owned(),
        (None, Mode::Typing, Some(asked)) if state.may_answer(now) => {
            let more = state.questions.len() - 1;
            let more = if more > 0 { format!(" · {more} more after it") } else { String::new() };
            match asked.question.question {
                ApprovalKind::BeforeCall | ApprovalKind::DuringCall => {
                    format!("y yes · n no · m no, saying why · a always… · Esc stops{more}")
                }
                ApprovalKind::AfterUnknownEnd => {
                    format!("r run it again · d it is done… · g give it up · Esc stops{more}")
                }
            }
        }
        (None, Mode::Typing, Some(_)) if !state.input.is_empty() => {
            "Enter sends this · to answer the question, empty the input first (Esc)".to_owned()
        }
        (None, Mode::Typing, Some(_)) => "a question for you, when you pause typing".to_owned(),
        (None, Mode::Typing, None) if state.is_running() => stop.map_or_else(
            || "Enter steers · Alt-Enter queues · Esc stops · /help".to_owned(),
            |stop| stopping_hint(state, stop),
        ),
        (None, Mode::Typing, None) if state.work.is_some() => "Enter queues · /help".to_owned(),
        (None, Mode::Typing, None) if state.is_escaped(now) => {
            "Esc again lists the turns to go back to".to_owned()
        }
        (None, Mode::Typing, None) => {
            let last = state.last.as_ref();
            let is_open = last.map_or(state.kept.is_open, |receipt| receipt.ending != Ending::Done);
            let resume = if is_open { " · /resume resumes" } else { "" };
            format!("{} · Enter sends{resume} · /help · Ctrl-D quits", state.model)
        }
    }
}
