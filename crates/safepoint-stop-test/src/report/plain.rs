//! A text of a target, for a terminal.

/// `text` in one line. A letter that a terminal would obey, or that turns what is read around, stands there as its number.
pub(crate) fn plain(text: &str) -> String {
    let written = |letter: char| match letter {
        '\n' | '\r' | '\t' => ' '.to_string(),
        letter if is_obeyed(letter) => letter.escape_unicode().to_string(),
        letter => letter.to_string(),
    };
    text.chars().map(written).collect()
}

/// Whether it is more than what it shows.
pub(crate) fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
