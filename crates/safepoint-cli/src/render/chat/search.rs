//! The search in earlier inputs, also those of other chats: each letter looks again from the newest on.
//!
//! **Invariants**: what was typed before the search comes back when it is given up; a match is taken as one step that can be undone.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    input::{Draft, Way},
    state::State,
};
use crate::output;

/// A search that is open.
#[derive(Debug, Default)]
pub(crate) struct Search {
    query: String,
    /// What was typed before.
    before: Draft,
    /// Which of the earlier inputs is shown.
    at: Option<usize>,
    /// Whether nothing fits the query.
    is_failing: bool,
}

/// The bytes of the last letter.
fn last_of(text: &str) -> usize {
    text.chars().next_back().map_or(0, char::len_utf8)
}

impl Search {
    pub(super) fn hint(&self) -> String {
        let what = if self.is_failing { "nothing earlier has" } else { "earlier input with" };
        format!("{what} “{}” · Ctrl-R older · Enter takes it · Ctrl-C back", output::plain(&self.query))
    }
}

impl State {
    pub(crate) fn is_searching(&self) -> bool {
        self.typing.search.is_some()
    }

    pub(super) fn begin_search(&mut self) {
        self.typing.search = Some(Search { before: self.input.draft(), ..Search::default() });
    }

    /// A key while the search is open.
    pub(super) fn search_key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => self.look(Way::Back),
            KeyCode::Char('s') if control => self.look(Way::Forth),
            KeyCode::Char('g') if control => self.leave_search(),
            KeyCode::Char(letter) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.change_query(|query| query.push(letter));
            }
            KeyCode::Backspace => self.change_query(|query| query.truncate(query.len() - last_of(query))),
            KeyCode::Enter | KeyCode::Tab => {
                self.accept_found();
            }
            // Any other key is for the editor.
            _ => {
                self.accept_found();
                self.typed(key);
            }
        }
    }

    /// Pasted text belongs to the query.
    pub(super) fn search_paste(&mut self, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        self.change_query(|query| query.extend(line.chars().filter(|letter| !letter.is_control())));
    }

    /// Closes the search with what it has found; whether one was open.
    pub(super) fn accept_found(&mut self) -> bool {
        let Some(search) = self.typing.search.take() else { return false };
        let found = search.at.and_then(|at| self.input.earlier().get(at)).cloned();
        self.input.preview(&search.before);
        if let Some(found) = found {
            self.input.set(found);
        }
        true
    }

    /// Closes the search; what was typed before stands in the input.
    pub(super) fn leave_search(&mut self) {
        if let Some(search) = self.typing.search.take() {
            self.input.preview(&search.before);
        }
    }

    fn change_query(&mut self, change: impl FnOnce(&mut String)) {
        let Some(search) = &mut self.typing.search else { return };
        change(&mut search.query);
        search.at = None;
        let before = search.before.clone();
        self.input.preview(&before);
        self.look(Way::Back);
    }

    /// The next one that fits, and differs from what is shown.
    fn look(&mut self, way: Way) {
        let Some(search) = &mut self.typing.search else { return };
        let earlier = self.input.earlier();
        let query = search.query.to_lowercase();
        let shown = search.at.and_then(|at| earlier.get(at)).map(String::as_str);
        let fits = |at: &usize| {
            let text = &earlier[*at];
            !query.is_empty() && Some(&**text) != shown && text.to_lowercase().contains(&query)
        };
        let end = search.at.unwrap_or(earlier.len()).min(earlier.len());
        let next = match way {
            Way::Back => (0..end).rev().find(fits),
            Way::Forth => (end + 1..earlier.len()).find(fits),
        };
        search.is_failing = next.is_none() && !query.is_empty();
        if next.is_some() {
            search.at = next;
        }
        let text = next.and_then(|at| earlier.get(at)).cloned();
        if let Some(text) = text {
            self.input.preview(&Draft::from(text));
        }
    }
}
