//! A table: its columns aligned, its cells wrapped where the screen is narrower; where even that does not fit, each row as a list of its cells.
//!
//! **Invariants**: no row is wider than the screen; every cell is shown, those beyond the header's too; once a part of the table was shown, its columns keep
//! their widths.

use ratatui_core::{
    style::{Modifier, Style},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr as _;

use super::{
    DIM, inline,
    look::Look,
    wrap::{Hyperlink, Lead, Rows, StyledText},
};

/// A table with more columns is shown as it was written.
pub(super) const COLUMNS: usize = 64;
const SEPARATOR: &str = " │ ";
/// Columns of a cell that is wrapped, at least, unless its text is shorter.
const NARROWEST: usize = 8;

/// How a column is aligned. Exhaustive: the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Centre,
    Right,
}

/// A table that is read, or the rest of it.
#[derive(Clone, Debug)]
pub(super) struct Table {
    header: Vec<String>,
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
    /// The bytes of the rows that are held.
    pub(super) bytes: usize,
    /// Once a part was shown: how it was laid out, for how many columns of the screen.
    shown: Option<(usize, Layout)>,
}

/// Exhaustive: columns of these widths, or a list.
#[derive(Clone, Debug)]
enum Layout {
    Columns(Vec<usize>),
    List,
}

impl Table {
    /// The table that these two lines begin: the second one says how its columns are aligned.
    pub(super) fn begin(header: &str, second: &str) -> Option<Self> {
        let is_rule = |cell: &String| {
            let bare = cell.strip_prefix(':').unwrap_or(cell);
            let bare = bare.strip_suffix(':').unwrap_or(bare);
            !bare.is_empty() && bare.bytes().all(|byte| byte == b'-')
        };
        if !second.contains('-')
            || !second.bytes().all(|byte| b"|:- ".contains(&byte))
            || !header.contains('|')
        {
            return None;
        }
        let (header, rules) = (cells(header), cells(second));
        if header.len() != rules.len() || header.len() > COLUMNS || !rules.iter().all(is_rule) {
            return None;
        }
        let align = |cell: &String| match (cell.starts_with(':'), cell.ends_with(':')) {
            (true, true) => Align::Centre,
            (false, true) => Align::Right,
            (_, false) => Align::Left,
        };
        let aligns = rules.iter().map(align).collect();
        Some(Self { header, aligns, rows: Vec::new(), bytes: 0, shown: None })
    }

    pub(super) fn row(&mut self, line: &str) {
        self.bytes += line.len();
        let mut row = cells(line);
        if row.len() > self.header.len() {
            let more = row.split_off(self.header.len() - 1);
            row.push(more.join(" | "));
        }
        row.resize(self.header.len(), String::new());
        self.rows.push(row);
    }

    /// Shows what is held, and holds nothing after that.
    pub(super) fn show(&mut self, width: usize, lead: &Lead, look: &Look, rows: &mut Rows) {
        let room = width.saturating_sub(lead.width()).max(1);
        let read = |text: &String, base| inline::pieces(text, base, look);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let header: Vec<Vec<StyledText>> = self.header.iter().map(|cell| read(cell, bold)).collect();
        let body: Vec<Vec<Vec<StyledText>>> = self
            .rows
            .drain(..)
            .map(|row| row.iter().map(|cell| read(cell, Style::new())).collect())
            .collect();
        self.bytes = 0;
        let was_shown = self.shown.is_some();
        let layout = match self.shown.take() {
            // A screen of another width has another layout from here on.
            Some((columns, layout)) if columns == room => layout,
            _ => layout(&header, &body, room),
        };
        let mut lead = lead.clone();
        match &layout {
            Layout::List => body.iter().for_each(|row| list(&header, row, (width, &mut lead), rows)),
            Layout::Columns(widths) => {
                if !was_shown {
                    self.in_columns(&header, widths, &mut lead, rows);
                    let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
                    let mut line = lead.first.clone();
                    line.push(Span::styled(rule, DIM));
                    rows.line(Line::from(line));
                }
                body.iter().for_each(|row| self.in_columns(row, widths, &mut lead, rows));
            }
        }
        self.shown = Some((room, layout));
    }

    /// One row of the table: as many rows of the screen as its highest cell has.
    fn in_columns(&self, cells: &[Vec<StyledText>], widths: &[usize], lead: &mut Lead, rows: &mut Rows) {
        let mut parts = Vec::new();
        for (cell, width) in cells.iter().zip(widths) {
            let mut part = Rows::default();
            part.put(cell, (*width).max(1), Lead::default());
            parts.push(part);
        }
        let height = parts.iter().map(|part| part.lines.len()).max().unwrap_or(0);
        for row in 0..height {
            let mut spans = lead.first.clone();
            lead.first.clone_from(&lead.further);
            for (column, part) in parts.iter().enumerate() {
                if column > 0 {
                    spans.push(Span::styled(SEPARATOR, DIM));
                }
                let line = part.lines.get(row).cloned().unwrap_or_default();
                let room = widths[column].saturating_sub(line.width());
                let left = match self.aligns[column] {
                    Align::Left => 0,
                    Align::Centre => room / 2,
                    Align::Right => room,
                };
                let is_last = column + 1 == parts.len();
                let right = if is_last { 0 } else { room - left };
                if left > 0 {
                    spans.push(Span::raw(" ".repeat(left)));
                }
                let links = part.links.iter().filter(|link| link.row == row);
                let moved = |link: &Hyperlink| Hyperlink {
                    row: rows.lines.len(),
                    span: spans.len() + link.span,
                    target: link.target.clone(),
                };
                rows.links.extend(links.map(moved));
                spans.extend(line.spans);
                if right > 0 {
                    spans.push(Span::raw(" ".repeat(right)));
                }
            }
            rows.line(Line::from(spans));
        }
    }
}

/// A row as a list: each cell behind the name of its column.
fn list(
    header: &[Vec<StyledText>],
    row: &[Vec<StyledText>],
    (width, lead): (usize, &mut Lead),
    rows: &mut Rows,
) {
    const INDENT: &str = "  ";
    for (index, (name, cell)) in header.iter().zip(row).enumerate() {
        let mut pieces = vec![StyledText::new(if index == 0 { "• " } else { INDENT }, Style::new())];
        pieces.extend(name.iter().cloned());
        pieces.push(StyledText::new(": ", Style::new()));
        pieces.extend(cell.iter().cloned());
        let mut here = lead.clone();
        here.further.push(Span::raw(INDENT.repeat(2)));
        rows.put(&pieces, width, here);
        lead.first.clone_from(&lead.further);
    }
}

/// The widths of the columns: what they need, or less of the widest.
fn layout(header: &[Vec<StyledText>], body: &[Vec<Vec<StyledText>>], room: usize) -> Layout {
    let wide = |cell: &Vec<StyledText>| cell.iter().map(|piece| piece.text.width()).sum::<usize>();
    let mut widths: Vec<usize> = header.iter().map(wide).collect();
    for row in body {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(wide(cell)));
    }
    let room = room.saturating_sub(SEPARATOR.width() * widths.len().saturating_sub(1));
    if widths.iter().map(|width| (*width).min(NARROWEST)).sum::<usize>() > room {
        return Layout::List;
    }
    // The widest that all columns may have so that they fit: between the narrowest and the whole room.
    let (mut low, mut high) = (NARROWEST, room.max(NARROWEST));
    while low < high {
        let middle = (low + high).div_ceil(2);
        if widths.iter().map(|width| (*width).min(middle)).sum::<usize>() <= room {
            low = middle
        } else {
            high = middle - 1
        }
    }
    let mut left = room.saturating_sub(widths.iter().map(|width| (*width).min(low)).sum());
    for width in &mut widths {
        let more = width.saturating_sub(low).min(left);
        *width = (*width).min(low) + more;
        left -= more;
    }
    Layout::Columns(widths)
}

/// The cells of a line: a bar behind a backslash, or within code, is a bar of the cell.
pub(super) fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut found = vec![String::new()];
    let mut letters = line.chars().peekable();
    let mut is_code = false;
    let mut marks = line.matches('`').count();
    while let Some(letter) = letters.next() {
        let last = found.last_mut().expect("there is one at least");
        match letter {
            '\\' if letters.peek() == Some(&'|') => last.extend(letters.next()),
            '`' => {
                // Without its partner it is no code.
                marks -= 1;
                is_code = !is_code && marks > 0;
                last.push('`');
            }
            '|' if !is_code => found.push(String::new()),
            letter => last.push(letter),
        }
    }
    if found.len() > 1 && found.last().is_some_and(|last| last.trim().is_empty()) {
        found.pop();
    }
    found.iter_mut().for_each(|cell| *cell = cell.trim().to_owned());
    found
}
