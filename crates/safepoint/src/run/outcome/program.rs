//! What a program prints whose `main` returns an outcome, and how it ends (S3.1).
//!
//! **Invariants**: a stop is printed as its receipt and never as an error; nothing that a model, a tool or a remote agent
//! said is obeyed by a terminal.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    process::{ExitCode, Termination},
};

use super::{Outcome, RunError, Suspended};
use crate::value::receipt::{Receipt, SideEffect, exit_code};

impl<T> Outcome<T> {
    /// The code with which a program ends for it: see [`Receipt::exit_code`].
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Done(_) => exit_code::DONE,
            Self::Failed(_) => exit_code::FAILED,
            Self::Stopped(_) | Self::Suspended(_) => self.receipt().exit_code(),
        }
    }

    /// What stderr gets; nothing of an answer.
    fn report_text(&self) -> Option<String> {
        match self {
            Self::Done(_) => None,
            Self::Stopped(stopped) => Some(stopped.to_string()),
            Self::Failed(error) => Some(failed(error)),
            Self::Suspended(waiting) => Some(suspended(waiting)),
        }
    }
}

/// Prints the answer's text to stdout, or to stderr the receipt of a stop or a suspension, or what failed and what to do
/// about it. The program ends with [`Outcome::exit_code`]; with 1 if the answer could not be written.
///
/// The receipt is that of the moment when the run settled. Await [`RunHandle::quiet`](crate::RunHandle::quiet) before
/// where the program must not end while something of the run is alive.
impl<T> Termination for Outcome<T> {
    fn report(self) -> ExitCode {
        let written = match self.report_text() {
            None => write(&mut io::stdout().lock(), self.answer().unwrap_or_default()),
            // The code says how the run ended, also where nothing reads the text.
            Some(text) => write(&mut io::stderr().lock(), &text).or(Ok(())),
        };
        let code = if written.is_ok() { self.exit_code() } else { exit_code::FAILED };
        // Exit: the caller's `main` returned this outcome as the end of its program.
        ExitCode::from(code)
    }
}

fn failed(error: &RunError) -> String {
    let mut text = format!("failed: {error}");
    if let Some(hint) = error.hint() {
        text = format!("{text}\n  hint: {hint}");
    }
    let is_in_doubt = |receipt: &Receipt| receipt.calls.iter().any(|call| call.effect == SideEffect::Unknown);
    if is_in_doubt(error.receipt()) { format!("{text}\n{}", error.receipt()) } else { text }
}

fn suspended(waiting: &Suspended) -> String {
    let mut text = waiting.receipt().to_string();
    for approval in waiting.approvals() {
        text = format!("{text}\n  approval  {}  waits for a decision  {}", approval.tool, approval.id);
    }
    text
}

/// Writes the text and ends its line. What goes to no terminal is left as it is.
fn write<W: Write + IsTerminal>(to: &mut W, text: &str) -> io::Result<()> {
    let shown = if to.is_terminal() { harmless(text) } else { text.into() };
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    to.write_all(shown.as_bytes())?;
    to.write_all(end.as_bytes())?;
    to.flush()
}

/// The text with the names of the characters in it that a terminal obeys, or that reverse what is read.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_obeyed(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.10
    #[test]
    fn a_terminal_obeys_nothing_of_an_answer() {
        assert_eq!(harmless("grün\n\tok"), "grün\n\tok");
        assert_eq!(harmless("a\u{1b}[2Jb\r\u{202e}c"), r"a\u{1b}[2Jb\u{d}\u{202e}c");
    }
}
