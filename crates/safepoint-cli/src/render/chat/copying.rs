//! `/copy`: the last answer in the clipboard of the terminal.
//!
//! **Invariants**: the terminal is only ever given a text, encoded, and is never asked for what its clipboard has.

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::state::{State, Tone};
use crate::output::Drawn;

/// The most bytes that go into a clipboard: what the least of the terminals that know this takes.
const MOST: usize = 74_000;

/// The last answer, and what is on its way to the clipboard.
#[derive(Debug, Default)]
pub(crate) struct Copying {
    answer: String,
    due: Option<String>,
}

impl State {
    /// The model has answered with this text.
    pub(crate) fn answered(&mut self, text: &str) {
        if !text.trim().is_empty() {
            text.clone_into(&mut self.copying.answer);
        }
    }

    /// `/copy`.
    pub(super) fn copy(&mut self) {
        let answer = &self.copying.answer;
        let said = match answer.len() {
            0 => "there is no answer to copy yet".to_owned(),
            1..=MOST => {
                self.copying.due = Some(answer.clone());
                let lines = answer.lines().count();
                let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
                format!(
                    "the last answer ({lines}) was sent to the clipboard of the terminal, if it takes it (OSC 52)"
                )
            }
            bytes => format!(
                "the last answer has {bytes} bytes, and {MOST} are the most; /export writes it to a file"
            ),
        };
        self.tell(Tone::Aside, &said);
    }

    /// What the terminal is to be sent for it.
    pub(super) fn take_copy(&mut self) -> Option<Drawn> {
        let text = self.copying.due.take()?;
        let mut drawn = Drawn::default();
        drawn.mark(format_args!("\x1b]52;c;{}\x1b\\", BASE64_STANDARD.encode(text)));
        Some(drawn)
    }
}
