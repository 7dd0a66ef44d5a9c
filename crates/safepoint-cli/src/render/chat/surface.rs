//! The inline part of the screen: lines that go up into the scrollback, and below them a pane that is drawn again.
//!
//! The terminal is never asked where its cursor is, so nothing waits for an answer over a slow line; all moves are
//! relative to where the pane was drawn. The pane may change its height at any time.
//!
//! **Invariants**: the pane is never higher than the screen and no line of it wider; what is above it is never touched.

use std::time::{Duration, Instant};

use ratatui_core::{
    style::{Color, Modifier, Style},
    text::Line,
};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::markdown::{
    Hyperlink, TAB,
    look::{Theme, readable},
};
use crate::output::Drawn;

/// What is drawn below the scrollback, and where the cursor stands in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pane {
    pub(crate) lines: Vec<Line<'static>>,
    /// Column and row.
    pub(crate) cursor: (usize, usize),
}

/// Whether styles are shown. Exhaustive: they are, or `NO_COLOR` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Styled,
    Plain,
}

/// What a terminal does with its rows when it becomes narrower: most break them into more rows, others cut them. Exhaustive: the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Narrower {
    #[default]
    Breaks,
    Cuts,
}

impl Narrower {
    /// That of the terminal of this environment: `get` reads a variable. Where nothing says it, `xterm` alone is taken for one that cuts.
    pub(crate) fn of(get: impl Fn(&str) -> Option<String>) -> Self {
        const BREAK: [&str; 5] = ["TMUX", "VTE_VERSION", "KONSOLE_VERSION", "WT_SESSION", "TERM_PROGRAM"];
        const CUT: [&str; 2] = ["STY", "XTERM_VERSION"];
        let has = |names: &[&str]| names.iter().any(|name| get(name).is_some_and(|value| !value.is_empty()));
        let term = get("TERM").unwrap_or_default();
        let cuts =
            ["linux", "vt", "screen", "rxvt"].iter().any(|name| term.starts_with(name)) || term == "xterm";
        match () {
            () if has(&["TMUX"]) => Self::Breaks,
            () if has(&CUT) => Self::Cuts,
            () if has(&BREAK) || !cuts => Self::Breaks,
            () => Self::Cuts,
        }
    }
}

/// What is on the screen.
#[derive(Debug)]
pub(crate) struct Surface {
    paint: Paint,
    narrower: Narrower,
    /// The background that the colours of the palette are adapted to, if it is known.
    background: Option<Theme>,
    columns: usize,
    rows: usize,
    size: (u16, u16),
    drawn: Pane,
    /// Whether the terminal has had another size since.
    has_moved: bool,
    /// When its size last changed.
    resized: Option<Instant>,
    /// Whether the first frame goes to the bottom of the screen.
    begins_below: bool,
}

/// For so long the size must have stayed the same before anything is drawn: a terminal multiplexer breaks its lines anew at
/// once, and tells a program of it up to a quarter of a second later. What is drawn in between, for a size that is not so
/// any more, would leave rows behind.
pub(crate) const SETTLES: Duration = Duration::from_millis(300);

const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?2026l";
const CLEAR_LINE: &str = "\x1b[2K";
const CLEAR_BELOW: &str = "\x1b[J";
const RESET: &str = "\x1b[0m";
const LINK_END: &str = "\x1b]8;;\x1b\\";

impl Surface {
    pub(crate) fn new(paint: Paint, (columns, rows): (u16, u16)) -> Self {
        let (drawn, has_moved) = (Pane::default(), false);
        let narrower = Narrower::default();
        let (background, resized, begins_below) = (None, None, false);
        let mut surface = Self {
            paint,
            narrower,
            background,
            columns: 0,
            rows: 0,
            size: (0, 0),
            drawn,
            has_moved,
            resized,
            begins_below,
        };
        surface.size((columns, rows));
        surface
    }

    /// The same for a terminal that does this with its rows.
    pub(crate) fn narrowing(self, narrower: Narrower) -> Self {
        Self { narrower, ..self }
    }

    /// The first frame goes to the bottom of the screen. tmux moves as many rows into its history as a narrower screen has more of them,
    /// whatever is blank below; there a pane in the middle would follow, and nothing there can be erased.
    pub(crate) fn beginning_below(self) -> Self {
        Self { begins_below: true, ..self }
    }

    /// Its colours are those that can be read on this background.
    pub(crate) fn on(&mut self, background: Option<Theme>) {
        self.background = background;
    }

    /// Columns that lines may use.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Rows that a pane may have: one less than the screen, so that the scrollback is never touched.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether it is drawn for this size.
    pub(crate) fn is_for(&self, size: (u16, u16)) -> bool {
        self.size == size
    }

    /// The terminal has another size. A narrower one has broken the pane's lines into more rows.
    pub(crate) fn resize(&mut self, size: (u16, u16), now: Instant) {
        self.size(size);
        self.resized = Some(now);
        // Whatever stands there is drawn anew; where it stands is found then, for there may be yet another size.
        self.has_moved = true;
    }

    /// Others have written to the terminal since: the pane is drawn where its cursor is now.
    pub(crate) fn forget(&mut self) {
        (self.drawn, self.has_moved) = (Pane::default(), false);
    }

    /// Whether its size is what it is known to be, so that something may be drawn.
    pub(crate) fn is_steady(&self, now: Instant) -> bool {
        self.resized.is_none_or(|at| now.saturating_duration_since(at) >= SETTLES)
    }

    fn size(&mut self, (columns, rows): (u16, u16)) {
        const LEAST: (usize, usize) = (10, 3);
        self.size = (columns, rows);
        self.columns = usize::from(columns).max(LEAST.0);
        self.rows = usize::from(rows).max(LEAST.1) - 1;
    }

    /// What to write so that `above` goes into the scrollback and `pane` stands below it; none if nothing changes.
    pub(crate) fn frame(&mut self, above: &[Line<'static>], pane: Pane) -> Option<Drawn> {
        self.frame_with(above, &[], pane)
    }

    /// The same, with these links in what goes up.
    pub(crate) fn frame_with(
        &mut self,
        above: &[Line<'static>],
        links: &[Hyperlink],
        pane: Pane,
    ) -> Option<Drawn> {
        let mut pane = self.fitted(pane);
        if above.is_empty() && pane == self.drawn && !self.has_moved {
            return None;
        }
        if pane.lines.is_empty() {
            pane.cursor = (0, 0);
        }
        let mut drawn = Drawn::default();
        drawn.mark(BEGIN);
        if std::mem::take(&mut self.begins_below) {
            drawn.mark("\r\n".repeat(self.rows));
        }
        drawn.mark('\r');
        moved(self.rows_above(), 'A', &mut drawn);
        // A line that fills its row leaves the cursor on it, so what is below is cleared first, never after.
        if !above.is_empty() || pane.lines.len() != self.drawn.lines.len() || self.has_moved {
            drawn.mark(CLEAR_BELOW);
        }
        let mut links = links.iter().peekable();
        for (row, line) in above.iter().enumerate() {
            let here: Vec<&Hyperlink> =
                std::iter::from_fn(|| links.next_if(|link| link.row == row)).collect();
            self.line(line, &here, &mut drawn);
            drawn.mark("\r\n");
        }
        for (index, line) in pane.lines.iter().enumerate() {
            if index > 0 {
                drawn.mark("\r\n");
            }
            drawn.mark(CLEAR_LINE);
            self.line(line, &[], &mut drawn);
        }
        drawn.mark('\r');
        moved(pane.lines.len().saturating_sub(1 + pane.cursor.1), 'A', &mut drawn);
        moved(pane.cursor.0, 'C', &mut drawn);
        drawn.mark(END);
        (self.drawn, self.has_moved) = (pane, false);
        Some(drawn)
    }

    /// How many rows of the pane stand above the cursor. A terminal that became narrower may have broken its lines.
    fn rows_above(&self) -> usize {
        let (column, row) = self.drawn.cursor;
        if self.narrower == Narrower::Cuts {
            return row.min(self.rows);
        }
        let above: usize = self.drawn.lines.iter().take(row).map(|line| self.broken(line, usize::MAX)).sum();
        let before = self.drawn.lines.get(row).map_or(1, |line| self.broken(line, column));
        (above + before - 1).min(self.rows)
    }

    /// The rows that the first columns of a line take now. A wide letter is never broken.
    fn broken(&self, line: &Line<'_>, columns: usize) -> usize {
        let (mut rows, mut used, mut passed) = (1, 0, 0);
        for span in &line.spans {
            for letter in span.content.graphemes(true) {
                let wide = letter.width();
                if used + wide > self.columns {
                    (rows, used) = (rows + 1, 0);
                }
                if passed >= columns {
                    return rows;
                }
                (used, passed) = (used + wide, passed + wide);
            }
        }
        rows
    }

    fn fitted(&self, mut pane: Pane) -> Pane {
        let over = pane.lines.len().saturating_sub(self.rows);
        pane.lines.drain(..over);
        pane.cursor.1 = pane.cursor.1.saturating_sub(over);
        pane.cursor.0 = pane.cursor.0.min(self.columns - 1);
        for line in &mut pane.lines {
            for span in line.spans.iter_mut().filter(|span| span.content.contains('\t')) {
                span.content = span.content.replace('\t', TAB).into();
            }
            if line.width() > self.columns {
                *line = cut(line, self.columns);
            }
        }
        pane
    }

    fn line(&self, line: &Line<'_>, links: &[&Hyperlink], drawn: &mut Drawn) {
        for (index, span) in line.spans.iter().enumerate() {
            let mut style = line.style.patch(span.style);
            if let (Some(colour), Some(background)) = (style.fg, self.background) {
                style.fg = Some(readable(colour, background));
            }
            let codes = if self.paint == Paint::Plain { String::new() } else { codes(style) };
            let link = links.iter().find(|link| link.span == index && self.paint == Paint::Styled);
            if let Some(link) = link {
                drawn.mark(format_args!("\x1b]8;;{}\x1b\\", link.target));
            }
            if !codes.is_empty() {
                drawn.mark(format_args!("\x1b[{codes}m"));
            }
            drawn.words(&span.content);
            if !codes.is_empty() {
                drawn.mark(RESET);
            }
            if link.is_some() {
                drawn.mark(LINK_END);
            }
        }
    }
}

/// Moves the cursor: `A` is up, `C` is right.
fn moved(count: usize, way: char, drawn: &mut Drawn) {
    if count > 0 {
        drawn.mark(format_args!("\x1b[{count}{way}"));
    }
}

/// As much of a line as a row holds.
fn cut(line: &Line<'static>, width: usize) -> Line<'static> {
    let mut left = width.saturating_sub(1);
    let mut spans = Vec::new();
    for span in &line.spans {
        let mut kept = String::new();
        for cluster in span.content.graphemes(true) {
            if cluster.width() > left {
                kept.push('…');
                spans.push(ratatui_core::text::Span::styled(kept, span.style));
                return Line::from(spans).style(line.style);
            }
            left -= cluster.width();
            kept.push_str(cluster);
        }
        spans.push(ratatui_core::text::Span::styled(kept, span.style));
    }
    Line::from(spans).style(line.style)
}

fn codes(style: Style) -> String {
    const MODIFIERS: [(Modifier, &str); 6] = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ];
    let colour = match style.fg {
        Some(Color::Red) => Some("31".to_owned()),
        Some(Color::Green) => Some("32".to_owned()),
        Some(Color::Yellow) => Some("33".to_owned()),
        Some(Color::Blue) => Some("34".to_owned()),
        Some(Color::Magenta) => Some("35".to_owned()),
        Some(Color::Cyan) => Some("36".to_owned()),
        Some(Color::Indexed(index)) => Some(format!("38;5;{index}")),
        Some(Color::Rgb(red, green, blue)) => Some(format!("38;2;{red};{green};{blue}")),
        _ => None,
    };
    let modifiers = MODIFIERS.iter().filter(|(modifier, _)| style.add_modifier.contains(*modifier));
    modifiers.map(|(_, code)| (*code).to_owned()).chain(colour).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    const SIZE: (u16, u16) = (20, 6);

    struct Seen {
        surface: Surface,
        screen: vt100::Parser,
    }

    impl Seen {
        fn new(paint: Paint) -> Self {
            const KEPT: usize = 100;
            Self {
                surface: Surface::new(paint, SIZE),
                screen: vt100::Parser::new(
                    NonZero::new(SIZE.1).unwrap(),
                    NonZero::new(SIZE.0).unwrap(),
                    KEPT,
                ),
            }
        }

        fn draw(&mut self, above: &[&str], pane: &[&str], cursor: (usize, usize)) -> String {
            let above: Vec<Line<'static>> = above.iter().map(|line| Line::raw((*line).to_owned())).collect();
            let lines = pane.iter().map(|line| Line::raw((*line).to_owned())).collect();
            let frame = self.surface.frame(&above, Pane { lines, cursor }).unwrap_or_default();
            self.screen.process(frame.to_string().as_bytes());
            self.screen.screen().contents()
        }
    }

    #[test]
    fn what_was_said_stays_and_the_pane_moves_below_it() {
        let mut seen = Seen::new(Paint::Plain);
        assert_eq!(seen.draw(&["a"], &["one", "two", "> x"], (2, 2)), "a\none\ntwo\n> x");
        assert_eq!(seen.screen.screen().cursor_position(), (3, 2));
        assert_eq!(seen.draw(&["b"], &["> x"], (2, 0)), "a\nb\n> x");
        assert_eq!(seen.draw(&[], &["1", "2", "> x"], (0, 1)), "a\nb\n1\n2\n> x");
        assert_eq!(seen.draw(&["c", "d", "e"], &["> x", "hint"], (0, 0)), "b\nc\nd\ne\n> x\nhint");
        assert_eq!(seen.draw(&[], &[], (0, 0)), "b\nc\nd\ne");
    }

    #[test]
    fn nothing_is_written_when_nothing_changes() {
        let mut surface = Surface::new(Paint::Plain, SIZE);
        let pane = Pane { lines: vec![Line::raw("x")], cursor: (0, 0) };
        assert!(surface.frame(&[], pane.clone()).is_some());
        assert!(surface.frame(&[], pane).is_none());
    }

    #[test]
    fn a_line_that_fills_its_row_keeps_its_last_letter() {
        let mut seen = Seen::new(Paint::Plain);
        let full = "abcdefghijklmnopqrst";
        seen.draw(&[], &[full, "x"], (0, 1));
        assert_eq!(seen.draw(&[], &["y", full], (0, 1)), format!("y\n{full}"));
        assert_eq!(seen.draw(&[full], &["z"], (0, 0)), format!("{full}\nz"));
        assert_eq!(
            seen.draw(&[], &["abcdefghijklmnopqrstuvw"], (0, 0)),
            format!("{full}\nabcdefghijklmnopqrs…")
        );
    }

    #[test]
    fn a_tab_in_the_pane_leaves_no_row_behind() {
        let mut seen = Seen::new(Paint::Plain);
        assert_eq!(seen.draw(&[], &["\t\t\tabcdefghijklm", "x"], (0, 1)), "            abcdefg…\nx");
        assert_eq!(seen.draw(&[], &["y"], (0, 0)), "y");
    }

    #[test]
    fn a_pane_is_never_higher_than_the_screen() {
        let mut seen = Seen::new(Paint::Plain);
        let shown = seen.draw(&["kept"], &["1", "2", "3", "4", "5", "6", "7"], (0, 6));
        assert_eq!(shown, "kept\n3\n4\n5\n6\n7");
    }

    #[test]
    fn colours_are_shown_unless_none_are_wanted() {
        let line = Line::styled("x", Style::new().fg(Color::Red));
        let frame = |paint| {
            Surface::new(paint, SIZE).frame(std::slice::from_ref(&line), Pane::default()).unwrap_or_default()
        };
        assert!(frame(Paint::Styled).to_string().contains("\x1b[31mx\x1b[0m"));
        assert!(!frame(Paint::Plain).to_string().contains("\x1b[31m"));
    }

    #[test]
    fn a_size_that_changes_twice_before_the_next_frame_leaves_no_row() {
        let mut surface = Surface::new(Paint::Plain, SIZE);
        let pane = Pane { lines: vec![Line::raw("abcdefghijklmno"), Line::raw("> x")], cursor: (3, 1) };
        surface.frame(&[], pane.clone());
        surface.resize((15, 6), Instant::now());
        surface.resize((10, 6), Instant::now());
        let frame = surface.frame(&[], pane.clone()).unwrap_or_default();
        assert!(
            frame.to_string().contains("\r\x1b[2A\x1b[J"),
            "up over both rows of the first line: {frame:?}"
        );
        surface.resize((12, 6), Instant::now());
        surface.resize((10, 6), Instant::now());
        assert!(surface.frame(&[], pane).is_some(), "what stands there may have been moved");
    }

    #[test]
    fn nothing_is_drawn_while_the_size_still_changes() {
        let mut surface = Surface::new(Paint::Plain, SIZE);
        let began = Instant::now();
        assert!(surface.is_steady(began));
        surface.resize((15, 6), began);
        let again = began + SETTLES / 2;
        surface.resize((10, 6), again);
        assert!(!surface.is_steady(began + SETTLES));
        assert!(surface.is_steady(again + SETTLES));
    }

    #[test]
    fn a_narrower_terminal_has_broken_the_pane_into_more_rows() {
        let mut surface = Surface::new(Paint::Plain, SIZE);
        let pane = Pane { lines: vec![Line::raw("abcdefghijklmno"), Line::raw("> x")], cursor: (3, 1) };
        surface.frame(&[], pane.clone());
        surface.resize((10, 6), Instant::now());
        let frame = surface.frame(&[], pane).unwrap_or_default();
        assert!(
            frame.to_string().contains("\r\x1b[2A\x1b[J"),
            "up over both rows of the first line: {frame:?}"
        );
    }
}
