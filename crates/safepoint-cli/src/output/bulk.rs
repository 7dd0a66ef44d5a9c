//! Many lines for stdout, written in large pieces.

use serde_json::Value;

use super::{Piece, Stream, Unwritten, put_made};

/// Lines that are written together; each is made harmless as a single line is.
#[derive(Debug, Default)]
pub(crate) struct Bulk(Vec<u8>);

impl Bulk {
    /// Adds a line of JSON.
    ///
    /// # Errors
    /// If stdout does not take what is written.
    pub(crate) fn json(&mut self, line: Value) -> Result<(), Unwritten> {
        const ENOUGH: usize = 64 * 1024;
        Piece::Line(line.into()).write_to(&mut self.0, Stream::Out)?;
        if self.0.len() < ENOUGH { Ok(()) } else { self.flush() }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(crate) fn flush(&mut self) -> Result<(), Unwritten> {
        put_made(&std::mem::take(&mut self.0))
    }
}
