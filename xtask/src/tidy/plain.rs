//! A rule about words: those that have a plainer one stand in no comment, no text, no paper and no name.
//!
//! The words are in a file of their own, so that this one holds none of them.

use std::sync::LazyLock;

use crate::source::File;

use super::Fault;

/// One word or phrase a line.
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| include_str!("plain.txt").lines().collect());

/// Where the rule holds. A crate joins when its last such word is gone.
const PLAIN: [&str; 26] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "crates/safepoint/src/",
    "crates/safepoint/tests/engine",
    "crates/safepoint-models/src/",
    "crates/safepoint-remote/src/",
    "crates/safepoint-sandbox/",
    "crates/safepoint-scope/src/",
    "crates/safepoint-snapshot/",
    "crates/safepoint-stores/",
    "crates/safepoint-cli/src/",
    "crates/safepoint-tools/src/",
    "crates/safepoint-golden/src/",
    "crates/safepoint-http/",
    "crates/safepoint-macros/",
    "crates/safepoint-model/src/",
    "crates/safepoint-nodes/",
    "crates/safepoint-testkit/",
    "crates/safepoint-fleet/",
    "crates/safepoint-bench/",
    "crates/safepoint-loom/",
    "tests/",
    "xtask/src/",
    "fuzz/",
];

/// Files with texts of which the bytes are fixed: they are sent to models or servers, stored, or name fields of
/// receipts; and the words themselves.
const FIXED: [&str; 12] = [
    "crates/safepoint/src/session/lost_runs.rs",
    "crates/safepoint/src/run/executor/ending/tests.rs",
    "crates/safepoint-model/src/history/note.rs",
    "crates/safepoint/src/value/receipt/remote.rs",
    "crates/safepoint/src/value/receipt/ruled.rs",
    "crates/safepoint-tools/src/files/read.rs",
    "crates/safepoint-tools/src/mcp/exchange.rs",
    "crates/safepoint-tools/src/shell.rs",
    "xtask/src/peers/a2a/jvm/scenarios.rs",
    // A verdict is called so, as the stop test writes it.
    "xtask/src/peers/stops/kept.rs",
    "xtask/src/peers/stops/page.rs",
    "xtask/src/tidy/plain.txt",
];

/// From as many words on a name is a sentence: that of a test, which clauses are known by.
const SENTENCE: usize = 4;

pub(super) fn is_plain(file: &File) -> Vec<Fault> {
    // A step of a store's schema that has been taken is never edited.
    let is_fixed = file.lies_in(&FIXED) || file.path.ends_with(".sql");
    if !file.lies_in(&PLAIN) || is_fixed {
        return Vec::new();
    }
    let in_prose = file.prose().filter_map(|(number, line)| Some((number, in_text(line)?)));
    let in_code = file.code().filter_map(|(number, line)| Some((number, in_names(line)?)));
    in_prose
        .chain(in_code)
        .map(|(number, word)| Fault::new(number, format!("`{word}`: write it plainer, subject first")))
        .collect()
}

/// The first such word of a text. Names in backquotes are looked at where they are declared.
fn in_text(line: &str) -> Option<&'static str> {
    let unquoted: Vec<&str> = line.split('`').step_by(2).collect();
    let words = words_of(&unquoted.join(" x "));
    WORDS.iter().copied().find(|phrase| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        words.windows(phrase.len()).any(|window| window == phrase)
    })
}

/// The words of a text, in small letters.
fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// The first such word that is a part of a name.
fn in_names(line: &str) -> Option<&'static str> {
    let names = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let parts = names.map(parts_of).filter(|parts| parts.len() < SENTENCE);
    parts.flatten().find_map(|part| WORDS.iter().copied().find(|word| *word == part))
}

/// The words of a name: `read_of`, `ReadOf`.
fn parts_of(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for piece in name.split('_').filter(|piece| !piece.is_empty()) {
        let mut was_small = false;
        parts.push(String::new());
        for c in piece.chars() {
            if c.is_uppercase() && was_small {
                parts.push(String::new());
            }
            was_small = !c.is_uppercase();
            parts.last_mut().expect("one was pushed").extend(c.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    /// The words are made of parts, so that this file does not break its own rule.
    #[test]
    fn a_word_that_has_a_plainer_one_is_found_in_prose_and_names() {
        let (who, ask) = (format!("no{}", "body"), format!("to{}", "ld"));
        let file = "crates/safepoint-models/src/a.rs";
        let text = format!("// {who} is here\nlet {ask}_so = 1;\nsay(\"work goes {}\");\n", "on");
        assert_eq!(broken(is_plain, file, &text), [1, 3, 2]);
        assert!(
            broken(is_plain, file, &format!("// see `{who}`\nfn what_was_{ask}_is_kept() {{}}\n")).is_empty()
        );
        assert_eq!(broken(is_plain, "README.md", &format!("It is {ask}.\n")), [1]);
        assert!(broken(is_plain, "CHANGELOG.md", &format!("It is {ask}.\n")).is_empty());
    }

    #[test]
    fn a_name_is_read_word_by_word() {
        assert_eq!(parts_of("ReadAll_of"), ["read", "all", "of"]);
        assert_eq!(parts_of("HTTP"), ["http"]);
    }
}
