//! A text with a cursor: what moves it, what changes the text, and how a change is undone.
//!
//! **Invariants**: the cursor stands between two grapheme clusters. Each change of the text can be undone until the text is taken.

use std::{collections::VecDeque, ops::Range};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;

use super::{Way, layout::Layout};

/// Steps that can be undone, and bytes of them.
const STEPS: usize = 200;
const STEP_BYTES: usize = 4 << 20;
/// Texts that were cut and can be put back.
const KILLS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Editor {
    text: String,
    /// In bytes.
    cursor: usize,
    /// The column that Up and Down keep to.
    goal: Option<usize>,
    last: Last,
    past: Vec<Moment>,
    future: Vec<Moment>,
    /// What was cut, the newest last.
    kills: VecDeque<String>,
    revision: u64,
}

/// A text, and where the cursor was.
type Moment = (String, usize);

/// What the last key did. Exhaustive: what the next one may continue, or anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    Typed,
    Erased,
    Killed,
    /// Put back what was cut, from here on: which, counted from the newest.
    Yanked(usize, usize),
}

impl Editor {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Another number for each change of the text.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The text was taken: nothing of it can be undone. What was cut stays, as `whole` makes it.
    pub(super) fn end(&mut self, whole: impl Fn(&str) -> String) {
        let kills = self.kills.iter().map(|kill| whole(kill)).collect();
        *self = Self { kills, revision: self.revision + 1, ..Self::default() };
    }

    pub(super) fn set(&mut self, text: String) {
        if text != self.text {
            self.step(Last::Other);
        }
        self.cursor = text.len();
        self.text = text;
    }

    /// The same without a step that could be undone.
    pub(super) fn preview(&mut self, text: String) {
        let cursor = text.len();
        self.show((text, cursor));
    }

    pub(super) fn replace(&mut self, range: Range<usize>, text: &str) {
        self.step(Last::Other);
        self.text.replace_range(range.clone(), text);
        self.cursor = range.start + text.len();
    }

    /// Inserts it as one step.
    pub(super) fn paste(&mut self, text: &str) {
        if !text.is_empty() {
            self.replace(self.cursor..self.cursor, text);
        }
    }

    /// Whether the key was one of an editor's.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        let (control, alt) =
            (key.modifiers.contains(KeyModifiers::CONTROL), key.modifiers.contains(KeyModifiers::ALT));
        match key.code {
            KeyCode::Char(letter) if control => return self.control(letter),
            KeyCode::Char(letter) if alt => return self.alt(letter),
            KeyCode::Char(letter) => self.letter(letter),
            KeyCode::Backspace if control || alt => self.kill(self.word_back(), self.cursor, Way::Back),
            KeyCode::Backspace => self.erase(self.before(), self.cursor),
            KeyCode::Delete if control || alt => self.kill(self.cursor, self.word_end(), Way::Forth),
            KeyCode::Delete => self.erase(self.cursor, self.after()),
            KeyCode::Left if control || alt => self.go(self.word_back()),
            KeyCode::Right if control || alt => self.go(self.word_end()),
            KeyCode::Left => self.go(self.before()),
            KeyCode::Right => self.go(self.after()),
            KeyCode::Home if control => self.go(0),
            KeyCode::End if control => self.go(self.text.len()),
            KeyCode::Home => self.go(self.line_start()),
            KeyCode::End => self.go(self.line_end()),
            _ => return false,
        }
        true
    }

    fn control(&mut self, letter: char) -> bool {
        match letter {
            'a' => self.go(self.line_start()),
            'e' => self.go(self.line_end()),
            'b' => self.go(self.before()),
            'f' => self.go(self.after()),
            'h' => self.erase(self.before(), self.cursor),
            'd' => self.erase(self.cursor, self.after()),
            'u' => self.kill(self.line_start(), self.cursor, Way::Back),
            'k' => self.kill(self.cursor, self.rest_of_line(), Way::Forth),
            'w' => self.kill(self.blank_back(), self.cursor, Way::Back),
            'y' => self.yank(),
            'j' => self.paste("\n"),
            // A terminal sends the same for these.
            '_' | '/' | '7' => self.undo(),
            _ => return false,
        }
        true
    }

    fn alt(&mut self, letter: char) -> bool {
        match letter {
            'b' => self.go(self.word_back()),
            'f' => self.go(self.word_end()),
            'd' => self.kill(self.cursor, self.word_end(), Way::Forth),
            'y' => self.yank_another(),
            '_' | '/' => self.redo(),
            '<' => self.go(0),
            '>' => self.go(self.text.len()),
            _ => return false,
        }
        true
    }

    /// To the row above or below; whether there is one.
    pub(super) fn vertical(&mut self, layout: &Layout, way: Way) -> bool {
        let (column, row) = layout.place(self.cursor);
        let goal = self.goal.unwrap_or(column);
        let row = match way {
            Way::Back => row.checked_sub(1),
            Way::Forth => Some(row + 1),
        };
        let Some(at) = row.and_then(|row| layout.nearest(row, goal)) else { return false };
        self.go(at);
        self.goal = Some(goal);
        true
    }

    /// The letters of a word are one step.
    fn letter(&mut self, letter: char) {
        if letter.is_whitespace() && self.last == Last::Typed {
            self.last = Last::Other;
        }
        self.step(Last::Typed);
        self.text.insert(self.cursor, letter);
        self.cursor += letter.len_utf8();
        // What joins the letter before or behind it is one with it.
        let at = self.cursor;
        self.cursor = self.boundary(at);
    }

    fn erase(&mut self, from: usize, to: usize) {
        if from < to {
            self.step(Last::Erased);
            self.text.replace_range(from..to, "");
            self.cursor = from;
        }
    }

    /// Cuts; what is cut by several keys in a row is one text.
    fn kill(&mut self, from: usize, to: usize, way: Way) {
        if from >= to {
            return;
        }
        let cut = self.text[from..to].to_owned();
        match (self.last, way, self.kills.back_mut()) {
            (Last::Killed, Way::Forth, Some(kill)) => kill.push_str(&cut),
            (Last::Killed, Way::Back, Some(kill)) => kill.insert_str(0, &cut),
            _ => {
                self.kills.push_back(cut);
                let over = self.kills.len().saturating_sub(KILLS);
                self.kills.drain(..over);
            }
        }
        self.step(Last::Killed);
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn yank(&mut self) {
        let Some(kill) = self.kills.back().cloned() else { return };
        let from = self.cursor;
        self.paste(&kill);
        self.last = Last::Yanked(from, 0);
    }

    /// An older text in the place of the one that was just put back.
    fn yank_another(&mut self) {
        let Last::Yanked(from, kill) = self.last else { return };
        let kill = (kill + 1) % self.kills.len().max(1);
        let Some(text) = self.kills.iter().rev().nth(kill).cloned() else { return };
        self.replace(from..self.cursor, &text);
        self.last = Last::Yanked(from, kill);
    }

    fn undo(&mut self) {
        if let Some(before) = self.past.pop() {
            self.future.push(self.moment());
            self.show(before);
        }
    }

    fn redo(&mut self) {
        if let Some(after) = self.future.pop() {
            self.past.push(self.moment());
            self.show(after);
        }
    }

    fn show(&mut self, (text, cursor): Moment) {
        (self.text, self.cursor) = (text, cursor);
        (self.last, self.goal) = (Last::Other, None);
        self.revision += 1;
    }

    fn moment(&self) -> Moment {
        (self.text.clone(), self.cursor)
    }

    /// The text is about to change.
    fn step(&mut self, edit: Last) {
        let is_one = self.last == edit && matches!(edit, Last::Typed | Last::Erased);
        if !is_one {
            self.past.push(self.moment());
            let mut bytes: usize = self.past.iter().map(|(text, _)| text.len()).sum();
            while self.past.len() > STEPS || bytes > STEP_BYTES && self.past.len() > 1 {
                bytes -= self.past.remove(0).0.len();
            }
        }
        self.future.clear();
        (self.last, self.goal) = (edit, None);
        self.revision += 1;
    }

    fn go(&mut self, at: usize) {
        self.cursor = at;
        (self.last, self.goal) = (Last::Other, None);
    }

    /// The next place between two clusters from here on.
    fn boundary(&self, at: usize) -> usize {
        let starts = self.text.grapheme_indices(true).map(|(index, _)| index);
        starts.chain([self.text.len()]).find(|index| *index >= at).unwrap_or(at)
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(index, _)| index)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |next| self.cursor + next.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// The end of the line; at its end, that of its break.
    fn rest_of_line(&self) -> usize {
        let end = self.line_end();
        if end == self.cursor { self.after() } else { end }
    }

    /// Behind the blank before the word, or at the start.
    fn blank_back(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8))
    }

    fn word_back(&self) -> usize {
        let clusters = self.text[..self.cursor].grapheme_indices(true).rev();
        let mut at = 0;
        let mut is_inside = false;
        for (index, cluster) in clusters {
            match (is_word(cluster), is_inside) {
                (false, true) => {
                    at = index + cluster.len();
                    break;
                }
                (is_word, _) => is_inside |= is_word,
            }
        }
        at
    }

    fn word_end(&self) -> usize {
        let mut is_inside = false;
        for (index, cluster) in self.text[self.cursor..].grapheme_indices(true) {
            match (is_word(cluster), is_inside) {
                (false, true) => return self.cursor + index,
                (is_word, _) => is_inside |= is_word,
            }
        }
        self.text.len()
    }
}

/// Whether this is of a word.
fn is_word(cluster: &str) -> bool {
    cluster.chars().next().is_some_and(|first| first.is_alphanumeric() || first == '_')
}
