//! What a session may be called.
//!
//! A name is not a path. In a store it is a value. In the name of a socket's file every character of it that is
//! no plain letter is written as its number. So `..`, `/x` and `a/b` are valid names.
//!
//! **Invariants**: an existing session is found by its name, whatever that name is.

use crate::{
    exit::Usage,
    visible::{hides, one_line},
};

/// The most characters of a name; people cannot tell longer names apart.
const LONGEST: usize = 128;
/// How many characters an error shows of a text that is no valid name.
const SHOWN: usize = 60;

/// Reads the name of a session that exists or will be created: all of it is visible.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    if is_seen(text) { Ok(text.to_owned()) } else { Err(rule()) }
}

/// Checks whether a session could have been created under this name; for a session that does not exist.
///
/// # Errors
/// If not: it says what a name may be.
pub(crate) fn check(name: &str) -> Result<(), Usage> {
    let is_plain = name.trim() == name && !name.starts_with('-') && name.chars().count() <= LONGEST;
    if is_plain && is_seen(name) {
        return Ok(());
    }
    Err(Usage(format!("`{}` names no session: {}", one_line(name, SHOWN), rule())))
}

/// Whether it is not blank, and all of it is seen.
fn is_seen(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(hides)
}

fn rule() -> String {
    format!(
        "a name has 1 to {LONGEST} characters, all of which are seen, no blank at either end, and no `-` at its beginning"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11.6
    #[test]
    fn a_name_is_seen_and_can_be_written_again() {
        for name in ["s", "My trip", "..", "/x", "a/b", "grüße", "漢字", &"ü".repeat(128)] {
            assert!(check(name).is_ok() && parse(name).is_ok(), "{name}");
        }
        for name in ["", " ", " a", "a ", "-a", &"n".repeat(129), "a\u{200b}", "a\nb", "a\u{a0}", "\u{202e}"]
        {
            let why = check(name).unwrap_err().to_string();
            assert!(why.contains("1 to 128 characters") && !why.contains(hides), "{why}");
        }
        // They may be there from before.
        assert!(parse(" a").is_ok() && parse(&"n".repeat(129)).is_ok() && parse("a\u{200b}").is_err());
    }
}
