//! How an argument is read, which says what a `*` of a pattern stands for; `**` is any text.

use super::{
    address,
    pattern::{Pattern, Piece, climbs},
    words,
};

/// How an argument is read, which says what a `*` may stand for. Exhaustive: where a rule asks or denies it is any text;
/// where a rule allows, only what can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Any text.
    Anything,
    /// Words of a command of a shell.
    Words,
    /// A path of the file tools, which no shell reads.
    Path,
    /// An address that is fetched.
    Address,
}

impl Reading {
    /// Whether all of the text is as the pattern says. The time is bounded by the product of both lengths.
    pub(crate) fn fits(self, pattern: &Pattern, text: &str) -> bool {
        if !pattern.pieces.contains(&Piece::One) {
            return pattern.is_like(text, |_| false);
        }
        match self {
            Self::Anything => pattern.is_like(text, |_| true),
            // Who writes `**` has given up what a command or an address is.
            _ if pattern.pieces.contains(&Piece::Two) => pattern.is_like(text, words::is_inert),
            Self::Words => words::fit(&pattern.text, text),
            Self::Path => pattern.is_like(text, |_| true) && climbs(text) <= climbs(&pattern.text),
            Self::Address => address::fit(&pattern.text, text),
        }
    }

    /// What makes it impossible to judge what the stars of a pattern would stand for.
    ///
    /// # Errors
    /// Why, and what to write instead.
    pub(crate) fn check(self, pattern: &Pattern) -> Result<(), String> {
        let is_free = pattern.pieces.contains(&Piece::Two) || !pattern.pieces.contains(&Piece::One);
        match self {
            _ if is_free => Ok(()),
            Self::Words => words::check(&pattern.text),
            Self::Address => address::check(&pattern.text),
            Self::Anything | Self::Path => Ok(()),
        }
    }
}
