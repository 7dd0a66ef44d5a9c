//! The reasoning of the model, as far as its provider shows it: its last line while it comes, a row when it has ended, and all of it
//! in the pager.
//!
//! **Invariants**
//! - It is never shown as a part of the answer, and never given to the clipboard with it.
//! - What is kept is bounded: of a turn that reasons more, the beginning.

use std::time::Instant;

use ratatui_core::text::Line;
use safepoint::event::{EventKind, Fact};

use super::{
    live::output,
    markdown::DIM,
    state::{Action, State, Tone},
};
use crate::render::activity::elapsed;

/// The most bytes that are kept of one turn.
const MOST: usize = 1 << 20;
/// The bytes of which the last lines are shown.
const SHOWN: usize = 4 << 10;

/// The reasoning of the last turn that had some.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    /// Of each model call that showed some, in order.
    calls: Vec<String>,
    /// Since when it comes, if it does.
    since: Option<Instant>,
    /// Whether a turn has begun since.
    is_earlier: bool,
    /// Bytes that were not kept.
    left_out: usize,
}

impl Thoughts {
    /// A turn begins: what there is stays readable until the model reasons again.
    pub(super) fn begin(&mut self) {
        (self.since, self.is_earlier) = (None, true);
    }

    fn push(&mut self, text: &str, now: Instant) {
        if std::mem::take(&mut self.is_earlier) {
            *self = Self::default();
        }
        if self.since.is_none() {
            self.since = Some(now);
            self.calls.push(String::new());
        }
        let kept: usize = self.calls.iter().map(String::len).sum();
        let room = text.len().min(MOST.saturating_sub(kept));
        let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.left_out += text.len() - end;
        if let Some(last) = self.calls.last_mut() {
            last.push_str(&text[..end]);
        }
    }

    /// Whether some comes now.
    pub(super) fn is_coming(&self) -> bool {
        self.since.is_some()
    }

    /// The rows of what comes now.
    pub(super) fn rows(&self, most: usize, columns: usize, now: Instant) -> Vec<Line<'static>> {
        let (Some(since), Some(text)) = (self.since, self.calls.last()) else { return Vec::new() };
        let mut starts = text.len().saturating_sub(SHOWN)..=text.len();
        let tail = &text[starts.find(|start| text.is_char_boundary(*start)).unwrap_or(0)..];
        let head = format!("  ∴ thinking  {}  (Ctrl-T: all of it)", elapsed(since, now));
        let mut rows = vec![Line::styled(head, DIM)];
        rows.extend(output(tail, most, columns));
        rows
    }

    /// All of it, as it is read in the pager.
    fn whole(&self) -> Option<String> {
        let shown: Vec<&str> =
            self.calls.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        if shown.is_empty() {
            return None;
        }
        let left_out = match self.left_out {
            0 => String::new(),
            bytes => format!("\n\n[{bytes} bytes more are not kept here]"),
        };
        Some(format!("{}{left_out}\n", shown.join("\n\n———\n\n")))
    }
}

impl State {
    /// An event of the turn's own run.
    pub(super) fn think(&mut self, kind: &EventKind, now: Instant) {
        match kind {
            EventKind::Reasoning(text) => self.thoughts.push(text, now),
            EventKind::Text(_) | EventKind::CallBegun(_) => self.end_thought(now),
            EventKind::Fact(fact) if matches!(**fact, Fact::ModelEnded { .. } | Fact::Settled { .. }) => {
                self.end_thought(now);
            }
            _ => {}
        }
    }

    fn end_thought(&mut self, now: Instant) {
        if let Some(since) = self.thoughts.since.take() {
            self.tell(Tone::Aside, &format!("∴ thought for {}: Ctrl-T shows it", elapsed(since, now)));
        }
    }

    /// Ctrl-T, and `/thoughts`.
    pub(super) fn page_thoughts(&mut self) {
        match self.thoughts.whole() {
            Some(whole) => self.actions.push(Action::Page(whole)),
            None => self.tell(Tone::Aside, "the model has shown no reasoning in this chat"),
        }
    }
}
