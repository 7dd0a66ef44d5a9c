//! The menus below the input: commands behind a slash, files behind an `@`, and a pasted path that can be attached.
//!
//! **Invariants**
//! - Tab takes the marked row; Enter takes it only if the arrows have marked it, so that what is typed can always be sent.
//! - A menu is a function of what is typed: one that no longer fits is not shown and takes nothing.

use ratatui_core::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::{
    commands,
    input::Way,
    markdown::DIM,
    mention::{can_be_attached, file_word, mention},
    state::{Action, Mode, State},
    typing::TypingAction,
};
use crate::render::text::in_a_row;

/// Rows of a menu.
pub(crate) const ROWS: usize = 6;
const MARKED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// What a menu needs beside the text.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    /// What files were last asked for.
    asked: Option<String>,
    found: FoundFiles,
    /// The marked row, of the menu for this word.
    marked: Option<(String, usize)>,
    /// Where the word begins whose menu was closed.
    closed: Option<usize>,
    /// Tab was pressed before the files were known.
    is_taking: bool,
    /// What was pasted and can be attached.
    pub(super) offer: Option<Offer>,
}

/// The files for a query, the best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundFiles {
    pub(crate) query: String,
    /// As they are named from the root on; a directory ends with a slash.
    pub(crate) paths: Vec<String>,
    /// How many files there are, and whether that is known yet.
    pub(crate) of: usize,
    pub(crate) is_whole: bool,
}

/// A file whose path was pasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The path as it stands in the input.
    pub(crate) pasted: String,
    pub(crate) path: String,
    /// Its kind and size.
    pub(crate) what: String,
}

/// A menu as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Menu {
    kind: MenuKind,
    /// The part of the text that a row replaces, in bytes.
    range: (usize, usize),
    rows: Vec<MenuRow>,
    marked: usize,
    /// Whether the arrows have marked it.
    is_chosen: bool,
    note: Option<String>,
}

/// Exhaustive: the three menus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MenuKind {
    Command,
    File,
    Attach,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MenuRow {
    label: String,
    about: String,
    text: String,
}

/// The word at the cursor that a menu is for.
struct Word {
    kind: MenuKind,
    range: (usize, usize),
    query: String,
}

impl Menu {
    pub(super) fn hint(&self) -> String {
        let what = match self.kind {
            MenuKind::Command => "Tab completes",
            MenuKind::File => "Tab names the file",
            MenuKind::Attach => "Tab attaches it in place of its path",
        };
        let more = if self.rows.len() > 1 { " · Up, Down choose" } else { "" };
        match self.rows.is_empty() {
            true => self.note.clone().unwrap_or_default(),
            false => format!("{what}{more}"),
        }
    }

    /// What is drawn below the input.
    pub(crate) fn lines(&self) -> Vec<Line<'static>> {
        let wide = self.rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
        let first = (self.marked + 1).saturating_sub(ROWS);
        let rows = self.rows.iter().enumerate().skip(first).take(ROWS).map(|(index, row)| {
            let label = in_a_row(&row.label);
            let style = if index == self.marked { MARKED } else { Style::new() };
            let gap = " ".repeat((wide + 2).saturating_sub(row.label.chars().count()));
            let about = if row.about.is_empty() { String::new() } else { format!("{gap}{}", row.about) };
            Line::from(vec![Span::raw("  "), Span::styled(label, style), Span::styled(about, DIM)])
        });
        let note = self.note.iter().map(|note| Line::styled(format!("  {note}"), DIM));
        rows.chain(note).collect()
    }
}

impl State {
    /// The menu for what is typed now.
    pub(crate) fn menu(&self) -> Option<Menu> {
        if self.is_searching() || self.leaving.is_some() {
            return None;
        }
        let word = self.word()?;
        let completion = &self.typing.completion;
        if completion.closed == Some(word.range.0) {
            return None;
        }
        let (rows, note) = match word.kind {
            MenuKind::Command => (self.command_rows(&word.query), None),
            MenuKind::File => (completion.file_rows(), completion.note(&word.query)),
            MenuKind::Attach => (completion.offer.iter().map(Offer::row).collect(), None),
        };
        if rows.is_empty() && note.is_none() {
            return None;
        }
        let chosen = completion.marked.as_ref().filter(|(of, _)| *of == word.query);
        let marked = chosen.map_or(0, |(_, row)| (*row).min(rows.len().saturating_sub(1)));
        Some(Menu { kind: word.kind, range: word.range, rows, marked, is_chosen: chosen.is_some(), note })
    }

    /// The word at the cursor, if there can be a menu for it.
    fn word(&self) -> Option<Word> {
        if self.mode != Mode::Typing || self.input.is_recalled() {
            return None;
        }
        let (text, cursor) = (self.input.text(), self.input.cursor());
        if text.starts_with('/') && cursor == text.len() && !text.contains(char::is_whitespace) {
            return Some(Word { kind: MenuKind::Command, range: (0, text.len()), query: text.to_owned() });
        }
        if let Some((start, query)) = file_word(text, cursor) {
            let query = query.to_owned();
            return Some(Word { kind: MenuKind::File, range: (start, cursor), query });
        }
        let offer = self.typing.completion.offer.as_ref()?;
        let start = text.find(&offer.pasted)?;
        let end = start + offer.pasted.len();
        (cursor == end).then(|| Word {
            kind: MenuKind::Attach,
            range: (start, end),
            query: offer.pasted.clone(),
        })
    }

    /// After each change of what is typed: the files of another word are asked for.
    pub(super) fn look_at_word(&mut self) {
        let word = self.word();
        let query = word.as_ref().filter(|word| word.kind == MenuKind::File).map(|word| word.query.clone());
        let completion = &mut self.typing.completion;
        completion.closed =
            completion.closed.filter(|at| word.as_ref().is_some_and(|word| word.range.0 == *at));
        if query == completion.asked {
            return;
        }
        completion.is_taking = false;
        completion.asked.clone_from(&query);
        match query {
            Some(query) => self.actions.push(Action::Typing(TypingAction::Find(query))),
            None => completion.found = FoundFiles::default(),
        }
    }

    pub(super) fn find_again(&mut self) {
        let asked = self.typing.completion.asked.clone();
        self.actions.extend(asked.map(|query| Action::Typing(TypingAction::Find(query))));
    }

    pub(super) fn take_found(&mut self, found: FoundFiles) {
        let completion = &mut self.typing.completion;
        if completion.asked.as_deref() != Some(&*found.query) {
            return;
        }
        completion.found = found;
        if std::mem::take(&mut completion.is_taking) {
            self.take_row();
        }
    }

    /// Marks the row above or below; whether there is a menu.
    pub(super) fn choose_row(&mut self, way: Way) -> bool {
        let Some(menu) = self.menu().filter(|menu| !menu.rows.is_empty()) else { return false };
        let Some(word) = self.word() else { return false };
        let last = menu.rows.len() - 1;
        let marked = match way {
            Way::Back => menu.marked.checked_sub(1).unwrap_or(last),
            Way::Forth if menu.marked == last => 0,
            Way::Forth => menu.marked + 1,
        };
        self.typing.completion.marked = Some((word.query, marked));
        true
    }

    /// Enter: takes the row that the arrows have marked; whether they have.
    pub(super) fn take_chosen_row(&mut self) -> bool {
        let is_chosen = self.menu().is_some_and(|menu| menu.is_chosen);
        if is_chosen {
            self.take_row();
        }
        is_chosen
    }

    /// Tab: takes the marked row.
    pub(super) fn take_row(&mut self) {
        let Some(menu) = self.menu() else { return };
        let completion = &mut self.typing.completion;
        if menu.kind == MenuKind::File && completion.asked.as_ref() != Some(&completion.found.query) {
            completion.is_taking = true;
            return;
        }
        let Some(row) = menu.rows.get(menu.marked) else { return };
        completion.marked = None;
        if menu.kind == MenuKind::Attach {
            completion.offer = None;
        }
        let (from, to) = menu.range;
        self.input.replace(from, to, &row.text);
        self.look_at_word();
    }

    /// Closes the menu until another word is typed; whether one was open.
    pub(super) fn close_menu(&mut self) -> bool {
        if self.menu().is_none() {
            return false;
        }
        self.typing.completion.closed = self.word().map(|word| word.range.0);
        self.typing.completion.offer = None;
        true
    }
}

impl Completion {
    fn file_rows(&self) -> Vec<MenuRow> {
        let row = |path: &String| {
            let about = if can_be_attached(path) { "attached to the message" } else { "" };
            MenuRow { label: path.clone(), about: about.to_owned(), text: mention(path) }
        };
        self.found.paths.iter().map(row).collect()
    }

    fn note(&self, query: &str) -> Option<String> {
        let found = &self.found;
        match (found.is_whole, found.query == query && found.paths.is_empty()) {
            (false, _) if found.of > 0 => Some(format!("{} files so far; still looking", found.of)),
            (false, _) => Some("looking for files".to_owned()),
            (true, true) if !query.is_empty() => Some("no file fits".to_owned()),
            (true, _) => None,
        }
    }
}

impl Offer {
    fn row(&self) -> MenuRow {
        MenuRow {
            label: format!("attach {}", self.path),
            about: self.what.clone(),
            text: mention(&self.path),
        }
    }
}

impl State {
    /// The commands of the program, then those of the user and the project.
    fn command_rows(&self, typed: &str) -> Vec<MenuRow> {
        let begun = typed.strip_prefix('/').unwrap_or(typed);
        let own: Vec<(&str, &str)> = commands::known().collect();
        own.into_iter()
            .chain(self.custom.list())
            .filter(|(name, _)| name.starts_with(begun))
            .map(|(name, about)| {
                let label = format!("/{name}");
                let blank = if commands::takes_more(name) { " " } else { "" };
                MenuRow { text: format!("{label}{blank}"), label, about: in_a_row(about) }
            })
            .collect()
    }
}
