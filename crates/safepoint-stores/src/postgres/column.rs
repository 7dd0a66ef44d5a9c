//! How values stand in columns.

use std::{borrow::Cow, time::Duration};

use jiff::Timestamp;
use safepoint::raw::store::truncate_to_micros;

/// The letter that stands before what a column of text cannot hold, and before itself.
const ESCAPE: char = '\u{1}';

/// The earliest time that a column holds; nothing of a store is older.
const EARLIEST: Timestamp = Timestamp::constant(-180_000_000_000, 0);

/// A text as it is stored: without NUL, and in the same order.
pub(super) fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut stored = String::with_capacity(text.len() + 1);
    for letter in text.chars() {
        match letter {
            '\0' => stored.push_str("\u{1}0"),
            ESCAPE => stored.push_str("\u{1}1"),
            letter => stored.push(letter),
        }
    }
    Cow::Owned(stored)
}

/// The text of which this was stored.
pub(super) fn text(stored: String) -> String {
    if !stored.contains(ESCAPE) {
        return stored;
    }
    let mut text = String::with_capacity(stored.len());
    let mut letters = stored.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == ESCAPE) {
            (letter, false) => text.push(letter),
            (_, true) => match letters.next() {
                Some('0') => text.push('\0'),
                // Only `1` was ever stored.
                Some(_) | None => text.push(ESCAPE),
            },
        }
    }
    text
}

/// A time as it is stored: in microseconds.
pub(super) fn stored_time(at: Timestamp) -> Timestamp {
    /// The last one that is a whole number of them.
    const LATEST: Timestamp = Timestamp::constant(253_402_207_200, 999_999_000);
    truncate_to_micros(at).clamp(EARLIEST, LATEST)
}

/// The time of which this was stored.
pub(super) fn time(stored: Timestamp) -> Timestamp {
    truncate_to_micros(stored)
}

pub(super) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn count(int: i64) -> u64 {
    u64::try_from(int).unwrap_or(0)
}

pub(super) fn small(int: i64) -> u32 {
    u32::try_from(int).unwrap_or(0)
}

pub(super) fn in_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn span(micros: i64) -> Duration {
    Duration::from_micros(count(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7.57: a text with NUL is kept as it is, and stands where it would.
    #[test]
    fn any_text_comes_back_and_keeps_its_place() {
        let mut texts =
            ["", "a", "\0", "\u{1}", "a\0b", "a\u{1}b", "a\u{2}b", "\u{1}0", "\u{1}1", "a\0\0\u{1}", "ü✓"];
        texts.sort_unstable();
        for pair in texts.windows(2) {
            assert!(stored(pair[0]) < stored(pair[1]), "{pair:?}");
        }
        for given in texts {
            assert!(!stored(given).contains('\0'));
            assert_eq!(text(stored(given).into_owned()), given);
        }
    }

    /// S7.11: the times that programs use as bounds can be stored.
    #[test]
    fn the_farthest_times_can_be_stored() {
        assert!(stored_time(Timestamp::MIN) < stored_time(Timestamp::UNIX_EPOCH));
        assert_eq!(time(stored_time(Timestamp::MAX)), truncate_to_micros(Timestamp::MAX));
    }
}
