//! Pieces that a reader keeps until what they belong to is whole.
//!
//! **Invariants**: what they take is counted as they come, so that a look at it costs the same however many there are.

/// Pieces in their order.
#[derive(Debug, Default)]
pub(crate) struct Citations {
    pieces: Vec<String>,
    bytes: usize,
}

/// What a piece takes beside its own bytes, also once it has become a value: a flood of small ones is bounded as well (S12.4).
const PIECE_BYTES: usize = 2 << 10;

impl Citations {
    pub(crate) fn push(&mut self, piece: &str) {
        self.bytes = self.bytes.saturating_add(piece.len()).saturating_add(PIECE_BYTES);
        self.pieces.push(piece.to_owned());
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn pieces(&self) -> &[String] {
        &self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12.4: a piece counts by what it takes, and not by its bytes alone.
    #[test]
    fn a_small_piece_counts_by_what_it_takes() {
        let mut kept = Citations::default();
        kept.push("{}");
        kept.push("{}");
        assert_eq!((kept.bytes(), kept.pieces().len()), (2 * (2 + PIECE_BYTES), 2));
    }
}
