//! The to-do list that the agent keeps, as it is shown.
//!
//! **Invariants**: only a call that the tool has taken changes it; one of a sub-agent does not.

use ratatui_core::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use safepoint::{event::Fact, ids::CallId, receipt::CallStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    markdown::DIM,
    state::{State, Tone},
};
use crate::render::text::one_line;

/// The name of its tool.
pub(crate) const LIST_TOOL: &str = "todo";
/// Rows of the pane, at most.
const ROWS: usize = 5;
/// The most items of a list, and the most letters of one.
pub(crate) const MOST: usize = 50;
pub(crate) const LONGEST: usize = 200;

/// The whole list: each call replaces the one before.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
pub(crate) struct TodoList {
    /// The items, in the order in which they will be done.
    pub(crate) items: Vec<TodoItem>,
}

/// One thing to do.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
pub(crate) struct TodoItem {
    /// What is to be done, in a few words.
    pub(crate) text: String,
    pub(crate) state: TodoState,
}

/// How far it is. Exhaustive: the model is given these three.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TodoState {
    Open,
    Active,
    Done,
}

/// The list that holds, and one that the tool has not taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Todos {
    list: TodoList,
    given: Option<(CallId, TodoList)>,
}

impl TodoList {
    /// `2 of 5 done`.
    pub(crate) fn summary(&self) -> String {
        format!("{} of {} done", self.done(), self.items.len())
    }

    /// Why it cannot be taken.
    pub(crate) fn flaw(&self) -> Option<String> {
        let is_long = |item: &TodoItem| item.text.chars().count() > LONGEST;
        match () {
            () if self.items.len() > MOST => {
                Some(format!("the list has {} items, and {MOST} are the most", self.items.len()))
            }
            () if self.items.iter().any(|item| item.text.trim().is_empty()) => {
                Some("an item has no text".to_owned())
            }
            () if self.items.iter().any(is_long) => Some(format!("an item has more than {LONGEST} letters")),
            () => None,
        }
    }

    fn done(&self) -> usize {
        self.items.iter().filter(|item| item.state == TodoState::Done).count()
    }

    fn active(&self) -> Option<usize> {
        self.items.iter().position(|item| item.state == TodoState::Active)
    }
}

impl Todos {
    /// Takes in what the turn recorded; whether the list is another now.
    pub(crate) fn see(&mut self, fact: &Fact) -> bool {
        match fact {
            Fact::CallStarted { call_id, name, args, .. } if name == LIST_TOOL => {
                let list = TodoList::deserialize(&**args as &Value).ok();
                self.given = list.map(|list| (call_id.clone(), list));
                false
            }
            Fact::CallEnded { report, .. } if report.name == LIST_TOOL => {
                let taken = self.given.take().filter(|(id, list)| {
                    *id == report.call_id && report.status == CallStatus::Completed && list.flaw().is_none()
                });
                taken.map(|(_, list)| self.list = list).is_some()
            }
            _ => false,
        }
    }

    /// The rows of the pane: those around what is active; none where all is done or nothing is listed.
    pub(super) fn lines(&self) -> Vec<Line<'static>> {
        let items = &self.list.items;
        if self.list.done() == items.len() {
            return Vec::new();
        }
        let next = self.list.active().or_else(|| items.iter().position(|item| item.state == TodoState::Open));
        let first = next.unwrap_or_default().saturating_sub(1).min(items.len().saturating_sub(ROWS));
        let mut lines = vec![Line::styled(format!("to do: {}", self.list.summary()), DIM)];
        lines.extend(items.iter().skip(first).take(ROWS).map(row));
        let below = items.len().saturating_sub(first + ROWS);
        if below > 0 {
            lines.push(Line::styled(format!("  and {below} more; /todo shows all"), DIM));
        }
        lines
    }
}

fn row(item: &TodoItem) -> Line<'static> {
    let (mark, style) = match item.state {
        TodoState::Open => ("☐ ", Style::new()),
        TodoState::Active => ("▸ ", Style::new().fg(Color::Blue).add_modifier(Modifier::BOLD)),
        TodoState::Done => ("☑ ", DIM),
    };
    Line::from(vec![Span::raw("  "), Span::styled(mark, style), Span::styled(one_line(&item.text), style)])
}

impl State {
    /// Whether this fact was one of the list's, which is shown in its own way.
    pub(super) fn todo_fact(&mut self, fact: &Fact) -> bool {
        if self.todos.see(fact) {
            let list = &self.todos.list;
            let now = list.active().map(|at| format!(" · {}", one_line(&list.items[at].text)));
            let said = format!("▪ to do: {}{}", list.summary(), now.unwrap_or_default());
            self.tell(Tone::Aside, &said);
            return true;
        }
        matches!(fact, Fact::CallStarted { name, .. } if name == LIST_TOOL)
    }

    /// `/todo`: the whole list.
    pub(super) fn tell_todos(&mut self) {
        if self.todos.list.items.is_empty() {
            return self.tell(Tone::Aside, "the agent has no to-do list yet; you can ask for one");
        }
        let mut lines = vec![Line::styled(format!("to do: {}", self.todos.list.summary()), DIM)];
        lines.extend(self.todos.list.items.iter().map(row));
        self.put_above(lines);
    }
}
