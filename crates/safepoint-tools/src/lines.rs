//! Lines that a process writes, each bounded: for protocols that are a message a line.
//!
//! **Invariants** Memory does not grow beyond one line of the limit, whatever is written. Of a longer line it is still
//! known which question it answers, so that one answer that is too large ends its own call and nothing else.

use std::mem;

use safepoint::raw::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::unix::pipe::Receiver,
};

use crate::limits;

mod scan;

#[cfg(feature = "mcp")]
pub(crate) use scan::JsonPlace;
pub use scan::Scan;

/// What a process writes, line by line.
#[derive(Debug)]
pub struct Lines {
    read: BufReader<Receiver>,
    limit: usize,
    line: Vec<u8>,
    /// Set while the rest of a line that is too long is passed over.
    too_long: Option<Scan>,
}

/// One line. Exhaustive: it was kept, or it was too long for that.
#[derive(Debug)]
pub enum TextLine {
    /// All of it, without its end.
    Whole(Vec<u8>),
    /// It was longer than the limit, or holds more values than are read, and this was seen of it.
    TooLong(Scan),
}

impl Lines {
    /// Reads lines of no more than `limit` bytes.
    #[must_use]
    pub fn new(pipe: Receiver, limit: usize) -> Self {
        let read = BufReader::with_capacity(limits::CHUNK_BYTES, pipe);
        Self { read, limit, line: Vec::new(), too_long: None }
    }

    /// The next line; none when there is no more. What stands behind the last line's end is no line.
    ///
    /// # Cancel safety
    /// Nothing is lost: ask again.
    pub async fn next(&mut self) -> Option<TextLine> {
        loop {
            let available = self.read.fill_buf().await.ok()?;
            if available.is_empty() {
                return None;
            }
            // Nothing is awaited from here on, so that a read that is dropped has taken nothing.
            let newline = available.iter().position(|byte| *byte == b'\n');
            let part = available[..newline.unwrap_or(available.len())].to_vec();
            self.read.consume(newline.map_or(part.len(), |at| at + 1));
            self.take(&part);
            if newline.is_some() {
                return Some(self.end_of_line());
            }
        }
    }

    fn take(&mut self, part: &[u8]) {
        if let Some(scan) = &mut self.too_long {
            return scan.feed(part);
        }
        if self.line.len() + part.len() <= self.limit {
            return self.line.extend_from_slice(part);
        }
        let mut scan = Scan::of(&mem::take(&mut self.line));
        scan.feed(part);
        self.too_long = Some(scan);
    }

    fn end_of_line(&mut self) -> TextLine {
        match self.too_long.take() {
            Some(scan) => TextLine::TooLong(scan),
            None if json::is_wide(&self.line) => TextLine::TooLong(Scan::of(&mem::take(&mut self.line))),
            None => TextLine::Whole(mem::take(&mut self.line)),
        }
    }
}
