//! A unified diff as rows with line numbers, and marks of what differs inside a line.
//!
//! **Invariants**: nothing of a diff hides: what is invisible is named, and what is left out is counted.

use safepoint_tools::limits;
use similar::{Algorithm, DiffTag, capture_diff_slices};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::visible;

/// What a row is. Exhaustive: what a unified diff has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    Hunk,
    Same,
    Removed,
    Added,
    /// What is said of the lines around, such as that a newline is missing.
    Note,
}

/// A row of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffRow {
    pub(crate) kind: RowKind,
    /// The line: in the new file, of a removed one in the old file.
    pub(crate) number: Option<usize>,
    /// The text as it is shown, and which parts of it differ from the line in whose place it stands.
    pub(crate) pieces: Vec<(String, bool)>,
}

/// The columns of a number and its mark.
pub(crate) const GUTTER: usize = 7;

impl DiffRow {
    /// The number and the mark before the text.
    pub(crate) fn gutter(&self) -> String {
        let number = self.number.map_or(String::new(), |number| number.to_string());
        let mark = match self.kind {
            RowKind::Added => '+',
            RowKind::Removed => '-',
            RowKind::Hunk | RowKind::Same | RowKind::Note => ' ',
        };
        format!("{number:>5} {mark}")
    }

    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(|(text, _)| text.as_str()).collect()
    }
}

/// The rows of a unified diff; what stands before its first hunk is left out.
pub(crate) fn rows(diff: &str) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    let (mut old, mut new, mut is_inside) = (0, 0, false);
    // A file whose lines all end in this way is shown without it.
    let is_crlf = diff.split_inclusive('\n').filter(|line| is_line(line)).all(|line| line.ends_with("\r\n"));
    for line in diff.split_terminator('\n') {
        if let Some((from, to)) = hunk(line) {
            (old, new, is_inside) = (from, to, true);
            rows.push(DiffRow {
                kind: RowKind::Hunk,
                number: None,
                pieces: vec![(visible::code(line), false)],
            });
            continue;
        }
        if !is_inside {
            continue;
        }
        let mut letters = line.chars();
        let (kind, number) = match letters.next() {
            Some('-') => (RowKind::Removed, Some(take(&mut old))),
            Some('+') => (RowKind::Added, Some(take(&mut new))),
            Some(' ') => {
                take(&mut old);
                (RowKind::Same, Some(take(&mut new)))
            }
            _ => (RowKind::Note, None),
        };
        let text = if kind == RowKind::Note { line } else { letters.as_str() };
        let text = if is_crlf { text.strip_suffix('\r').unwrap_or(text) } else { text };
        rows.push(DiffRow { kind, number, pieces: vec![(visible::code(text), false)] });
    }
    mark(&mut rows);
    rows
}

fn is_line(line: &str) -> bool {
    line.starts_with([' ', '+', '-']) && !line.starts_with("+++ ") && !line.starts_with("--- ")
}

fn take(number: &mut usize) -> usize {
    let taken = *number;
    *number += 1;
    taken
}

/// The first lines of a hunk, in the old file and in the new one.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let (old, new) = line.strip_prefix("@@ -")?.strip_suffix(" @@")?.split_once(" +")?;
    let first = |range: &str| range.split(',').next()?.parse().ok();
    Some((first(old)?, first(new)?))
}

/// Marks what differs in a line that stands in another's place.
fn mark(rows: &mut [DiffRow]) {
    let mut at = 0;
    while at < rows.len() {
        let run = |from: usize, kind| rows[from..].iter().take_while(|row| row.kind == kind).count();
        let removed = run(at, RowKind::Removed);
        let added = run(at + removed, RowKind::Added);
        if removed == added {
            let (gone, came) = rows[at..at + removed + added].split_at_mut(removed);
            gone.iter_mut().zip(came).for_each(|(gone, came)| mark_pair(gone, came));
        }
        at += (removed + added).max(1);
    }
}

/// The marks of two lines, if they have enough in common for marks to say something.
fn mark_pair(gone: &mut DiffRow, came: &mut DiffRow) {
    let (old, new) = (gone.text(), came.text());
    if old.len().max(new.len()) > limits::DIFF_LINE_BYTES {
        return;
    }
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_word_bounds().collect(), new.split_word_bounds().collect());
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let size = |words: &[&str]| words.iter().map(|word| word.trim().len()).sum::<usize>();
    let same = ops.iter().filter(|op| op.tag() == DiffTag::Equal).map(|op| size(&old[op.old_range()]));
    if same.sum::<usize>() * 2 < size(&old).min(size(&new)).max(1) {
        return;
    }
    let mut marked = (Vec::new(), Vec::new());
    for op in ops {
        let is_changed = op.tag() != DiffTag::Equal;
        marked.0.push((old[op.old_range()].concat(), is_changed));
        marked.1.push((new[op.new_range()].concat(), is_changed));
    }
    marked.0.retain(|(text, _)| !text.is_empty());
    marked.1.retain(|(text, _)| !text.is_empty());
    (gone.pieces, came.pieces) = marked;
}

/// How many lines a diff adds and removes.
pub(crate) fn counts(rows: &[DiffRow]) -> (usize, usize) {
    let count = |kind| rows.iter().filter(|row| row.kind == kind).count();
    (count(RowKind::Added), count(RowKind::Removed))
}

/// The rows that are shown: all, or the first and the last ones and how many are left out between.
pub(crate) fn folded(rows: &[DiffRow], most: usize) -> (&[DiffRow], usize, &[DiffRow]) {
    const TAIL: usize = 4;
    /// A note takes a row too, and says less than a few rows do.
    const FEW: usize = 3;
    if rows.len() <= most.saturating_add(FEW) {
        return (rows, 0, &[]);
    }
    let (head, tail) = (most - TAIL, rows.len() - TAIL);
    (&rows[..head], tail - head, &rows[tail..])
}

/// The rows as plain text, of at most this many lines.
pub(crate) fn plain(rows: &[DiffRow], most: usize) -> String {
    let line = |row: &DiffRow| format!("{}{}\n", row.gutter(), row.text());
    let (head, hidden, tail) = folded(rows, most);
    let mut text: String = head.iter().map(line).collect();
    if hidden > 0 {
        text.push_str(&format!("      … {hidden} lines are NOT SHOWN HERE …\n"));
        text.extend(tail.iter().map(line));
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str =
        "--- a\n+++ a\n@@ -9,3 +9,4 @@\n one\n-let x = 1;\n+let x = 2;\n+new\u{202e}\n \ttwo\n";

    #[test]
    fn rows_have_the_numbers_of_their_files() {
        let rows = rows(DIFF);
        let shown = plain(&rows, 10);
        let expected = "       @@ -9,3 +9,4 @@\n    9  one\n   10 -let x = 1;\n   10 +let x = 2;\n   11 +new\\u{202e}\n   12      two";
        assert_eq!(shown, expected);
        assert_eq!(counts(&rows), (2, 1));
    }

    #[test]
    fn what_differs_inside_a_line_is_marked() {
        let rows = rows("@@ -1 +1 @@\n-let x = 1;\n+let x = 22;\n");
        let marked = |row: &DiffRow| {
            row.pieces
                .iter()
                .filter(|(_, is_marked)| *is_marked)
                .map(|(text, _)| text.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!((marked(&rows[1]), marked(&rows[2])), (vec!["1".to_owned()], vec!["22".to_owned()]));
        let other = super::rows("@@ -1 +1 @@\n-alpha\n+something else\n");
        assert!(other.iter().all(|row| marked(row).is_empty()), "a line with nothing in common has no marks");
    }

    /// S8.20
    #[test]
    fn what_is_left_out_is_counted() {
        let diff: String = (0..50).map(|number| format!("+{number}\n")).collect();
        let rows = rows(&format!("@@ -0,0 +1,50 @@\n{diff}"));
        let shown = plain(&rows, 10);
        assert_eq!(shown.lines().count(), 11);
        assert!(shown.contains("… 41 lines are NOT SHOWN HERE …") && shown.ends_with("50 +49"), "{shown}");
    }

    #[test]
    fn the_ends_of_lines_are_shown_only_where_they_differ() {
        let same = rows("@@ -1 +1 @@\n-one\r\n+two\r\n");
        assert_eq!(same[2].text(), "two");
        let other = rows("@@ -1 +1 @@\n-one\r\n+one\n");
        assert_eq!((other[1].text().as_str(), other[2].text().as_str()), ("one\\u{d}", "one"));
    }
}
