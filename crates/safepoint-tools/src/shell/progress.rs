//! A command's output as it arrives, reported as text: whole characters, and not more than a person would read.

use safepoint::ToolContext;

use crate::limits;

/// Tells a call's progress.
pub(super) struct Progress {
    cx: ToolContext,
    text: Decoder,
    left: usize,
}

impl Progress {
    pub(super) fn new(cx: ToolContext) -> Self {
        Self { cx, text: Decoder::default(), left: limits::PROGRESS_BYTES }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        if self.left == 0 {
            return;
        }
        let mut text = self.text.push(&chunk[..chunk.len().min(self.left)]);
        self.left -= chunk.len().min(self.left);
        if self.left == 0 {
            text.push_str("\n[more is written, but not shown while it runs]\n");
        }
        if !text.is_empty() {
            self.cx.progress(text);
        }
    }
}

/// Text from chunks that may end within a character.
#[derive(Default)]
struct Decoder {
    held: Vec<u8>,
}

impl Decoder {
    fn push(&mut self, chunk: &[u8]) -> String {
        self.held.extend_from_slice(chunk);
        let keep = match std::str::from_utf8(&self.held) {
            Err(error) if error.error_len().is_none() => self.held.len() - error.valid_up_to(),
            _ => 0,
        };
        let rest = self.held.split_off(self.held.len() - keep);
        let text = String::from_utf8_lossy(&self.held).into_owned();
        self.held = rest;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_cut_between_chunks_is_put_together() {
        let mut decoder = Decoder::default();
        let bytes = "aä€b".as_bytes();
        let reported: String = bytes.chunks(1).map(|chunk| decoder.push(chunk)).collect();
        assert_eq!(reported, "aä€b");
    }

    #[test]
    fn what_is_no_text_is_not_held_back() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"a\xffb"), "a\u{fffd}b");
    }
}
