//! Markdown for a terminal, as it streams: whole blocks become rows once, in order; the block that has begun can be shown at any time.
//!
//! A line of code is a block, and so is an item of a list: neither waits for what comes after it. The text of a block is read by `pulldown-cmark`; which lines
//! are a block is decided here, line by line, so that a line is looked at once.
//!
//! **Invariants**: nothing of the text is lost but the marks that became a style; code is never wrapped, so that what
//! is copied is what was written; what is held is at most [`LONGEST`] bytes of a block and as many of a line, however the text is made.

use ratatui_core::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use crate::output;

mod containers;
mod highlight;
mod inline;
mod languages;
mod lines;
pub(crate) mod look;
mod table;
#[cfg(test)]
mod tests;
mod wrap;

use containers::Containers;
use lines::Code;
use look::Look;
use table::Table;
pub(crate) use wrap::{Hyperlink, Rows, wrap};
use wrap::{Lead, StyledText};

pub(crate) const CODE: Style = Style::new().fg(Color::Cyan);
/// What stands for a tab, which is as wide as the place where it stands makes it.
pub(crate) const TAB: &str = "    ";
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// The bytes of a line, and of a block, that are held at most: what is longer is shown in pieces.
const LONGEST: usize = 16 << 10;

/// A message that streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markdown {
    pub(crate) look: Look,
    /// The line that has begun.
    partial: String,
    /// Whether the line continues that was cut because it is too long.
    is_cut: bool,
    containers: Containers,
    block: Block,
    /// Whether a blank row comes before the next block, and in how many quotes.
    blank: Option<usize>,
    /// Whether there was a block.
    has_shown: bool,
}

/// The block that has begun. Exhaustive: none, or one of those that have more than one line.
#[derive(Clone, Debug, Default)]
enum Block {
    #[default]
    None,
    Text(String),
    Code(Code),
    Table(Box<Table>),
}

impl Markdown {
    /// More of the text: the blocks that end in it become rows.
    pub(crate) fn push(&mut self, text: &str, width: usize, rows: &mut Rows) {
        for mut line in text.split_inclusive('\n') {
            while self.partial.len() + line.len() > LONGEST {
                let fits = LONGEST.saturating_sub(self.partial.len()).min(line.len());
                let fits = (0..=fits).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
                self.partial.push_str(&line[..fits]);
                line = &line[fits..];
                self.line_ends(width, rows);
                self.is_cut = true;
            }
            self.partial.push_str(line);
            if line.ends_with('\n') {
                self.line_ends(width, rows);
                self.is_cut = false;
            }
        }
    }

    /// The block that has begun, as it would be if it ended here.
    pub(crate) fn begun(&self, width: usize) -> Vec<Line<'static>> {
        if self.partial.is_empty()
            && matches!(self.block, Block::None | Block::Code(_))
            && !self.containers.has_marker()
        {
            return Vec::new();
        }
        let mut rows = Rows::default();
        self.clone().end(width, &mut rows);
        rows.lines
    }

    /// The message is over, however it ended: what is held becomes rows, and the next message begins anew.
    pub(crate) fn end(&mut self, width: usize, rows: &mut Rows) {
        if !self.partial.is_empty() {
            self.line_ends(width, rows);
        }
        self.close(width, rows);
        self.marker(width, rows);
        *self = Self { look: std::mem::take(&mut self.look), ..Self::default() };
    }

    fn line_ends(&mut self, width: usize, rows: &mut Rows) {
        let line = std::mem::take(&mut self.partial);
        let line = output::plain(line.trim_end_matches(['\n', '\r'])).replace('\t', TAB);
        if self.is_cut { self.more_of_a_line(line, width, rows) } else { self.line(&line, width, rows) }
    }

    /// A piece of a line that was cut begins no block.
    fn more_of_a_line(&mut self, line: String, width: usize, rows: &mut Rows) {
        if line.is_empty() {
            return;
        }
        if let Block::Code(_) = self.block {
            return self.code(&line, width, rows);
        }
        self.close(width, rows);
        self.text(&line, Style::new(), width, rows);
    }

    fn line(&mut self, line: &str, width: usize, rows: &mut Rows) {
        let is_code = matches!(self.block, Block::Code(_));
        let (rest, is_inside) = self.containers.enter(line, is_code);
        if is_code && is_inside {
            let rest = rest.to_owned();
            return self.code_line(&rest, width, rows);
        }
        let text = rest.trim_start_matches(' ');
        if !is_inside {
            // A line of text may lack the marks of its containers, if it begins nothing.
            let begins = text.is_empty() || lines::begins(text) || self.containers.would_begin(text);
            if matches!(self.block, Block::Text(_)) && !begins {
                return self.text_goes_on(text, width, rows);
            }
            self.close(width, rows);
            self.marker(width, rows);
            self.containers.leave();
        }
        let mut rest = rest;
        let may_begin = !matches!(self.block, Block::Text(_)) || containers::interrupts(text);
        if may_begin && let Some(after) = containers::open(rest) {
            self.close(width, rows);
            self.marker(width, rows);
            rest = self.containers.open(rest).unwrap_or(after);
        }
        let rest = rest.to_owned();
        self.leaf(&rest, width, rows);
    }

    /// What stands behind the marks of the containers.
    fn leaf(&mut self, rest: &str, width: usize, rows: &mut Rows) {
        const INDENTED: usize = 4;
        let text = rest.trim_start_matches(' ');
        if text.is_empty() {
            self.close(width, rows);
            if self.containers.has_marker() {
                // An item without text has its row all the same.
                return self.marker(width, rows);
            }
            self.blank = Some(self.containers.quotes());
            return;
        }
        if rest.len() - text.len() >= INDENTED && matches!(self.block, Block::None) {
            return self.code(rest, width, rows);
        }
        if let Some(code) = lines::fence(text) {
            self.close(width, rows);
            if self.look.keeps_marks() {
                self.raw(vec![Span::raw(text.to_owned())], rows, width);
            }
            self.block = Block::Code(code);
            return;
        }
        if let Some((level, title)) = lines::heading(text) {
            self.close(width, rows);
            let title = if self.look.keeps_marks() { text } else { title };
            return self.text(title, lines::heading_style(level), width, rows);
        }
        if let Block::Text(held) = &self.block
            && let Some(level) = lines::underline(text)
        {
            let title = held.clone();
            self.block = Block::None;
            self.text(&title, lines::heading_style(level), width, rows);
            if self.look.keeps_marks() {
                self.text(text, Style::new(), width, rows);
            }
            return;
        }
        if lines::is_rule(text) {
            const WIDEST: usize = 40;
            self.close(width, rows);
            let room = width.saturating_sub(self.containers.lead(&self.look, width).width()).clamp(1, WIDEST);
            return self.raw(vec![Span::styled("─".repeat(room), DIM)], rows, width);
        }
        self.text_goes_on(text, width, rows);
    }

    /// A line of text, or of a table.
    fn text_goes_on(&mut self, text: &str, width: usize, rows: &mut Rows) {
        match &mut self.block {
            Block::Table(table) if text.contains('|') => {
                if table.bytes + text.len() > LONGEST {
                    self.show_table(width, rows);
                }
                if let Block::Table(table) = &mut self.block {
                    table.row(text);
                }
            }
            Block::Text(held) => {
                let (before, last) =
                    held.rsplit_once('\n').map_or(("", held.as_str()), |(before, last)| (before, last));
                if let Some(table) = Table::begin(last, text) {
                    let before = before.to_owned();
                    self.block = Block::None;
                    if !before.is_empty() {
                        self.text(&before, Style::new(), width, rows);
                    }
                    self.block = Block::Table(Box::new(table));
                    return;
                }
                if held.len() + text.len() < LONGEST {
                    held.push('\n');
                    held.push_str(text);
                    return;
                }
                self.close(width, rows);
                self.block = Block::Text(text.to_owned());
            }
            Block::None | Block::Code(_) | Block::Table(_) => {
                self.close(width, rows);
                self.block = Block::Text(text.to_owned());
            }
        }
    }

    fn code_line(&mut self, rest: &str, width: usize, rows: &mut Rows) {
        let Block::Code(code) = &self.block else { return };
        let text = rest.trim();
        if text.len() >= code.length && text.chars().all(|letter| letter == code.fence) {
            self.block = Block::None;
            if self.look.keeps_marks() {
                self.raw(vec![Span::raw(text.to_owned())], rows, width);
            }
            return;
        }
        self.code(rest, width, rows);
    }

    fn code(&mut self, line: &str, width: usize, rows: &mut Rows) {
        let code = self.look.code();
        let spans = match &mut self.block {
            Block::Code(Code { lexer: Some(lexer), .. }) => lexer.line(line, &self.look),
            _ => vec![Span::styled(line.to_owned(), code)],
        };
        self.raw(spans, rows, width);
    }

    /// The block that was open has ended.
    fn close(&mut self, width: usize, rows: &mut Rows) {
        match std::mem::take(&mut self.block) {
            Block::None | Block::Code(_) => {}
            Block::Text(text) => self.text(&text, Style::new(), width, rows),
            Block::Table(table) => {
                self.block = Block::Table(table);
                self.show_table(width, rows);
                self.block = Block::None;
            }
        }
    }

    fn show_table(&mut self, width: usize, rows: &mut Rows) {
        let lead = self.lead(width, rows);
        if let Block::Table(table) = &mut self.block {
            table.show(width, &lead, &self.look, rows);
        }
    }

    fn text(&mut self, text: &str, style: Style, width: usize, rows: &mut Rows) {
        let lead = self.lead(width, rows);
        let pieces: Vec<StyledText> = inline::pieces(text, style, &self.look);
        rows.put(&pieces, width, lead);
    }

    /// A row that is not wrapped.
    fn raw(&mut self, spans: Vec<Span<'static>>, rows: &mut Rows, width: usize) {
        let lead = self.lead(width, rows);
        rows.line(Line::from([lead.first, spans].concat()));
    }

    /// The row of an item that had no text.
    fn marker(&mut self, width: usize, rows: &mut Rows) {
        if self.containers.has_marker() {
            self.raw(Vec::new(), rows, width);
        }
    }

    /// What stands before the next block, below the blank row if there was one.
    fn lead(&mut self, width: usize, rows: &mut Rows) -> Lead {
        let quotes = self.blank.take().filter(|_| self.has_shown);
        if let Some(quotes) = quotes {
            let quotes = quotes.min(self.containers.quotes());
            rows.line(Line::from(vec![containers::bar(&self.look); quotes]));
        }
        self.has_shown = true;
        let lead = self.containers.lead(&self.look, width);
        self.containers.marked();
        lead
    }
}
