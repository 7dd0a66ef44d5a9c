//! Pieces of text into rows: broken at blanks, and a word that is wider than a row between two letters as people see them.
//!
//! **Invariants**: no row is wider than asked, unless one letter is; nothing is lost but blanks at the end of a row.

use std::sync::Arc;

use ratatui_core::{
    style::Style,
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::TAB;

/// Text in one style, and where it leads if it is a link. A `\n` in it begins a new row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StyledText {
    pub(crate) text: String,
    pub(crate) style: Style,
    pub(crate) link: Option<Arc<str>>,
}

impl StyledText {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style, link: None }
    }
}

/// A span that leads somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hyperlink {
    /// Its row, from the first that was not taken yet, and its place there.
    pub(crate) row: usize,
    pub(crate) span: usize,
    /// Checked: it has visible ASCII characters only.
    pub(crate) target: Arc<str>,
}

/// Rows, and the links in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) lines: Vec<Line<'static>>,
    pub(crate) links: Vec<Hyperlink>,
}

/// What stands before the first row of a text, and before each further one: both equally wide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lead {
    pub(crate) first: Vec<Span<'static>>,
    pub(crate) further: Vec<Span<'static>>,
}

impl Lead {
    pub(crate) fn width(&self) -> usize {
        self.first.iter().map(Span::width).sum()
    }

    /// The same, or none where it would take half of a row or more.
    pub(crate) fn within(self, width: usize) -> Self {
        if self.width() * 2 < width {
            return self;
        }
        Self { first: self.first, further: Vec::new() }
    }
}

/// Breaks at spaces; a word longer than a row is broken anywhere. Further rows hang below the text of the first.
pub(crate) fn wrap(spans: Vec<Span<'static>>, width: usize, hang: usize) -> Vec<Line<'static>> {
    let width = width.max(1);
    let hang = if hang * 2 < width { hang } else { 0 };
    let further = if hang > 0 { vec![Span::raw(" ".repeat(hang))] } else { Vec::new() };
    let pieces = spans.into_iter().map(|span| StyledText::new(span.content.replace('\t', TAB), span.style));
    let mut rows = Rows::default();
    rows.put(&pieces.collect::<Vec<_>>(), width, Lead { first: Vec::new(), further });
    rows.lines
}

impl Rows {
    /// Puts these pieces below what is there.
    pub(crate) fn put(&mut self, pieces: &[StyledText], width: usize, lead: Lead) {
        let used = lead.width();
        let mut row = OpenRow {
            rows: self,
            further: lead.further,
            spans: lead.first,
            used,
            width,
            hang: used,
            has_text: false,
        };
        let mut word: Vec<(&StyledText, &str)> = Vec::new();
        for piece in pieces {
            for part in piece.text.split_inclusive([' ', '\n']) {
                let (text, is_broken) = match part.strip_suffix('\n') {
                    Some(text) => (text, true),
                    None => (part, false),
                };
                if !text.is_empty() {
                    word.push((piece, text));
                }
                if is_broken || part.ends_with(' ') {
                    row.word(&word);
                    word.clear();
                }
                if is_broken {
                    row.next();
                }
            }
        }
        row.word(&word);
        row.end();
    }

    /// Puts one row as it is.
    pub(crate) fn line(&mut self, line: Line<'static>) {
        self.lines.push(line);
    }
}

struct OpenRow<'a> {
    rows: &'a mut Rows,
    further: Vec<Span<'static>>,
    spans: Vec<Span<'static>>,
    used: usize,
    width: usize,
    /// The columns that stand before the text of this row.
    hang: usize,
    has_text: bool,
}

impl OpenRow<'_> {
    fn word(&mut self, word: &[(&StyledText, &str)]) {
        let whole: usize = word.iter().map(|(_, text)| text.width()).sum();
        let blank = word.last().map_or(0, |(_, text)| text.len() - text.trim_end_matches(' ').len());
        let seen = whole - blank;
        if seen <= self.width.saturating_sub(self.used) {
            return word.iter().for_each(|(piece, text)| self.push(text, piece));
        }
        let further: usize = self.further.iter().map(Span::width).sum();
        if seen <= self.width.saturating_sub(further) && self.has_text {
            self.next();
            return word.iter().for_each(|(piece, text)| self.push(text, piece));
        }
        for (piece, text) in word {
            for letter in text.graphemes(true) {
                if self.used + letter.width() > self.width && self.has_text {
                    self.next();
                }
                self.push(letter, piece);
            }
        }
    }

    fn push(&mut self, text: &str, piece: &StyledText) {
        let row = self.rows.lines.len();
        self.used += text.width();
        let is_open = self.has_text
            && match self.rows.links.last() {
                Some(last) if last.row == row && last.span + 1 == self.spans.len() => {
                    piece.link.as_ref() == Some(&last.target)
                }
                _ => piece.link.is_none(),
            };
        self.has_text = true;
        match self.spans.last_mut().filter(|last| is_open && last.style == piece.style) {
            Some(last) => last.content.to_mut().push_str(text),
            None => {
                let link =
                    |target: &Arc<str>| Hyperlink { row, span: self.spans.len(), target: Arc::clone(target) };
                self.rows.links.extend(piece.link.as_ref().map(link));
                self.spans.push(Span::styled(text.to_owned(), piece.style));
            }
        }
    }

    fn next(&mut self) {
        self.finish_row();
        self.hang = self.further.iter().map(Span::width).sum();
        (self.used, self.has_text) = (self.hang, false);
        self.spans.clone_from(&self.further);
    }

    fn finish_row(&mut self) {
        if let Some(last) = self.spans.last_mut() {
            let kept = last.content.trim_end_matches(' ').len();
            last.content.to_mut().truncate(kept);
        }
        self.rows.lines.push(Line::from(std::mem::take(&mut self.spans)));
    }

    fn end(mut self) {
        let spans = std::mem::take(&mut self.spans);
        self.rows.lines.push(Line::from(spans));
    }
}
