//! A text in rows of a width: where each of its letters stands.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::draft::Folds;
use crate::output;

/// The rows of a text, and where each cluster begins in them.
pub(super) struct Layout {
    rows: Vec<String>,
    /// Byte, column and row of each cluster, in order.
    places: Vec<(usize, usize, usize)>,
    /// Column and row behind the last one.
    end: (usize, usize),
    bytes: usize,
    width: usize,
}

impl Layout {
    pub(super) fn of(text: &str, folds: &Folds, width: usize) -> Self {
        let (mut rows, mut places) = (vec![String::new()], Vec::new());
        let mut column = 0;
        for (index, cluster) in text.grapheme_indices(true) {
            if cluster.ends_with('\n') {
                places.push((index, column, rows.len() - 1));
                rows.push(String::new());
                column = 0;
                continue;
            }
            let shown = shown(cluster, folds);
            let wide = shown.width();
            if column + wide > width && column > 0 {
                rows.push(String::new());
                column = 0;
            }
            places.push((index, column, rows.len() - 1));
            if let Some(row) = rows.last_mut() {
                row.push_str(&shown);
            }
            column += wide;
        }
        let end = (column, rows.len() - 1);
        Self { rows, places, end, bytes: text.len(), width }
    }

    /// The rows, and column and row of the cursor. Behind a full row it stands on the next one.
    pub(super) fn rows(mut self, cursor: usize) -> (Vec<String>, (usize, usize)) {
        let place = self.place(cursor);
        if place.1 == self.rows.len() {
            self.rows.push(String::new());
        }
        (self.rows, place)
    }

    /// Column and row of a byte.
    pub(super) fn place(&self, cursor: usize) -> (usize, usize) {
        let at = self.places.partition_point(|(byte, ..)| *byte < cursor);
        match self.places.get(at) {
            Some((_, column, row)) => (*column, *row),
            None if self.end.0 >= self.width => (0, self.end.1 + 1),
            None => self.end,
        }
    }

    /// The byte in this row that is nearest to a column, from the left; none where there is no such row.
    pub(super) fn nearest(&self, row: usize, column: usize) -> Option<usize> {
        let end = self.place(self.bytes);
        let mut all = self.places.iter().copied().chain([(self.bytes, end.0, end.1)]);
        all.rfind(|(_, at, of)| *of == row && *at <= column).map(|(byte, ..)| byte)
    }
}

/// What would reverse what is read is shown as what it is, and a piece as its word.
fn shown(cluster: &str, folds: &Folds) -> String {
    let mut shown = String::with_capacity(cluster.len());
    let mut rest = cluster;
    if let Some(first) = cluster.chars().next()
        && let Some(label) = folds.label(first)
    {
        shown.push_str(label);
        rest = &cluster[first.len_utf8()..];
    }
    match rest {
        "\t" => shown.push_str("    "),
        rest => shown.push_str(&output::plain(rest)),
    }
    shown
}
