//! The part of an answer that readers have not seen. A call whose work is the run's shows its text as it
//! arrives, and the model's place then repeats the text as the answer.

use std::borrow::Cow;

/// The part of an answer that readers have not seen: all of it, on a separate line, if it differs from what
/// they saw.
pub(super) fn unshown<'t>(said: &str, text: &'t str) -> Option<Cow<'t, str>> {
    if said.is_empty() {
        return Some(text).filter(|text| !text.is_empty()).map(Cow::Borrowed);
    }
    match text.strip_prefix(said) {
        Some("") => None,
        Some(rest) => Some(Cow::Borrowed(rest)),
        // Readers saw the text again, after an earlier version that was retracted.
        None if said.strip_suffix(text).is_some_and(|before| before.ends_with('\n')) => None,
        None => Some(Cow::Owned(format!("\n{text}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S10.42: readers never see the same text twice, even if it was restarted after a retraction.
    #[test]
    fn what_was_shown_is_not_shown_again() {
        let unshown = |said: &str| unshown(said, "all of it");
        assert_eq!(unshown("").as_deref(), Some("all of it"));
        assert_eq!(unshown("all ").as_deref(), Some("of it"));
        assert_eq!(unshown("all of it"), None);
        assert_eq!(unshown("nothing\nall of it"), None);
        assert_eq!(unshown("not all of it").as_deref(), Some("\nall of it"));
    }
}
