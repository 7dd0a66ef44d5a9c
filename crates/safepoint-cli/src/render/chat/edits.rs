//! Edits in the chat: the diff in a question, the answer hunk by hunk, arguments that a person changes, and the diff of what
//! was done.
//!
//! **Invariants**: a question about an edit can be answered only once its diff is shown.

use std::{collections::BTreeMap, time::Instant};

use crossterm::event::{KeyCode, KeyEvent};
use ratatui_core::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use safepoint::{
    approval::{ApprovalKind, ApprovalRequest, Decision},
    ids::{ApprovalId, CallId},
    receipt::{CallReport, CallStatus},
};
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::{
    markdown::DIM,
    state::{Action, Edge, Mode, State, Tone},
};
use crate::render::{
    approval, call,
    diff::{self, DiffRow, GUTTER, RowKind},
    edit::{self, EditView},
};

/// Rows of a diff in a question, at least, and of one that was made, at most.
const ASKED: usize = 12;
const MADE: usize = 16;

/// What is known of edits.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    /// The question whose diff is being made.
    looking: Option<ApprovalId>,
    /// What is shown of the question.
    shown: Option<EditView>,
    /// The arguments that a person gives in place of the question's.
    changed: Option<Value>,
    /// The hunks that were accepted, and which one is asked about.
    hunks: Option<(Vec<usize>, usize)>,
    /// The edits that run, and the diff of what each did.
    running: BTreeMap<CallId, String>,
    /// The last diff.
    last: Option<String>,
    /// Rows of the screen.
    pub(crate) rows: usize,
}

impl Edits {
    /// Whether the question can be answered: what it would do is shown.
    pub(super) fn is_shown(&self) -> bool {
        self.looking.is_none()
    }

    /// A question is over.
    pub(super) fn forget(&mut self) {
        (self.looking, self.shown, self.changed, self.hunks) = (None, None, None, None);
    }

    /// Progress of an edit is the diff of what it did.
    pub(super) fn progress(&mut self, call: &CallId, text: &str) {
        if let Some(diff) = self.running.get_mut(call) {
            diff.push_str(text);
        }
    }
}

impl State {
    /// Shows the question that is answered next: of an edit, once its diff is there.
    pub(super) fn put_edit(&mut self, asked: &ApprovalRequest) {
        let mut asked = asked.clone();
        if let Some(args) = &self.edits.changed {
            asked.args = args.clone();
        }
        self.edits.shown = None;
        self.gap();
        if asked.question == ApprovalKind::BeforeCall && edit::is_edit(&asked.tool) {
            self.edits.looking = Some(asked.id.clone());
            return self.actions.push(Action::Preview(Box::new(asked)));
        }
        self.tell(Tone::Plain, &approval::put(&asked));
    }

    /// What a call would change is known; none if it cannot be shown so.
    pub(crate) fn previewed(&mut self, asked: &ApprovalRequest, view: Option<EditView>, now: Instant) {
        if self.edits.looking.take_if(|looking| *looking == asked.id).is_none() {
            return;
        }
        if let Some(front) = self.questions.front_mut() {
            front.since = now;
        }
        match view {
            Some(view) => {
                self.tell(Tone::Plain, &view.head(asked));
                self.tell_diff(&view.rows(), self.fitting(), "v shows all of it");
                self.edits.shown = Some(view);
            }
            None => self.tell(Tone::Plain, &approval::put(asked)),
        }
    }

    /// Puts the rows of a diff up, long ones folded, with what unfolds them.
    fn tell_diff(&mut self, rows: &[DiffRow], most: usize, unfold: &str) {
        let (head, hidden, tail) = diff::folded(rows, most);
        let mut lines: Vec<Line<'static>> = head.iter().flat_map(|row| lines(row, self.columns)).collect();
        if hidden > 0 {
            let (added, removed) = diff::counts(rows);
            let said =
                format!("      … {hidden} lines are NOT SHOWN HERE (+{added} -{removed} in all) · {unfold}");
            lines.push(Line::styled(said, Style::new().fg(Color::Yellow)));
            lines.extend(tail.iter().flat_map(|row| self::lines(row, self.columns)));
        }
        self.lines_above(lines);
    }

    /// The letters that answer a question beside yes, no and always.
    pub(super) fn answers_edit(&self, letter: char) -> bool {
        let Some(asked) = self.questions.front() else { return false };
        let is_before = asked.question.question == ApprovalKind::BeforeCall;
        match letter {
            'v' => true,
            'e' => is_before,
            'h' => self.edits.shown.as_ref().is_some_and(|view| view.hunks.len() > 1),
            _ => false,
        }
    }

    /// What the pane says of them.
    pub(super) fn edit_keys(&self) -> Option<&'static str> {
        match (self.answers_edit('h'), self.answers_edit('e')) {
            _ if self.mode != Mode::Typing => None,
            (true, _) => Some("  h hunk by hunk · e change the arguments · v view all of it"),
            (false, true) => Some("  e change the arguments · v view all of it"),
            (false, false) => None,
        }
    }

    /// What the edit at hand would do, in a few words.
    pub(super) fn asks_to_edit(&self) -> Option<String> {
        let view = self.edits.shown.as_ref()?;
        match &self.edits.hunks {
            Some((_, at)) if self.mode == Mode::Hunks => {
                Some(format!("may it make hunk {} of {}: {}", at + 1, view.hunks.len(), view.path()))
            }
            _ => view.short(),
        }
    }

    /// How many rows of a diff fit the screen.
    fn fitting(&self) -> usize {
        /// What stands below a diff, and the question above it.
        const AROUND: usize = 10;
        self.edits.rows.saturating_sub(AROUND).max(ASKED)
    }

    /// What these letters do.
    pub(super) fn edit_key(&mut self, letter: char) {
        let Some(asked) = self.questions.front() else { return };
        let asked = &asked.question;
        let args = self.edits.changed.as_ref().unwrap_or(&asked.args);
        match letter {
            'v' => {
                let mut asked = asked.clone();
                asked.args = args.clone();
                let text = self.edits.shown.as_ref().map_or_else(
                    || approval::put(&asked),
                    |view| format!("{}\n\n{}", view.head(&asked), diff::plain(&view.rows(), usize::MAX)),
                );
                self.actions.push(Action::Page(text));
            }
            'e' => {
                let text = format!("{args:#}");
                self.write(Mode::Changing);
                self.input.set(text);
            }
            'h' => {
                self.mode = Mode::Hunks;
                self.edits.hunks = Some((Vec::new(), 0));
                self.put_hunk();
            }
            _ => {}
        }
    }

    fn put_hunk(&mut self) {
        let (Some(view), Some((_, at))) = (&self.edits.shown, &self.edits.hunks) else { return };
        let (rows, said) = (view.hunks[*at].clone(), format!("hunk {} of {}:", at + 1, view.hunks.len()));
        self.gap();
        self.tell(Tone::Plain, &said);
        self.tell_diff(&rows, self.fitting(), "Esc, then v shows all of it");
    }

    /// Whether a letter decides about the hunk at hand.
    pub(super) fn decides_hunk(&self, letter: char) -> bool {
        self.mode == Mode::Hunks && matches!(letter, 'y' | 'n')
    }

    /// Accepts or refuses the hunk at hand; after the last one the question is answered.
    pub(super) fn hunk_key(&mut self, letter: char, now: Instant) {
        let Some((accepted, at)) = &mut self.edits.hunks else { return };
        if letter == 'y' {
            accepted.push(*at);
        }
        *at += 1;
        self.tell(Tone::Aside, if letter == 'y' { "  yes to this hunk" } else { "  left out" });
        let (Some(view), Some((accepted, at))) = (&self.edits.shown, &self.edits.hunks) else { return };
        if *at < view.hunks.len() {
            if let Some(asked) = self.questions.front_mut() {
                asked.since = now;
            }
            return self.put_hunk();
        }
        let decision = view.approve_hunks(accepted, self.edits.changed.as_ref().map(edit::changed));
        self.end_answer();
        self.decide(decision);
    }

    /// A key while a person edits the arguments.
    pub(super) fn changing_key(&mut self, key: KeyEvent) {
        if key.code != KeyCode::Enter {
            return self.edit_text(key);
        }
        let args = match serde_json::from_str::<Value>(&self.input.draft().whole()) {
            Ok(args) if args.is_object() => args,
            Ok(_) => {
                return self.tell(Tone::Bad, "the arguments must be a JSON object: {\"name\": value, …}");
            }
            Err(error) => return self.tell(Tone::Bad, &format!("these arguments are not JSON: {error}")),
        };
        self.end_answer();
        let Some(asked) = self.questions.front() else { return };
        let asked = asked.question.clone();
        self.edits.changed = (args != asked.args).then_some(args);
        let said = if self.edits.changed.is_some() { "with your arguments:" } else { "as it was:" };
        self.tell(Tone::Aside, said);
        self.put_edit(&asked);
    }

    /// The yes to what is shown.
    pub(super) fn yes(&self) -> Decision {
        let changed = self.edits.changed.as_ref();
        match (&self.edits.shown, changed) {
            (Some(view), changed) => view.approve(changed.map(edit::changed)),
            (None, Some(args)) => Decision::ApproveWith { args: args.clone(), message: edit::changed(args) },
            (None, None) => Decision::Approve,
        }
    }

    /// The answer was refused, such as arguments that do not fit: the question is open, and is put again.
    pub(crate) fn ask_again(&mut self, question: ApprovalRequest, now: Instant) {
        self.deciding.take_if(|deciding| *deciding == question.id);
        self.questions.retain(|asked| asked.question.id != question.id);
        self.questions.push_front(super::state::Asked { question, since: now });
        self.put_question(now);
    }

    /// A call began: the line that says so, without what binds its arguments to a file.
    pub(super) fn call_began(&mut self, call: &CallId, name: &str, args: &Value) {
        if edit::is_edit(name) {
            self.edits.running.insert(call.clone(), String::new());
        }
        let args = call::in_words(name, args);
        self.tell(Tone::Aside, &format!("▸ {name} {args}"));
    }

    /// Shows what an edit changed, if it is one and did.
    pub(super) fn edit_ended(&mut self, report: &CallReport) -> bool {
        let Some(diff) = self.edits.running.remove(&report.call_id) else { return false };
        let rows = diff::rows(&diff);
        if report.status != CallStatus::Completed || rows.is_empty() {
            return false;
        }
        self.tell_diff(&rows, MADE, "/diff shows all of it");
        self.edits.last = Some(diff::plain(&rows, usize::MAX));
        true
    }

    /// `/diff`: all of the last one.
    pub(super) fn page_diff(&mut self) {
        match self.edits.last.clone() {
            Some(diff) => self.actions.push(Action::Page(diff)),
            None => self.tell(Tone::Aside, "no edit was made here yet"),
        }
    }

    /// Rows for the scrollback.
    fn lines_above(&mut self, lines: Vec<Line<'static>>) {
        if !lines.is_empty() {
            self.put_above(lines);
            self.edge = Edge::Note;
        }
    }
}

/// A row of a diff as rows of the screen; further ones hang below its text.
fn lines(row: &DiffRow, columns: usize) -> Vec<Line<'static>> {
    let (style, gutter) = match row.kind {
        RowKind::Hunk => (Style::new().fg(Color::Cyan), DIM),
        RowKind::Same => (Style::new(), DIM),
        RowKind::Note => (DIM, DIM),
        RowKind::Removed => (Style::new().fg(Color::Red), Style::new().fg(Color::Red)),
        RowKind::Added => (Style::new().fg(Color::Green), Style::new().fg(Color::Green)),
    };
    let width = columns.saturating_sub(GUTTER).max(1);
    let mut lines = vec![vec![Span::styled(row.gutter(), gutter)]];
    let mut used = 0;
    for (text, is_marked) in &row.pieces {
        let style = if *is_marked { style.add_modifier(Modifier::REVERSED) } else { style };
        let mut piece = String::new();
        for cluster in text.graphemes(true) {
            if used + cluster.width() > width && used > 0 {
                push(&mut lines, std::mem::take(&mut piece), style);
                lines.push(vec![Span::raw(" ".repeat(GUTTER))]);
                used = 0;
            }
            used += cluster.width();
            piece.push_str(cluster);
        }
        push(&mut lines, piece, style);
    }
    lines.into_iter().map(Line::from).collect()
}

fn push(lines: &mut [Vec<Span<'static>>], text: String, style: Style) {
    if let Some(line) = lines.last_mut().filter(|_| !text.is_empty()) {
        line.push(Span::styled(text, style));
    }
}
