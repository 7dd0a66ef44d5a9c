//! A text that is typed, in which long pieces are shown as one word each.
//!
//! **Invariants**: a noncharacter from U+FDD0 on stands for a piece; no text from outside has one.

use std::sync::Arc;

/// What stands for the first piece, and how many there are.
const FIRST: u32 = 0xfdd0;
const MOST: usize = 32;

/// What is typed, with its long pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    text: String,
    folds: Folds,
}

/// The long pieces of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Folds(Vec<Fold>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fold {
    content: Arc<str>,
    label: String,
}

impl From<String> for Draft {
    /// A text from outside.
    fn from(text: String) -> Self {
        Self { text: clean(&text), folds: Folds::default() }
    }
}

impl Draft {
    pub(super) fn new(text: &str, folds: &Folds) -> Self {
        Self { text: text.to_owned(), folds: folds.clone() }
    }

    /// The text, in which a letter stands for each piece.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// All of it.
    pub(crate) fn whole(&self) -> String {
        self.folds.whole(&self.text)
    }

    /// As it is shown: a word for each piece.
    pub(crate) fn shown(&self) -> String {
        self.folds.with(&self.text, |fold| &fold.label)
    }

    /// Whether a piece of it is folded.
    pub(crate) fn has_folds(&self) -> bool {
        self.text.chars().any(|letter| self.folds.get(letter).is_some())
    }

    /// Adds a piece at its end, on a separate line; whole, where there are too many already.
    pub(crate) fn append(&mut self, content: &str, label: String) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        match self.folds.add(content, label) {
            Some(letter) => self.text.push(letter),
            None => self.text.push_str(&clean(content)),
        }
    }

    /// Another text in its place, with the pieces that it still has.
    pub(super) fn refold(&self, whole: &str) -> Self {
        let mut text = clean(whole);
        for letter in self.text.chars() {
            if let Some(fold) = self.folds.get(letter) {
                text = text.replacen(&*fold.content, letter.encode_utf8(&mut [0; 4]), 1);
            }
        }
        Self { text, folds: self.folds.clone() }
    }
}

impl Folds {
    /// Takes a piece, and returns what stands for it; none if there are too many.
    pub(super) fn add(&mut self, content: &str, label: String) -> Option<char> {
        if self.0.len() == MOST {
            return None;
        }
        let letter = char::from_u32(FIRST + u32::try_from(self.0.len()).ok()?)?;
        self.0.push(Fold { content: content.into(), label });
        Some(letter)
    }

    /// The word for the piece that this stands for.
    pub(super) fn label(&self, letter: char) -> Option<&str> {
        self.get(letter).map(|fold| &*fold.label)
    }

    pub(super) fn whole(&self, text: &str) -> String {
        self.with(text, |fold| &fold.content)
    }

    /// The text of a draft, with its pieces among these.
    pub(super) fn adopt(&mut self, draft: &Draft) -> String {
        if draft.folds.0.iter().zip(&self.0).all(|(one, other)| one == other)
            && draft.folds.0.len() <= self.0.len()
        {
            return draft.text.clone();
        }
        let mut text = String::with_capacity(draft.text.len());
        for letter in draft.text.chars() {
            match draft.folds.get(letter) {
                None => text.push(letter),
                Some(fold) => match self.add(&fold.content, fold.label.clone()) {
                    Some(letter) => text.push(letter),
                    None => text.push_str(&fold.content),
                },
            }
        }
        text
    }

    fn get(&self, letter: char) -> Option<&Fold> {
        self.0.get(place(letter)?)
    }

    fn with<'a>(&'a self, text: &str, in_place: impl Fn(&'a Fold) -> &'a str) -> String {
        let mut shown = String::with_capacity(text.len());
        for letter in text.chars() {
            match self.get(letter) {
                Some(fold) => shown.push_str(in_place(fold)),
                None => shown.push(letter),
            }
        }
        shown
    }
}

/// Text without what would stand for a piece.
pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|letter| place(*letter).is_none()).collect()
}

/// Text as it is typed or pasted: what would move a cursor is left out.
pub(super) fn typed(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let is_text = |c: &char| (!c.is_control() || matches!(c, '\n' | '\t')) && place(*c).is_none();
    text.chars().filter(is_text).collect()
}

fn place(letter: char) -> Option<usize> {
    let place = usize::try_from(u32::from(letter).checked_sub(FIRST)?).ok()?;
    (place < MOST).then_some(place)
}
