//! What a test cannot try on this machine: it is said, so that no test passes without a word.

use std::{fmt::Display, io::Write as _, thread};

/// Prints on a separate line that the calling test, or a part of it, is not run here, and why. libtest hides
/// the output of passing tests; this line bypasses that.
pub fn skipped(why: impl Display) {
    let line = line(thread::current().name(), &why);
    // The line before it may not be at its end: with one thread libtest names each test before it runs.
    let said = std::io::stderr().lock().write_all(format!("\n{line}\n").as_bytes());
    if let Err(error) = said {
        eprintln!("{line} ({error})");
    }
}

fn line(test: Option<&str>, why: &impl Display) -> String {
    format!("SKIPPED {}: {why}", test.unwrap_or("a part of a test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_skipped_and_why() {
        assert_eq!(line(Some("a::b"), &"no disk"), "SKIPPED a::b: no disk");
        assert_eq!(line(None, &"no disk"), "SKIPPED a part of a test: no disk");
    }
}
