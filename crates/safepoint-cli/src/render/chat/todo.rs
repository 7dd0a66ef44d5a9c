//! The to-do list that the model keeps, as the screen shows it.
//!
//! **Invariants**: a fold of facts; a list has the bounds that its tool gives it.

use ratatui_core::{
    style::{Color, Style},
    text::{Line, Span},
};
use safepoint::{
    event::Fact,
    receipt::{CallReport, CallStatus},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    markdown::DIM,
    state::{State, Tone},
};
use crate::render::text::in_a_row;

/// The tool that keeps it.
pub(crate) const LIST_TOOL: &str = "todo_list";

/// Rows of it in the pane.
const SHOWN: usize = 6;

/// What the model is to do, all of it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct TodoList {
    /// All items, in order, those that are done included.
    pub(crate) items: Vec<TodoItem>,
}

/// One thing to do.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct TodoItem {
    /// What, in a few words.
    text: String,
    /// How far it is.
    state: TodoState,
}

/// How far an item is. Exhaustive: the three.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum TodoState {
    Pending,
    InProgress,
    Done,
}

impl TodoList {
    /// The list that this fact changes it to.
    pub(crate) fn in_fact(fact: &Fact) -> Option<Self> {
        let Fact::CallStarted { name, args, .. } = fact else { return None };
        (name == LIST_TOOL).then(|| Self::deserialize(&**args).ok()).flatten()
    }

    /// `2 of 5 done`.
    pub(crate) fn progress(&self) -> String {
        let done = self.items.iter().filter(|item| item.state == TodoState::Done).count();
        format!("{done} of {} done", self.items.len())
    }

    fn is_done(&self) -> bool {
        self.items.iter().all(|item| item.state == TodoState::Done)
    }

    /// The list around what is being done; in one row where nothing runs.
    pub(super) fn rows(&self, is_running: bool) -> Vec<Line<'static>> {
        if self.is_done() {
            return Vec::new();
        }
        let head = Line::styled(format!("to do, {}", self.progress()), DIM);
        if !is_running {
            return vec![head];
        }
        let open = self.items.iter().position(|item| item.state != TodoState::Done).unwrap_or(0);
        // The one before it is seen to be done.
        let from = open.saturating_sub(1).min(self.items.len().saturating_sub(SHOWN));
        let shown = self.items.iter().skip(from).take(SHOWN).map(TodoItem::row);
        let rest = self.items.len().saturating_sub(from + SHOWN);
        let more = (rest > 0).then(|| Line::styled(format!("  and {rest} more"), DIM));
        [head].into_iter().chain(shown).chain(more).collect()
    }
}

impl TodoItem {
    fn row(&self) -> Line<'static> {
        let text = in_a_row(&self.text);
        match self.state {
            TodoState::Done => Line::styled(format!("  ✓ {text}"), DIM),
            TodoState::Pending => Line::raw(format!("  · {text}")),
            TodoState::InProgress => {
                Line::from(vec![Span::styled("  ▸ ", Style::new().fg(Color::Blue)), Span::raw(text)])
            }
        }
    }
}

impl State {
    /// A call of the list's tool began: the list is what it says. False for any other fact.
    pub(super) fn todo_began(&mut self, fact: &Fact) -> bool {
        let Some(list) = TodoList::in_fact(fact) else { return false };
        self.tell(Tone::Aside, &format!("▸ to do: {}", list.progress()));
        self.todo = list;
        true
    }
}

/// Whether this was a call of the list's tool, which the pane shows.
pub(super) fn is_shown(report: &CallReport) -> bool {
    report.name == LIST_TOOL && report.status == CallStatus::Completed
}
