//! A list to choose from: what is typed narrows it, the cursor keys move in it, Enter chooses, Esc closes it.
//!
//! **Invariants**: a function of its rows and its keys; the marked row stays marked while it is among those that match; a text
//! of a row is shown in one line, and never obeyed.
//!
//! ```text
//! let mut picker = Picker::new("Models", vec![PickRow::new("openai:gpt-5.2", ["gpt-5.2", "400k"])]);
//! match picker.key(key) {
//!     Picked::Chosen(id) => …,   // the key of the row
//!     Picked::Closed => …,
//!     Picked::Nothing => {}      // it was the picker's own key, or none
//! }
//! let Pane { lines, cursor } = picker.pane(rows, columns);
//! ```

use std::{ops::Range, sync::Arc};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::{
    excerpt::{Excerpt, Said, fold},
    markdown::DIM,
    surface::Pane,
};
use crate::render::text::{cut, one_line};

const TITLE: Style = Style::new().fg(Color::Blue).add_modifier(Modifier::BOLD);
const PROMPT: Style = Style::new().fg(Color::Green);
const MARKED: Style = Style::new().add_modifier(Modifier::BOLD);
const FOUND: Style = Style::new().fg(Color::Yellow);
/// Columns before the place where something was found.
const INDENT: usize = 4;
/// Rows that one page key moves by.
const PAGE: usize = 10;
/// Rows of the list that are shown at most.
const SHOWN: usize = 12;
/// The first column has at least this many letters: columns at the end are left out for them.
const FIRST: usize = 28;
/// No other column is wider.
const WIDEST: usize = 32;
/// Columns before a row, and between two of its columns.
const LEAD: usize = 2;
const GAP: usize = 2;
/// Letters of the search text.
const LONGEST: usize = 200;

/// One row: the first column takes the room that the others leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PickRow {
    /// What Enter gives.
    key: String,
    columns: Vec<String>,
    /// What is searched, in small letters.
    searched: String,
    /// What is searched too, and shown in the place where something was found.
    said: Option<Arc<Said>>,
}

impl PickRow {
    /// A row whose columns are what is searched.
    pub(crate) fn new<S: AsRef<str>>(key: impl Into<String>, columns: impl IntoIterator<Item = S>) -> Self {
        let columns: Vec<String> = columns.into_iter().map(|column| one_line(column.as_ref())).collect();
        let key = key.into();
        let searched = format!("{} {key}", columns.join(" ")).to_lowercase();
        Self { key, columns, searched, said: None }
    }

    /// This is searched too, and not shown.
    pub(crate) fn and_found_by(mut self, text: &str) -> Self {
        self.searched.push(' ');
        self.searched.push_str(&text.to_lowercase());
        self
    }

    /// This is searched too; where it is found is shown below the row.
    pub(crate) fn and_said(mut self, said: Option<Arc<Said>>) -> Self {
        self.said = said;
        self
    }

    /// Whether the row itself has this word.
    fn shows(&self, word: &Word) -> bool {
        self.searched.contains(word.lower.as_str())
    }

    fn has(&self, word: &Word) -> bool {
        self.shows(word) || self.said.as_ref().is_some_and(|said| said.has(&word.folded))
    }

    /// Where the first word was found that the row itself does not have.
    fn excerpt(&self, words: &[Word], columns: usize) -> Option<Line<'static>> {
        let said = self.said.as_ref()?;
        let word = words.iter().find(|word| !self.shows(word))?;
        let Excerpt { before, found, after } = said.excerpt(&word.folded, columns.checked_sub(INDENT)?)?;
        let dim = |text: String| Span::styled(text, DIM);
        Some(Line::from(vec![dim(format!("{:INDENT$}{before}", "")), Span::styled(found, FOUND), dim(after)]))
    }
}

/// A word that is searched for.
struct Word {
    lower: String,
    folded: String,
}

fn words(search: &str) -> Vec<Word> {
    let word = |word: &str| Word { lower: word.to_lowercase(), folded: fold(word) };
    search.split_whitespace().map(word).collect()
}

/// What a key came to. Exhaustive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    /// Enter: the key of the marked row.
    Chosen(String),
    /// Esc, or Ctrl-C.
    Closed,
    Nothing,
}

/// The list, what was typed, and the marked row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picker {
    title: String,
    /// The keys that its owner has beside those of the picker.
    hint: String,
    rows: Vec<PickRow>,
    search: String,
    /// Which rows match, in order.
    matching: Vec<usize>,
    /// Which of `matching` is marked.
    at: usize,
}

impl Picker {
    pub(crate) fn new(title: &str, rows: Vec<PickRow>) -> Self {
        let mut picker = Self { title: one_line(title), ..Self::default() };
        picker.replace(rows);
        picker
    }

    /// Shows a key of the owner's from now on, such as `Tab all projects`.
    pub(crate) fn hint(&mut self, hint: &str) {
        hint.clone_into(&mut self.hint);
    }

    /// Other rows, under another title; what was typed and the marked row stay.
    pub(crate) fn retitle(&mut self, title: &str, rows: Vec<PickRow>) {
        self.title = one_line(title);
        self.replace(rows);
    }

    /// Other rows; what was typed and the marked row stay.
    pub(crate) fn replace(&mut self, rows: Vec<PickRow>) {
        let marked = self.marked().map(str::to_owned);
        self.rows = rows;
        self.narrow(marked.as_deref());
    }

    /// The key of the marked row, if any row matches.
    pub(crate) fn marked(&self) -> Option<&str> {
        self.matching.get(self.at).and_then(|row| self.rows.get(*row)).map(|row| row.key.as_str())
    }

    /// A key was pressed. One of the owner's must not come here.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Picked {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Picked::Closed,
            KeyCode::Char('c') if control => return Picked::Closed,
            KeyCode::Enter => {
                return self.marked().map_or(Picked::Nothing, |key| Picked::Chosen(key.to_owned()));
            }
            KeyCode::Up => self.step_back(1),
            KeyCode::Char('p') if control => self.step_back(1),
            KeyCode::Down => self.step(1),
            KeyCode::Char('n') if control => self.step(1),
            KeyCode::PageUp => self.step_back(PAGE),
            KeyCode::PageDown => self.step(PAGE),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.step(self.matching.len()),
            KeyCode::Backspace => self.erase(),
            KeyCode::Char('h') if control => self.erase(),
            KeyCode::Char('u' | 'w') if control => self.search_for(String::new()),
            KeyCode::Char(letter) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.paste(letter.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        Picked::Nothing
    }

    /// Text was pasted, or typed, into the search.
    pub(crate) fn paste(&mut self, text: &str) {
        let room = LONGEST.saturating_sub(self.search.chars().count());
        let text: String = text.chars().filter(|letter| !letter.is_control()).take(room).collect();
        self.search_for(format!("{}{text}", self.search));
    }

    fn erase(&mut self) {
        let end = self.search.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
        self.search_for(self.search[..end].to_owned());
    }

    fn search_for(&mut self, search: String) {
        self.search = search;
        let marked = self.marked().map(str::to_owned);
        self.narrow(marked.as_deref());
    }

    /// The rows that have each word of what was typed.
    fn narrow(&mut self, marked: Option<&str>) {
        let words = words(&self.search);
        let fits = |row: &PickRow| words.iter().all(|word| row.has(word));
        self.matching = self.rows.iter().enumerate().filter(|(_, row)| fits(row)).map(|(at, _)| at).collect();
        let same = |row: &&usize| self.rows.get(**row).map(|row| row.key.as_str()) == marked;
        self.at = self.matching.iter().position(|row| same(&row)).unwrap_or(0);
    }

    fn step(&mut self, rows: usize) {
        self.at = self.at.saturating_add(rows).min(self.matching.len().saturating_sub(1));
    }

    fn step_back(&mut self, rows: usize) {
        self.at = self.at.saturating_sub(rows);
    }

    /// What is drawn in at most `rows` rows of `columns` columns: the title and the keys go first where there are few rows.
    pub(crate) fn pane(&self, rows: usize, columns: usize) -> Pane {
        const SEARCH: usize = 1;
        let (has_title, has_keys) = (rows >= 4, rows >= 3);
        let room = rows.saturating_sub(SEARCH + usize::from(has_title) + usize::from(has_keys));
        let shown = room.clamp(1, SHOWN);
        let mut lines = Vec::with_capacity(shown + 3);
        if has_title {
            lines.push(self.head(columns));
        }
        let typed = tail(&one_line(&self.search.replace(' ', "\u{a0}")), columns.saturating_sub(LEAD + 1));
        let typed = typed.replace('\u{a0}', " ");
        let cursor = (LEAD + typed.width(), lines.len());
        let search = match typed.is_empty() {
            true => Span::styled(cut("type to search", columns.saturating_sub(LEAD)), DIM),
            false => Span::raw(typed),
        };
        lines.push(Line::from(vec![Span::styled("› ", PROMPT), search]));
        self.list(shown, columns, &mut lines);
        if has_keys {
            let own = if self.hint.is_empty() { String::new() } else { format!(" · {}", self.hint) };
            let keys = format!("↑↓ · Enter chooses{own} · Esc closes");
            lines.push(Line::styled(cut(&keys, columns), DIM));
        }
        Pane { lines, cursor }
    }

    fn head(&self, columns: usize) -> Line<'static> {
        let count = match (self.matching.len(), self.rows.len()) {
            (matching, all) if matching == all => format!("  {all}"),
            (matching, all) => format!("  {matching} of {all}"),
        };
        let title = cut(&self.title, columns.saturating_sub(count.width()));
        Line::from(vec![Span::styled(title, TITLE), Span::styled(count, DIM)])
    }

    /// The rows around the marked one, in this number of lines.
    fn list(&self, room: usize, columns: usize, lines: &mut Vec<Line<'static>>) {
        if self.matching.is_empty() {
            let why = if self.rows.is_empty() { "  nothing to choose from" } else { "  nothing matches" };
            return lines.push(Line::styled(cut(why, columns), DIM));
        }
        let (widths, words) = (self.widths(columns), words(&self.search));
        let first = self.at.saturating_sub(room / 2).min(self.matching.len().saturating_sub(room));
        let window = self.matching.iter().enumerate().skip(first).take(room);
        let row = |(at, row): (usize, &usize)| {
            let row = self.rows.get(*row)?;
            let line = if at == self.at {
                Line::from(vec![Span::styled("❯ ", PROMPT), Span::styled(in_columns(row, &widths), MARKED)])
            } else {
                Line::raw(format!("  {}", in_columns(row, &widths)))
            };
            let excerpt = if room > 1 { row.excerpt(&words, columns) } else { None };
            Some(std::iter::once(line).chain(excerpt).collect())
        };
        let rows: Vec<Vec<Line<'static>>> = window.filter_map(row).collect();
        let around = around(&rows, self.at.saturating_sub(first), room);
        lines.extend(rows.into_iter().skip(around.start).take(around.len()).flatten());
    }

    /// How wide each column is; those that have no room are left out, the last one first.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let count = self.rows.iter().map(|row| row.columns.len()).max().unwrap_or(0);
        let widest = |at: usize| {
            let texts = self.rows.iter().filter_map(|row| row.columns.get(at));
            texts.map(|text| text.width()).max().unwrap_or(0)
        };
        let mut others: Vec<usize> = (1..count).map(|at| widest(at).min(WIDEST)).collect();
        let room = columns.saturating_sub(LEAD);
        let taken = |others: &[usize]| {
            others.iter().filter(|width| **width > 0).map(|width| width + GAP).sum::<usize>()
        };
        while !others.is_empty() && room < taken(&others) + FIRST {
            others.pop();
        }
        let first = room.saturating_sub(taken(&others)).min(widest(0).max(FIRST));
        std::iter::once(first).chain(others).collect()
    }
}

/// Those around the marked one that have room together.
fn around(rows: &[Vec<Line<'static>>], marked: usize, room: usize) -> Range<usize> {
    let height = |at: usize| rows.get(at).map_or(usize::MAX, Vec::len);
    let (mut window, mut left) = (marked..marked + 1, room.saturating_sub(height(marked)));
    loop {
        let before = window.start.checked_sub(1).filter(|at| height(*at) <= left);
        if let Some(at) = before {
            (window.start, left) = (at, left - height(at));
        }
        let after = Some(window.end).filter(|at| height(*at) <= left);
        if let Some(at) = after {
            (window.end, left) = (at + 1, left - height(at));
        }
        if before.or(after).is_none() {
            return window;
        }
    }
}

/// A row in columns of these widths.
fn in_columns(row: &PickRow, widths: &[usize]) -> String {
    let mut line = String::new();
    for (text, width) in row.columns.iter().zip(widths).filter(|(_, width)| **width > 0) {
        if !line.is_empty() {
            line.push_str(&" ".repeat(GAP));
        }
        let text = cut(text, *width);
        line.push_str(&text);
        line.push_str(&" ".repeat(width.saturating_sub(text.width())));
    }
    line.trim_end().to_owned()
}

/// The end of the text that fits.
fn tail(text: &str, width: usize) -> String {
    let mut room = width;
    let letters = text.graphemes(true).rev().take_while(|letter| {
        let fits = letter.width() <= room;
        room = room.saturating_sub(letter.width());
        fits
    });
    let mut letters: Vec<&str> = letters.collect();
    letters.reverse();
    letters.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker() -> Picker {
        let rows = (1..=30).map(|number| {
            let said = if number % 2 == 0 { "fix the parser" } else { "write the docs" };
            PickRow::new(format!("ses_{number}"), [format!("{said} {number}"), format!("{number} h ago")])
        });
        let mut picker = Picker::new("Sessions", rows.collect());
        picker.hint("Tab all projects");
        picker
    }

    fn tap(picker: &mut Picker, code: KeyCode) -> Picked {
        picker.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn text(picker: &Picker, rows: usize, columns: usize) -> Vec<String> {
        let pane = picker.pane(rows, columns);
        assert!(pane.lines.len() <= rows, "{pane:?}");
        assert!(pane.cursor.1 < pane.lines.len() && pane.cursor.0 < columns, "{pane:?}");
        let lines: Vec<String> = pane.lines.iter().map(ToString::to_string).collect();
        lines.iter().for_each(|line| assert!(line.width() <= columns, "{line}"));
        lines
    }

    /// S7.42
    #[test]
    fn what_is_typed_narrows_the_list_and_enter_chooses_the_marked_row() {
        let mut picker = picker();
        assert_eq!(tap(&mut picker, KeyCode::Down), Picked::Nothing);
        assert_eq!(picker.marked(), Some("ses_2"));
        picker.paste("PARSER fix");
        assert_eq!(picker.marked(), Some("ses_2"), "it still matches");
        assert_eq!(picker.matching.len(), 15);
        tap(&mut picker, KeyCode::Down);
        assert_eq!(tap(&mut picker, KeyCode::Enter), Picked::Chosen("ses_4".into()));
        picker.paste(" nothing of this");
        assert_eq!(tap(&mut picker, KeyCode::Enter), Picked::Nothing, "no row matches");
        picker.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(picker.matching.len(), 30);
        assert_eq!(tap(&mut picker, KeyCode::Esc), Picked::Closed);
    }

    #[test]
    fn the_cursor_keys_stay_in_the_list() {
        let mut picker = picker();
        let steps = [
            (KeyCode::Up, "ses_1"),
            (KeyCode::PageDown, "ses_11"),
            (KeyCode::End, "ses_30"),
            (KeyCode::Down, "ses_30"),
            (KeyCode::PageUp, "ses_20"),
            (KeyCode::Home, "ses_1"),
        ];
        for (key, marked) in steps {
            tap(&mut picker, key);
            assert_eq!(picker.marked(), Some(marked), "{key:?}");
        }
        picker.replace(Vec::new());
        tap(&mut picker, KeyCode::Down);
        assert_eq!(picker.marked(), None);
        assert_eq!(tap(&mut picker, KeyCode::Enter), Picked::Nothing);
    }

    #[test]
    fn it_fits_each_screen_and_shows_the_marked_row() {
        let mut picker = picker();
        for (rows, columns) in [(24, 80), (6, 60), (3, 30), (2, 20), (40, 200)] {
            for key in [KeyCode::Home, KeyCode::PageDown, KeyCode::End] {
                tap(&mut picker, key);
                let lines = text(&picker, rows, columns);
                assert_eq!(lines.iter().filter(|line| line.starts_with('❯')).count(), 1, "{lines:#?}");
            }
        }
        picker.paste(&"x".repeat(500));
        assert!(text(&picker, 5, 40).concat().contains("nothing matches"));
    }

    #[test]
    fn a_narrow_screen_has_the_first_column_and_a_wide_one_has_all() {
        let row = ["a\x1b[2Jb\nc", "2 h ago", "stopped"];
        let picker = Picker::new("Sessions", vec![PickRow::new("1", row)]);
        assert!(text(&picker, 8, 28).concat().contains("❯ a\\u{1b}[2Jb c"), "{:?}", text(&picker, 8, 28));
        assert!(!text(&picker, 8, 28).concat().contains("2 h"));
        assert!(text(&picker, 8, 40).concat().contains("2 h ago"));
        assert!(text(&picker, 8, 60).concat().contains("2 h ago  stopped"));
    }
}
