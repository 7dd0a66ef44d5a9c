//! Text that must be cut: always between characters.

/// The beginning of a text, at most `most` bytes.
#[must_use]
pub fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The end of a text, at most `most` bytes.
#[must_use]
pub fn tail(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}
