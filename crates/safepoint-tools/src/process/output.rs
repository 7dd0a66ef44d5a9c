//! What a command writes, bounded: head and tail stay in memory, all of it goes to a file once that is not enough.
//!
//! **Invariants**
//! - Memory never grows beyond the budget, whatever is written.
//! - Nothing is dropped silently: what is not in memory is in the file, or a notice says that it is gone.

use std::{collections::VecDeque, path::PathBuf};

mod spill;

use spill::Spill;

use crate::limits;

/// The output of a command, as it arrives.
#[derive(Debug)]
#[must_use = "it keeps nothing by itself"]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    total: u64,
    spill: Spill,
}

/// What was captured, to be shown. Made by [`Capture::captured`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Head and tail as text, with notices where something is missing or is not text.
    pub text: String,
    /// How many bytes the command wrote.
    pub total: u64,
    /// Whether something is missing from `text`.
    pub truncated: bool,
    /// The file that holds all of it, or as much as may be written; none if it was not needed or could not be made.
    pub file: Option<PathBuf>,
}

impl Capture {
    /// Keeps `budget` bytes in memory.
    pub fn new(budget: usize) -> Self {
        Self::spilling_to(budget, std::env::temp_dir())
    }

    /// The same with files below `directory`.
    pub fn spilling_to(budget: usize, directory: impl Into<PathBuf>) -> Self {
        Self::with(budget, Spill::new(directory.into()))
    }

    /// Keeps `budget` bytes in memory, and nothing else anywhere.
    pub(crate) fn in_memory(budget: usize) -> Self {
        Self::with(budget, Spill::unwanted())
    }

    fn with(budget: usize, spill: Spill) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: budget / 2, total: 0, spill }
    }

    /// Takes a chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        let budget = self.half * 2;
        let held = self.head.len() + self.tail.len();
        if self.spill.is_unused() && held + chunk.len() > budget {
            let (front, back) = self.tail.as_slices();
            self.spill.write(&self.head);
            self.spill.write(front);
            self.spill.write(back);
        }
        if !self.spill.is_unused() {
            self.spill.write(chunk);
        }
        self.total += chunk.len() as u64;
        self.keep(chunk);
    }

    fn keep(&mut self, chunk: &[u8]) {
        let (head, rest) = chunk.split_at(chunk.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// How many bytes have arrived.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The text alone.
    #[must_use]
    pub fn text(&self) -> String {
        self.captured().text
    }

    /// The end of the text, to stand behind the report of an end; nothing where nothing was written.
    #[must_use]
    pub fn last_words(&self) -> String {
        let text = self.text();
        let text = text.trim();
        if text.is_empty() {
            return String::new();
        }
        let least = text.len().saturating_sub(limits::QUOTED_BYTES);
        let from = (least..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        format!("; it last wrote: {}", &text[from..])
    }

    /// What there is so far.
    #[must_use]
    pub fn captured(&self) -> Captured {
        let missing = self.total - (self.head.len() + self.tail.len()) as u64;
        let (front, back) = self.tail.as_slices();
        let tail = [front, back].concat();
        let mut text = String::new();
        let whole = if missing == 0 {
            push_text(&mut text, &[self.head.as_slice(), &tail].concat())
        } else {
            let head = push_text(&mut text, without_cut_end(&self.head));
            let file = self.spill.notice();
            text.push_str(&format!("\n[... {missing} bytes are left out here; {file} ...]\n"));
            let tail = push_text(&mut text, without_cut_start(&tail));
            head && tail
        };
        if !whole {
            text.push_str("\n[some bytes were not UTF-8 and are shown as \u{fffd}]");
        }
        Captured { text, total: self.total, truncated: missing > 0, file: self.spill.path().map(Into::into) }
    }
}

/// Appends bytes as text; false if some were not.
fn push_text(text: &mut String, bytes: &[u8]) -> bool {
    let lossy = String::from_utf8_lossy(bytes);
    text.push_str(&lossy);
    matches!(lossy, std::borrow::Cow::Borrowed(_))
}

/// The bytes without a character that only the cut made incomplete.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        // Bytes before it are not text either: then only the last sequence is looked at.
        Err(_) => {
            let start = bytes.iter().rposition(|byte| !is_continuation(*byte)).unwrap_or(0);
            match std::str::from_utf8(&bytes[start..]) {
                Err(error) if error.error_len().is_none() => &bytes[..start],
                _ => bytes,
            }
        }
        Ok(_) => bytes,
    }
}

fn without_cut_start(bytes: &[u8]) -> &[u8] {
    const LONGEST: usize = 3;
    let start = bytes.iter().take(LONGEST).take_while(|byte| is_continuation(**byte)).count();
    &bytes[start..]
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests;
