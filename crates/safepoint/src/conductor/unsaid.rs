//! What is left to be shown of an answer, where readers saw a part of it before: a call whose work is the run's shows what
//! it says as it comes, and the model's place repeats it as the answer.

/// The part of an answer that readers have not been shown: all of it, on a line of its own, where it is another than what
/// they saw.
pub(super) fn unsaid(said: &str, text: String) -> Option<String> {
    if said.is_empty() {
        return Some(text).filter(|text| !text.is_empty());
    }
    match text.strip_prefix(said) {
        Some("") => None,
        Some(rest) => Some(rest.to_owned()),
        None => Some(format!("\n{text}")),
    }
}
