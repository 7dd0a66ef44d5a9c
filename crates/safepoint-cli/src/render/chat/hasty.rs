//! Keys that are pressed right after an answer, before the next question can be read.
//!
//! **Invariants**
//! - Such a key answers nothing, and is no text either: a person who answers one question after the other types nothing. Where they
//!   have begun a message after all, its first letters are there.
//! - What decides whether a question can be answered is when it was put, and when something was typed last; an answer is not typed.

use std::time::Instant;

use crossterm::event::KeyCode;

use super::state::State;

/// Whether the last key was an answer, and the letters that came since.
#[derive(Debug, Default)]
pub(crate) struct Hasty {
    is_answering: bool,
    held: String,
}

impl State {
    /// The key that is handled was an answer: it counts as nothing typed, and what stands there now must be readable first.
    pub(super) fn answered_by_key(&mut self, before: Option<Instant>, now: Instant) {
        self.pressed = before;
        if let Some(front) = self.questions.front_mut() {
            front.since = now;
        }
        self.hasty = Hasty { is_answering: true, held: String::new() };
    }

    /// Whether this letter would answer a question that cannot be read yet, and comes right after an answer.
    pub(super) fn is_hasty(&self, letter: char) -> bool {
        let waits = self.deciding.is_some() || !self.questions.is_empty();
        let is_answer = self.answers(letter) || self.decides_hunk(letter);
        self.hasty.is_answering && waits && is_answer && self.input.is_empty()
    }

    /// Keeps the letter, in case it is the first of a message.
    pub(super) fn hold_letter(&mut self, letter: char, before: Option<Instant>) {
        self.pressed = before;
        self.hasty.held.push(letter);
    }

    /// A key is typed: the letters that were kept were the beginning of it.
    pub(super) fn end_haste(&mut self, key: KeyCode) {
        let Hasty { held, .. } = std::mem::take(&mut self.hasty);
        if matches!(key, KeyCode::Char(_)) && !held.is_empty() {
            let at = self.input.cursor();
            self.input.replace(at, at, &held);
        }
    }
}
