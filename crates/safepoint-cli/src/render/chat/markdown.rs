//! Light Markdown for a terminal: headings, lists, code, bold and italic; everything else as it was written.
//!
//! **Invariants**: nothing of the text is lost but the marks that became a style; code is never wrapped, so that what
//! is copied is what was written.

use ratatui_core::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr as _;

use crate::output;

/// Whether the next line is code. Exhaustive: it is or it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Block {
    #[default]
    Prose,
    Code,
}

pub(crate) const CODE: Style = Style::new().fg(Color::Cyan);
const HEADING: Style = Style::new().add_modifier(Modifier::BOLD);
/// What stands for a tab, which is as wide as the place where it stands makes it.
pub(crate) const TAB: &str = "    ";
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// One line of a model's text as rows of at most `width`; code is one row however long.
pub(crate) fn rows(line: &str, block: &mut Block, width: usize) -> Vec<Line<'static>> {
    let line = output::plain(line).replace('\t', "    ");
    let is_fence = line.trim_start().starts_with("```");
    match (*block, is_fence) {
        (_, true) => {
            *block = if *block == Block::Code { Block::Prose } else { Block::Code };
            Vec::new()
        }
        (Block::Code, false) => vec![Line::styled(line, CODE)],
        (Block::Prose, false) => prose(&line, width),
    }
}

fn prose(line: &str, width: usize) -> Vec<Line<'static>> {
    let text = line.trim_start();
    let marks = text.chars().take_while(|c| *c == '#').count();
    if (1..=6).contains(&marks) && text[marks..].starts_with(' ') {
        return wrap(vec![Span::styled(text[marks + 1..].to_owned(), HEADING)], width, 0);
    }
    let indent = line.len() - text.len();
    let (bullet, rest) = match text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")) {
        Some(rest) => ("• ", rest),
        None => ("", text),
    };
    let lead = format!("{}{bullet}", " ".repeat(indent));
    let hang = lead.width();
    let mut spans = Vec::new();
    if !lead.is_empty() {
        spans.push(Span::raw(lead));
    }
    spans.extend(inline(rest));
    wrap(spans, width, hang)
}

/// `code`, **bold** and *italic*; a mark without its partner stays as it is.
fn inline(text: &str) -> Vec<Span<'static>> {
    const MARKS: [(&str, Style); 3] =
        [("`", CODE), ("**", HEADING), ("*", Style::new().add_modifier(Modifier::ITALIC))];
    let mut spans = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let marked = MARKS.iter().find_map(|(mark, style)| {
            let inner = rest.strip_prefix(mark)?;
            let end = inner.find(mark).filter(|end| *end > 0)?;
            let is_word = !inner[..end].starts_with(' ') && !inner[..end].ends_with(' ');
            is_word.then(|| (&inner[..end], &inner[end + mark.len()..], *style))
        });
        if let Some((inner, after, style)) = marked {
            spans.push(Span::raw(std::mem::take(&mut plain)));
            spans.push(Span::styled(inner.to_owned(), style));
            rest = after;
        } else {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    spans.push(Span::raw(plain));
    spans.retain(|span| !span.content.is_empty());
    spans
}

/// Breaks at spaces; a word longer than a row is broken anywhere. Further rows hang below the text of the first.
pub(crate) fn wrap(spans: Vec<Span<'static>>, width: usize, hang: usize) -> Vec<Line<'static>> {
    let width = width.max(1);
    let hang = if hang * 2 < width { hang } else { 0 };
    let mut rows = Rows { done: Vec::new(), row: Vec::new(), used: 0, width, hang };
    for span in spans {
        // Each with the space after it.
        for word in span.content.replace('\t', TAB).split_inclusive(' ') {
            rows.word(word, span.style);
        }
    }
    rows.done.push(Line::from(rows.row));
    rows.done
}

struct Rows {
    done: Vec<Line<'static>>,
    row: Vec<Span<'static>>,
    used: usize,
    width: usize,
    hang: usize,
}

impl Rows {
    fn word(&mut self, word: &str, style: Style) {
        if self.used + word.trim_end().width() > self.width && self.used > self.hang {
            self.next_row();
        }
        if word.trim_end().width() <= self.width.saturating_sub(self.used) {
            self.push(word, style);
            return;
        }
        for letter in word.chars() {
            let letter = letter.to_string();
            if self.used + letter.width() > self.width && self.used > self.hang {
                self.next_row();
            }
            self.push(&letter, style);
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        self.used += text.width();
        match self.row.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.row.push(Span::styled(text.to_owned(), style)),
        }
    }

    fn next_row(&mut self) {
        if let Some(last) = self.row.last_mut() {
            let kept = last.content.trim_end().len();
            last.content.to_mut().truncate(kept);
        }
        self.done.push(Line::from(std::mem::take(&mut self.row)));
        self.used = self.hang;
        if self.hang > 0 {
            self.row.push(Span::raw(" ".repeat(self.hang)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, width: usize) -> Vec<String> {
        let mut block = Block::Prose;
        text.lines().flat_map(|line| rows(line, &mut block, width)).map(|row| row.to_string()).collect()
    }

    #[test]
    fn marks_become_styles_and_lone_marks_stay() {
        let row = &rows("a **b** `c*d` 2 * 3 * 4 *e", &mut Block::Prose, 80)[0];
        assert_eq!(row.to_string(), "a b c*d 2 * 3 * 4 *e");
        assert_eq!(row.spans[1].style, HEADING);
        assert_eq!((row.spans[3].content.as_ref(), row.spans[3].style), ("c*d", CODE));
    }

    #[test]
    fn prose_is_wrapped_at_words_and_hangs_below_its_bullet() {
        assert_eq!(shown("- one two three", 9), ["• one two", "  three"]);
        assert_eq!(shown("## one two", 5), ["one", "two"]);
        assert_eq!(shown("abcdefgh", 3), ["abc", "def", "gh"]);
    }

    #[test]
    fn code_is_left_as_it_is() {
        let code = "```sh\necho **a** | wc -l   # a long line\n```\n**b**";
        assert_eq!(shown(code, 10), ["echo **a** | wc -l   # a long line", "b"]);
    }

    #[test]
    fn a_tab_is_as_wide_as_it_is_counted() {
        assert_eq!(shown("a\tb c", 6), ["a    b", "c"]);
    }

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(shown("\x1b[2Ja", 80), ["\\u{1b}[2Ja"]);
    }
}
