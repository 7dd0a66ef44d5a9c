//! Quotes and items of lists: which of them a line is in, and what stands before their rows.
//!
//! **Invariants**: at most [`DEEPEST`] are open; what is nested deeper is text.

use ratatui_core::text::Span;
use unicode_width::UnicodeWidthStr as _;

use super::{DIM, lines::is_rule, look::Look, wrap::Lead};

const DEEPEST: usize = 12;

/// The containers that are open, the outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Containers {
    open: Vec<Container>,
    /// How many of them the last line was in.
    entered: usize,
}

/// Exhaustive: a quote, or an item of a list.
#[derive(Clone, Debug)]
enum Container {
    Quote,
    Item {
        /// The columns before its text, as it is written.
        indent: usize,
        shown: String,
        /// Whether the marker was not yet shown.
        is_new: bool,
    },
}

/// What a line opens. Exhaustive: a quote, or an item with its marker and its columns.
enum Opened<'a> {
    Quote(&'a str),
    Item { marker: &'a str, indent: usize, rest: &'a str },
}

impl Containers {
    /// What stands of a line behind the marks of the open containers, and whether it is in all of them. A line of code needs no indent of an item.
    pub(super) fn enter<'a>(&mut self, line: &'a str, is_code: bool) -> (&'a str, bool) {
        let mut rest = line;
        self.entered = 0;
        for container in &self.open {
            let text = rest.trim_start_matches(' ');
            let blanks = rest.len() - text.len();
            rest = match container {
                Container::Quote => match text.strip_prefix('>') {
                    Some(after) => after.strip_prefix(' ').unwrap_or(after),
                    None => return (rest, false),
                },
                Container::Item { .. } if text.is_empty() => text,
                Container::Item { indent, .. } if blanks >= *indent || is_code => {
                    &rest[blanks.min(*indent)..]
                }
                Container::Item { .. } => return (rest, false),
            };
            self.entered += 1;
        }
        (rest, true)
    }

    /// Closes those that the last line was not in.
    pub(super) fn leave(&mut self) {
        self.open.truncate(self.entered);
    }

    /// Opens what the line begins with, and returns what stands behind it.
    pub(super) fn open<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        let mut rest = line;
        while let Some(opened) = opened(rest).filter(|_| self.open.len() < DEEPEST) {
            rest = match opened {
                Opened::Quote(rest) => {
                    self.open.push(Container::Quote);
                    rest
                }
                Opened::Item { marker, indent, rest } => {
                    let (shown, rest) = self.shown(marker, rest);
                    self.open.push(Container::Item { indent, shown, is_new: true });
                    rest
                }
            };
        }
        Some(rest)
    }

    /// The marker as it is shown, with the box of a task.
    fn shown<'a>(&self, marker: &str, rest: &'a str) -> (String, &'a str) {
        const BULLETS: [&str; 3] = ["•", "◦", "▪"];
        const TASKS: [(&str, &str); 3] = [("[ ] ", "☐"), ("[x] ", "☑"), ("[X] ", "☑")];
        let is_number = |shown: &String| shown.starts_with(|first: char| first.is_ascii_digit());
        let level = self
            .open
            .iter()
            .filter(|open| matches!(open, Container::Item { shown, .. } if !is_number(shown)))
            .count();
        let is_bullet = !marker.starts_with(|first: char| first.is_ascii_digit());
        let bullet = if is_bullet { BULLETS[level % BULLETS.len()] } else { marker };
        let task = TASKS.iter().find_map(|(mark, shown)| Some((*shown, rest.strip_prefix(mark)?)));
        match task {
            Some((shown, rest)) if is_bullet => (format!("{shown} "), rest),
            Some((shown, rest)) => (format!("{bullet} {shown} "), rest),
            None => (format!("{bullet} "), rest),
        }
    }

    pub(super) fn has_marker(&self) -> bool {
        self.open.iter().any(|open| matches!(open, Container::Item { is_new: true, .. }))
    }

    /// The markers were shown.
    pub(super) fn marked(&mut self) {
        for open in &mut self.open {
            if let Container::Item { is_new, .. } = open {
                *is_new = false;
            }
        }
    }

    /// What stands before the rows of a block here.
    pub(super) fn lead(&self, look: &Look, width: usize) -> Lead {
        let mut lead = Lead::default();
        for open in &self.open {
            match open {
                Container::Quote => {
                    let bar = bar(look);
                    lead.first.push(bar.clone());
                    lead.further.push(bar);
                }
                Container::Item { shown, is_new, .. } => {
                    let blanks = Span::raw(" ".repeat(shown.width()));
                    lead.first.push(if *is_new { Span::raw(shown.clone()) } else { blanks.clone() });
                    lead.further.push(blanks);
                }
            }
        }
        lead.within(width)
    }

    /// How many quotes there are around everything else.
    pub(super) fn quotes(&self) -> usize {
        self.open.iter().take_while(|open| matches!(open, Container::Quote)).count()
    }

    /// Whether this text, in a line that is not in all of them, begins another one.
    pub(super) fn would_begin(&self, text: &str) -> bool {
        let is_next_item = matches!(self.open.get(self.entered), Some(Container::Item { .. }));
        interrupts(text) || is_next_item && opened(text).is_some()
    }
}

pub(super) fn bar(look: &Look) -> Span<'static> {
    if look.keeps_marks() { Span::raw("> ") } else { Span::styled("│ ", DIM) }
}

/// Whether a line begins a container in the middle of a text: a number other than the first is a number of the text.
pub(super) fn interrupts(text: &str) -> bool {
    match opened(text) {
        Some(Opened::Quote(_)) => true,
        Some(Opened::Item { marker, rest, .. }) => {
            !rest.trim().is_empty()
                && (!marker.starts_with(|first: char| first.is_ascii_digit())
                    || matches!(marker, "1." | "1)"))
        }
        None => false,
    }
}

/// What stands behind the first mark, if the line begins a container.
pub(super) fn open(line: &str) -> Option<&str> {
    opened(line).map(|opened| match opened {
        Opened::Quote(rest) | Opened::Item { rest, .. } => rest,
    })
}

fn opened(line: &str) -> Option<Opened<'_>> {
    const INDENTED: usize = 4;
    const DIGITS: usize = 9;
    let text = line.trim_start_matches(' ');
    let blanks = line.len() - text.len();
    if blanks >= INDENTED {
        return None;
    }
    if let Some(rest) = text.strip_prefix('>') {
        return Some(Opened::Quote(rest.strip_prefix(' ').unwrap_or(rest)));
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length = match text.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 && !is_rule(text) => 1,
        b'.' | b')' if (1..=DIGITS).contains(&digits) => digits + 1,
        _ => return None,
    };
    let (marker, after) = text.split_at(length);
    let rest = after.trim_start_matches(' ');
    let gap = after.len() - rest.len();
    match (gap, rest.is_empty()) {
        (_, true) => Some(Opened::Item { marker, indent: blanks + length + 1, rest }),
        (0, false) => None,
        // More blanks than that are code within the item.
        (1..=INDENTED, false) => Some(Opened::Item { marker, indent: blanks + length + gap, rest }),
        (_, false) => Some(Opened::Item { marker, indent: blanks + length + 1, rest: &after[1..] }),
    }
}
