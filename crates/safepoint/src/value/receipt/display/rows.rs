//! The rows of a receipt: subjects that have a state are padded to one width, which is known once all are there.

use super::line;

/// A longer subject moves its own state to the right, and no other row's.
const WIDEST: usize = 32;

enum RowEntry {
    Row { label: &'static str, subject: String, state: String, detail: String },
    Note(String),
}

pub(super) struct Rows<'a> {
    headline: String,
    entries: Vec<RowEntry>,
    warnings: &'a mut Vec<String>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(headline: String, warnings: &'a mut Vec<String>) -> Self {
        Self { headline, entries: Vec::new(), warnings }
    }

    /// A row. An empty subject or detail takes no column.
    pub(super) fn row(&mut self, label: &'static str, subject: &str, state: &str, detail: &str) {
        let owned = |text| line(text).into_owned();
        let (subject, state, detail) = (owned(subject), owned(state), owned(detail));
        self.entries.push(RowEntry::Row { label, subject, state, detail });
    }

    /// A line below a row, indented by `indent` spaces.
    pub(super) fn note(&mut self, indent: usize, text: &str) {
        self.entries.push(RowEntry::Note(format!("{:indent$}{}", "", line(text))));
    }

    /// A line below all rows; the same one is shown once.
    pub(super) fn warn(&mut self, text: &str) {
        let text = line(text);
        if !self.warnings.iter().any(|warning| *warning == text) {
            self.warnings.push(text.into_owned());
        }
    }

    pub(super) fn warnings(&mut self) -> &mut Vec<String> {
        self.warnings
    }

    /// The text, without a line break at its end.
    pub(super) fn finish(self) -> String {
        let widths = self.entries.iter().filter_map(|entry| match entry {
            RowEntry::Row { subject, .. } => Some(subject.chars().count()),
            RowEntry::Note(_) => None,
        });
        let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
        let mut text = self.headline;
        for entry in self.entries {
            text.push('\n');
            match entry {
                RowEntry::Note(note) => text.push_str(&note),
                RowEntry::Row { label, subject, state, detail } => {
                    text.push_str(&format!("  {label:<9} "));
                    if !subject.is_empty() {
                        text.push_str(&format!("{subject:<width$}  "));
                    }
                    text.push_str(&state);
                    if !detail.is_empty() {
                        text.push_str("  ");
                        text.push_str(&detail);
                    }
                }
            }
        }
        text
    }
}
