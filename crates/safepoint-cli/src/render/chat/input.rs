//! What a person types: an editor over one text, which may have several lines, and what was typed before.
//!
//! **Invariants**
//! - The cursor stands between two grapheme clusters.
//! - Nothing that was typed is lost by an earlier input that is shown in its place: it can be undone, or left again.

mod draft;
mod editor;
mod layout;
#[cfg(test)]
mod tests;

use crossterm::event::KeyEvent;

pub(crate) use draft::Draft;

use draft::Folds;
use editor::Editor;
use layout::Layout;

/// What is being typed, and what was typed before.
#[derive(Debug, Default)]
pub(crate) struct Input {
    editor: Editor,
    folds: Folds,
    earlier: Vec<String>,
    /// Which of the earlier ones is shown; none for a new one.
    recalled: Option<usize>,
    /// What was typed before an earlier one was shown.
    aside: String,
}

/// How many earlier inputs are kept.
const EARLIER: usize = 10_000;
/// A paste of more lines, or of more characters, is shown in one word.
const FOLDED_LINES: usize = 8;
const FOLDED_CHARACTERS: usize = 1_000;

impl Input {
    /// The text, in which one letter stands for each folded paste.
    pub(crate) fn text(&self) -> &str {
        self.editor.text()
    }

    /// In bytes.
    pub(crate) fn cursor(&self) -> usize {
        self.editor.cursor()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// Whether an earlier input is shown as it was.
    pub(crate) fn is_recalled(&self) -> bool {
        self.recalled.is_some()
    }

    /// Takes what was typed, whole; it can be recalled later.
    pub(crate) fn take(&mut self) -> String {
        self.take_draft().whole()
    }

    /// The same, with its pastes folded.
    pub(crate) fn take_draft(&mut self) -> Draft {
        let draft = self.draft();
        self.editor.end(|text| self.folds.whole(text));
        self.folds = Folds::default();
        (self.recalled, self.aside) = (None, String::new());
        if !draft.is_blank() {
            self.remember(draft.whole());
        }
        draft
    }

    /// A copy of what is typed.
    pub(crate) fn draft(&self) -> Draft {
        Draft::new(self.text(), &self.folds)
    }

    /// Keeps it among the earlier ones, as the last.
    pub(crate) fn remember(&mut self, text: String) {
        if self.earlier.last() != Some(&text) {
            self.earlier.push(text);
        }
        let over = self.earlier.len().saturating_sub(EARLIER);
        self.earlier.drain(..over);
    }

    /// What other chats have kept comes before what was typed here.
    pub(crate) fn remember_before(&mut self, mut texts: Vec<String>) {
        let over = (texts.len() + self.earlier.len()).saturating_sub(EARLIER).min(texts.len());
        texts.drain(..over);
        self.recalled = self.recalled.map(|place| place + texts.len());
        self.earlier.splice(..0, texts);
    }

    /// What was typed before, the oldest first.
    pub(crate) fn earlier(&self) -> &[String] {
        &self.earlier
    }

    pub(crate) fn clear(&mut self) {
        self.set(String::new());
    }

    /// Replaces the text, which can be undone.
    pub(crate) fn set(&mut self, text: String) {
        self.restore(&Draft::from(text));
    }

    /// Replaces the text by what is typed there; that can be undone.
    pub(crate) fn restore(&mut self, draft: &Draft) {
        let text = self.folds.adopt(draft);
        self.editor.set(text);
        self.recalled = None;
    }

    /// Shows this for a moment: no step that could be undone.
    pub(crate) fn preview(&mut self, draft: &Draft) {
        let text = self.folds.adopt(draft);
        self.editor.preview(text);
        self.recalled = None;
    }

    /// Inserts this before the typed text, on separate lines.
    pub(crate) fn put_before(&mut self, draft: &Draft) {
        let text = self.folds.adopt(draft);
        let joined = if self.is_empty() { text } else { format!("{text}\n{}", self.text()) };
        self.editor.set(joined);
        self.recalled = None;
    }

    /// Replaces a part of the text; the cursor stands behind it then.
    pub(crate) fn replace(&mut self, from: usize, to: usize, text: &str) {
        self.editor.replace(from..to, text);
        self.recalled = None;
    }

    /// What was typed in the external editor, in the place of what was typed before it, and of nothing that came since.
    pub(crate) fn edited(&mut self, before: &Draft, whole: &str) {
        let text = self.folds.adopt(&before.refold(whole));
        let old = before.text();
        let kept = self.text().strip_suffix(old).unwrap_or(self.text());
        let joint = if kept.is_empty() || kept.ends_with('\n') { "" } else { "\n" };
        let joined = format!("{kept}{joint}{text}");
        self.editor.set(joined);
        self.recalled = None;
    }

    /// Types text; what would move a cursor is left out.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, text: &str) {
        self.editor.paste(&draft::typed(text));
        self.recalled = None;
    }

    /// Pastes text, as one step that can be undone: what is long is shown in one word.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = draft::typed(text);
        let (lines, characters) = (text.lines().count(), text.chars().count());
        let label = match (lines > FOLDED_LINES, characters > FOLDED_CHARACTERS) {
            (true, _) => Some(format!("[pasted {lines} lines]")),
            (false, true) => Some(format!("[pasted {characters} characters]")),
            (false, false) => None,
        };
        match label.and_then(|label| self.folds.add(&text, label)) {
            Some(letter) => self.editor.paste(letter.encode_utf8(&mut [0; 4])),
            None => self.editor.paste(&text),
        }
        self.recalled = None;
    }

    /// Whether the key was one of an editor's.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let before = self.editor.revision();
        let is_taken = self.editor.key(key);
        if self.editor.revision() != before {
            self.recalled = None;
        }
        is_taken
    }

    /// Moves to the row above or below; whether there is one.
    pub(crate) fn vertical(&mut self, way: Way, width: usize) -> bool {
        let layout = Layout::of(self.text(), &self.folds, width);
        self.editor.vertical(&layout, way)
    }

    /// Shows an earlier input, or a later one again, or in the end what was typed before.
    pub(crate) fn recall(&mut self, way: Way) {
        let last = self.earlier.len();
        let place = match (way, self.recalled) {
            (Way::Back, None) => last.checked_sub(1),
            (Way::Back, Some(place)) => Some(place.saturating_sub(1)),
            (Way::Forth, Some(place)) if place + 1 < last => Some(place + 1),
            (Way::Forth, _) => None,
        };
        if place == self.recalled {
            return;
        }
        if self.recalled.is_none() {
            self.aside = self.text().to_owned();
        }
        let text = match place.and_then(|place| self.earlier.get(place)) {
            Some(earlier) => draft::clean(earlier),
            None => std::mem::take(&mut self.aside),
        };
        self.editor.set(text);
        self.recalled = place;
    }

    /// Its rows at this width, and where the cursor is: column and row.
    pub(crate) fn rows(&self, width: usize) -> (Vec<String>, (usize, usize)) {
        Layout::of(self.text(), &self.folds, width).rows(self.cursor())
    }
}

/// Which way through the earlier inputs, or the rows. Exhaustive: back and up, or forth and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Back,
    Forth,
}
