//! Two texts compared line by line: hunks as a unified diff has them, and the text that only some of them make.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

use super::cut;
use crate::limits;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// After this long the rest is compared coarsely: the diff is then longer than it could be, and still right.
const PATIENCE: Duration = Duration::from_millis(400);

/// The lines of two texts, and where they differ.
pub(super) struct LineDiff<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    groups: Vec<Vec<DiffOp>>,
}

impl<'a> LineDiff<'a> {
    pub(super) fn of(old: &'a str, new: &'a str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let deadline = Instant::now() + PATIENCE;
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
        let mut groups = group_diff_ops(ops, CONTEXT);
        groups.retain(|ops| ops.iter().any(|op| op.tag() != DiffTag::Equal));
        Self { old, new, groups }
    }

    /// Each hunk, from its `@@` on.
    pub(super) fn hunks(&self) -> Vec<String> {
        self.groups.iter().map(|ops| self.hunk(ops)).collect()
    }

    fn hunk(&self, ops: &[DiffOp]) -> String {
        let (old, new) = ranges(ops);
        let mut text = format!("@@ -{} +{} @@\n", numbers(&old), numbers(&new));
        for op in ops {
            if op.tag() == DiffTag::Equal {
                lines(&mut text, ' ', &self.old[op.old_range()]);
            } else {
                lines(&mut text, '-', &self.old[op.old_range()]);
                lines(&mut text, '+', &self.new[op.new_range()]);
            }
        }
        text
    }

    /// The old text with these hunks alone, and which bytes of the old text became which bytes of the new one, from the
    /// first of these hunks to the last. None if there are no such hunks.
    pub(super) fn with(&self, accepted: &[usize]) -> Option<(String, Range<usize>, Range<usize>)> {
        let (mut text, mut at, mut spans) = (String::new(), 0, None);
        for (index, ops) in self.groups.iter().enumerate() {
            let (old, new) = ranges(ops);
            text.extend(self.old[at..old.start].iter().copied());
            at = old.end;
            if !accepted.contains(&index) {
                text.extend(self.old[old].iter().copied());
                continue;
            }
            let from = (size(&self.old[..old.start]), text.len());
            text.extend(self.new[new].iter().copied());
            let to = (size(&self.old[..old.end]), text.len());
            let (first, _) = spans.unwrap_or((from, to));
            spans = Some((first, to));
        }
        text.extend(self.old[at..].iter().copied());
        let ((old_from, new_from), (old_to, new_to)) = spans?;
        Some((text, old_from..old_to, new_from..new_to))
    }
}

/// The diff as one text, of at most [`limits::DIFF_BYTES`]: what a tool reports of what it did.
pub(super) fn report(path: &str, before: Option<&str>, after: &str) -> String {
    let path = path.escape_debug();
    let from = if before.is_some() { path.to_string() } else { "/dev/null".to_owned() };
    let mut text = format!("--- {from}\n+++ {path}\n");
    let hunks = LineDiff::of(before.unwrap_or_default(), after).hunks();
    let mut hidden = 0;
    for line in hunks.iter().flat_map(|hunk| hunk.split_inclusive('\n')) {
        let kept = cut(line, limits::DIFF_LINE_BYTES);
        if hidden > 0 || text.len() + kept.len() > limits::DIFF_BYTES {
            hidden += 1;
            continue;
        }
        text.push_str(kept);
        if kept.len() < line.len() {
            text.push_str("…\n");
        }
    }
    if hidden > 0 {
        text.push_str(&format!("… {hidden} more lines\n"));
    }
    text
}

fn ranges(ops: &[DiffOp]) -> (Range<usize>, Range<usize>) {
    let ends = |of: fn(&DiffOp) -> Range<usize>| {
        let (first, last) = (ops.first().map(of), ops.last().map(of));
        first.map_or(0, |first| first.start)..last.map_or(0, |last| last.end)
    };
    (ends(DiffOp::old_range), ends(DiffOp::new_range))
}

/// The first line and how many, as `@@` has them: of none, the line before.
fn numbers(lines: &Range<usize>) -> String {
    let first = if lines.is_empty() { lines.start } else { lines.start + 1 };
    match lines.len() {
        1 => first.to_string(),
        count => format!("{first},{count}"),
    }
}

fn lines(text: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn size(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.len()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbered(count: usize) -> String {
        (1..=count).map(|number| format!("line {number}\n")).collect()
    }

    #[test]
    fn a_diff_has_hunks_with_the_numbers_of_their_lines() {
        let old = numbered(20);
        let new = old.replace("line 2\n", "line two\n").replace("line 18\n", "");
        let text = report("a.txt", Some(&old), &new);
        let expected = "--- a.txt\n+++ a.txt\n@@ -1,5 +1,5 @@\n line 1\n-line 2\n+line two\n line 3\n line 4\n line 5\n\
            @@ -15,6 +15,5 @@\n line 15\n line 16\n line 17\n-line 18\n line 19\n line 20\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_new_file_is_all_added_and_a_missing_newline_is_said() {
        let text = report("new", None, "a\nb");
        assert_eq!(text, "--- /dev/null\n+++ new\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n");
    }

    #[test]
    fn a_report_is_bounded_and_says_how_much_is_left_out() {
        let new = numbered(100_000) + &"x".repeat(1 << 20);
        let text = report("new", None, &new);
        assert!(text.len() < limits::DIFF_BYTES + 64, "{} bytes", text.len());
        assert!(text.ends_with(" more lines\n"), "{:?}", &text[text.len() - 40..]);
    }

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec("[ab]?\n", 0..30).prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn all_hunks_make_the_new_text_and_none_the_old(old in text(), new in text(), some in any::<u32>()) {
            let diff = LineDiff::of(&old, &new);
            let count = diff.hunks().len();
            let all: Vec<usize> = (0..count).collect();
            match diff.with(&all) {
                Some((text, ..)) => prop_assert_eq!(&text, &new),
                None => prop_assert_eq!(&old, &new),
            }
            prop_assert!(diff.with(&[]).is_none());
            let some: Vec<usize> = all.into_iter().filter(|index| some >> (index % 32) & 1 == 1).collect();
            if let Some((text, from, to)) = diff.with(&some) {
                let made = format!("{}{}{}", &old[..from.start], &text[to], &old[from.end..]);
                prop_assert_eq!(made, text, "what is outside of the span is as it was");
            }
        }
    }
}
