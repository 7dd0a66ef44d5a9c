//! The line that a person types: a small editor over one text, which may have several lines.
//!
//! **Invariants**: the cursor stands between two grapheme clusters.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::output;

/// What is being typed, and what was typed before.
#[derive(Debug, Default)]
pub(crate) struct Input {
    text: String,
    /// In bytes.
    cursor: usize,
    earlier: Vec<String>,
    /// Which of the earlier ones is shown; none for a new one.
    recalled: Option<usize>,
}

/// How many earlier inputs are kept.
const EARLIER: usize = 200;

impl Input {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes what was typed; it can be recalled later.
    pub(crate) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.cursor = 0;
        self.recalled = None;
        if !text.trim().is_empty() {
            self.remember(text.clone());
        }
        text
    }

    /// Keeps it among the earlier ones, as the last.
    pub(crate) fn remember(&mut self, text: String) {
        if self.earlier.last() != Some(&text) {
            self.earlier.push(text);
        }
        let over = self.earlier.len().saturating_sub(EARLIER);
        self.earlier.drain(..over);
    }

    pub(crate) fn clear(&mut self) {
        self.set(String::new());
    }

    pub(crate) fn set(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
        self.recalled = None;
    }

    /// Inserts this before the typed text, on separate lines.
    pub(crate) fn put_before(&mut self, text: &str) {
        let joined = if self.text.is_empty() { text.to_owned() } else { format!("{text}\n{}", self.text) };
        self.set(joined);
    }

    /// Types text; what would move a cursor is left out.
    pub(crate) fn insert(&mut self, text: &str) {
        let text: String = text
            .replace("\r\n", "\n")
            .replace('\r', "\n")
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
            .collect();
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
        self.recalled = None;
    }

    /// Whether the key was one of an editor's.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let with = |modifier| key.modifiers.contains(modifier);
        match key.code {
            KeyCode::Char(letter) if with(KeyModifiers::CONTROL) => return self.control(letter),
            KeyCode::Char(letter) if !with(KeyModifiers::ALT) => self.insert(letter.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.delete(self.before(), self.cursor),
            KeyCode::Delete => self.delete(self.cursor, self.after()),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            _ => return false,
        }
        true
    }

    fn control(&mut self, letter: char) -> bool {
        match letter {
            'a' => self.cursor = self.line_start(),
            'e' => self.cursor = self.line_end(),
            'b' => self.cursor = self.before(),
            'f' => self.cursor = self.after(),
            'h' => self.delete(self.before(), self.cursor),
            'd' => self.delete(self.cursor, self.after()),
            'u' => self.delete(self.line_start(), self.cursor),
            'k' => self.delete(self.cursor, self.line_end()),
            'w' => self.delete(self.word_start(), self.cursor),
            'j' => self.insert("\n"),
            _ => return false,
        }
        true
    }

    /// Shows an earlier input, or a later one again.
    pub(crate) fn recall(&mut self, way: Way) {
        let last = self.earlier.len();
        let place = match (way, self.recalled) {
            (Way::Back, None) => last.checked_sub(1),
            (Way::Back, Some(place)) => Some(place.saturating_sub(1)),
            (Way::Forth, Some(place)) if place + 1 < last => Some(place + 1),
            (Way::Forth, _) => None,
        };
        if place.is_none() && self.recalled.is_none() {
            return;
        }
        let text = place.and_then(|place| self.earlier.get(place)).cloned();
        self.set(text.unwrap_or_default());
        self.recalled = place;
    }

    /// Whether Up and Down may leave it: it is empty, or an earlier one as it was.
    pub(crate) fn is_unedited(&self) -> bool {
        self.text.is_empty() || self.recalled.is_some()
    }

    /// Its rows at this width, and where the cursor is: column and row.
    pub(crate) fn rows(&self, width: usize) -> (Vec<String>, (usize, usize)) {
        let mut rows = vec![String::new()];
        let mut at = (0, 0);
        for (index, cluster) in self.text.grapheme_indices(true) {
            if index == self.cursor {
                at = end_of(&rows);
            }
            // What would reverse what is read is shown as what it is.
            let shown = output::plain(cluster);
            let shown = if cluster == "\t" { "    " } else { &*shown };
            if cluster == "\n" {
                rows.push(String::new());
                continue;
            }
            if end_of(&rows).0 + shown.width() > width {
                rows.push(String::new());
            }
            if let Some(row) = rows.last_mut() {
                row.push_str(shown);
            }
        }
        if self.cursor == self.text.len() {
            at = end_of(&rows);
        }
        if at.0 >= width {
            if at.1 + 1 == rows.len() {
                rows.push(String::new());
            }
            at = (0, at.1 + 1);
        }
        (rows, at)
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
        self.recalled = None;
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

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8))
    }
}

/// Which way through the earlier inputs. Exhaustive: back or forth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Back,
    Forth,
}

fn end_of(rows: &[String]) -> (usize, usize) {
    (rows.last().map_or(0, |row| row.width()), rows.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(input: &mut Input, code: KeyCode, modifiers: KeyModifiers) {
        assert!(input.key(KeyEvent::new(code, modifiers)), "{code:?}");
    }

    #[test]
    fn it_edits_by_what_people_call_a_letter() {
        let mut input = Input::default();
        input.insert("añ👩‍👩‍👧x");
        press(&mut input, KeyCode::Left, KeyModifiers::NONE);
        press(&mut input, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(input.text(), "añx");
        press(&mut input, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!(input.text(), "x");
        input.set("one two  ".into());
        press(&mut input, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(input.text(), "one ");
    }

    #[test]
    fn what_is_pasted_moves_no_cursor() {
        let mut input = Input::default();
        input.insert("a\r\nb\x1b[2J\tc");
        assert_eq!(input.text(), "a\nb[2J\tc");
        assert_eq!(input.rows(80), (vec!["a".to_owned(), "b[2J    c".to_owned()], (9, 1)));
    }

    #[test]
    fn what_would_reverse_the_text_is_shown_as_what_it_is() {
        let mut input = Input::default();
        input.insert("a\u{202e}b\u{2066}");
        assert_eq!(input.text(), "a\u{202e}b\u{2066}", "it is said as it was typed");
        assert_eq!(input.rows(80), (vec!["a\\u{202e}b\\u{2066}".to_owned()], (18, 0)));
    }

    #[test]
    fn rows_hold_wide_letters_and_the_cursor_after_a_full_row() {
        let mut input = Input::default();
        input.insert("字字a");
        assert_eq!(input.rows(4), (vec!["字字".to_owned(), "a".to_owned()], (1, 1)));
        input.set("abcd".into());
        assert_eq!(input.rows(4), (vec!["abcd".to_owned(), String::new()], (0, 1)));
    }

    #[test]
    fn earlier_inputs_are_recalled_and_left_again() {
        let mut input = Input::default();
        for text in ["one", "two"] {
            input.set(text.into());
            input.take();
        }
        input.recall(Way::Back);
        input.recall(Way::Back);
        input.recall(Way::Back);
        assert_eq!(input.text(), "one");
        input.recall(Way::Forth);
        assert_eq!(input.text(), "two");
        input.recall(Way::Forth);
        assert!(input.is_empty());
    }
}
