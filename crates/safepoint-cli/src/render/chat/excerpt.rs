//! What was said in a conversation, as the list of conversations searches it, and the place where a word was found.
//!
//! **Invariants**: what is held of one conversation is bounded; capital letters make no difference; a place that is shown is
//! one line, and nothing in it is obeyed.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::render::text::{cut, one_line};

/// The bytes of one conversation that are searched.
pub(crate) const LONGEST: usize = 256 << 10;
/// The bytes around what was found that are looked at: more than a row of any screen has.
const AROUND: usize = 2 << 10;

/// What was said in a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    text: String,
    /// The same in small letters, each at the same place.
    folded: String,
    /// Whether more was said than is held.
    pub(crate) is_cut: bool,
}

/// Where something was found: what is before it, itself, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) before: String,
    pub(crate) found: String,
    pub(crate) after: String,
}

impl Said {
    /// Adds a message, if there is room for it.
    pub(crate) fn push(&mut self, message: &str) {
        let room = LONGEST.saturating_sub(self.text.len() + 1);
        let whole = message.trim();
        let part = &whole[..floor(whole, room)];
        self.is_cut |= part.len() < whole.len();
        if part.is_empty() {
            return;
        }
        self.text.push_str(part);
        self.text.push('\n');
        self.folded.extend(part.chars().map(small));
        self.folded.push('\n');
    }

    /// Adds what was said after it.
    pub(crate) fn append(&mut self, more: &Self) {
        self.push(&more.text);
        self.is_cut |= more.is_cut;
    }

    /// The bytes of what was said that are held.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether this word, which [`fold`] has made small, was said.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.folded.contains(word)
    }

    /// The first place of this word, in at most this number of columns.
    pub(crate) fn excerpt(&self, word: &str, columns: usize) -> Option<Excerpt> {
        let at = self.folded.find(word)?;
        let end = at + word.len();
        let first = floor(&self.text, at.saturating_sub(AROUND));
        let last = floor(&self.text, end.saturating_add(AROUND));
        let found = cut(&one_line(self.text.get(at..end)?), columns.saturating_sub(2));
        let (lead, rest) = (self.text.get(first..at)?, self.text.get(end..last)?);
        let room = columns.saturating_sub(found.width());
        let blank = |is_there: bool| if is_there { " " } else { "" };
        let before = format!("{}{}", one_line(lead), blank(lead.ends_with(char::is_whitespace)));
        let after = format!("{}{}", blank(rest.starts_with(char::is_whitespace)), one_line(rest));
        let before = tail(&before, room / 3);
        let after = cut(&after, room.saturating_sub(before.width()));
        Some(Excerpt { before, found, after })
    }
}

/// A word as [`Said`] searches it.
pub(crate) fn fold(word: &str) -> String {
    word.chars().map(small).collect()
}

/// A small letter that is as long.
fn small(letter: char) -> char {
    let mut small = letter.to_lowercase();
    match (small.next(), small.next()) {
        (Some(one), None) if one.len_utf8() == letter.len_utf8() => one,
        _ => letter,
    }
}

/// The end of the last whole letter before this place.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The end of a text in this number of columns.
fn tail(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let fits = text.graphemes(true).rev().take_while(|letter| {
        let fits = letter.width() <= room;
        room = room.saturating_sub(letter.width());
        fits
    });
    let start = text.len() - fits.map(str::len).sum::<usize>();
    format!("…{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(messages: &[&str]) -> Said {
        let mut said = Said::default();
        messages.iter().for_each(|message| said.push(message));
        said
    }

    fn line(said: &Said, word: &str, columns: usize) -> String {
        let Excerpt { before, found, after } = said.excerpt(&fold(word), columns).unwrap();
        let line = format!("{before}[{found}]{after}");
        assert!(line.width() <= columns + 2, "{line}");
        line
    }

    /// S7.42
    #[test]
    fn a_word_is_found_however_it_is_written_and_shown_in_its_place() {
        let said =
            said(&["fix it", "The ÜBERGANG of İstanbul\n\n  is in `src/place.rs`, and more than that"]);
        for word in ["übergang", "ÜberGang", "PLACE.rs", "stanBUL"] {
            assert!(said.has(&fold(word)), "{word}");
        }
        assert_eq!(
            line(&said, "übergang", 60),
            "fix it The [ÜBERGANG] of İstanbul is in `src/place.rs`, and m…"
        );
        assert_eq!(line(&said, "place", 24), "…`src/[place].rs`, and mo…");
        assert!(!said.has(&fold("nothing")));
    }

    /// S7.42
    #[test]
    fn an_excerpt_fits_its_row_and_obeys_nothing() {
        let said = said(&[&format!("{}\x1b[2J漢字\t{}", "漢".repeat(3000), "字".repeat(3000))]);
        for columns in [3, 10, 60, 200] {
            let line = line(&said, "漢字", columns);
            assert!(!line.contains('\x1b'), "{line}");
        }
        assert!(line(&said, "[2j", 60).contains("\\u{1b}[[2J]漢字 "), "{}", line(&said, "[2j", 60));
    }

    /// S7.42
    #[test]
    fn what_is_held_of_one_conversation_is_bounded() {
        let long = "é".repeat(LONGEST);
        let said = said(&["first", &long, "last"]);
        assert!(said.len() <= LONGEST && said.is_cut && said.has("first"), "{}", said.len());
    }
}
