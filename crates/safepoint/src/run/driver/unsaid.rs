//! What is left to be shown of an answer, where readers saw a part of it before: a call whose work is the run's shows what
//! it says as it comes, and the model's place repeats it as the answer.

use std::borrow::Cow;

/// The part of an answer that readers have not been shown: all of it, on a line of its own, where it is another than what
/// they saw.
pub(super) fn unsaid<'t>(said: &str, text: &'t str) -> Option<Cow<'t, str>> {
    if said.is_empty() {
        return Some(text).filter(|text| !text.is_empty()).map(Cow::Borrowed);
    }
    match text.strip_prefix(said) {
        Some("") => None,
        Some(rest) => Some(Cow::Borrowed(rest)),
        // They were shown it anew, behind what was taken back.
        None if said.strip_suffix(text).is_some_and(|before| before.ends_with('\n')) => None,
        None => Some(Cow::Owned(format!("\n{text}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S10.42: nobody is shown twice what they were shown, also where it was begun anew behind what was taken back.
    #[test]
    fn what_was_shown_is_not_shown_again() {
        let unsaid = |said: &str| unsaid(said, "all of it");
        assert_eq!(unsaid("").as_deref(), Some("all of it"));
        assert_eq!(unsaid("all ").as_deref(), Some("of it"));
        assert_eq!(unsaid("all of it"), None);
        assert_eq!(unsaid("nothing\nall of it"), None);
        assert_eq!(unsaid("not all of it").as_deref(), Some("\nall of it"));
    }
}
