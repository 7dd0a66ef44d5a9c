//! Rules about words: what may not be written, and what has another name here.

use crate::source::File;

use super::Fault;

/// What ends a check instead of meeting it.
const HATCHES: [(&str, &str); 8] = [
    ("#[ignore", "repair the test or delete it"),
    ("#[should_panic", "assert on the panic's cause"),
    ("#[allow(", "use #[expect(…, reason = \"…\")]"),
    ("#![allow(", "use #[expect(…, reason = \"…\")] where it is needed"),
    ("todo!(", "finish it"),
    ("unimplemented!(", "finish it"),
    ("dbg!(", "take it out"),
    ("mem::forget(", "say who owns it"),
];

/// Words of others for what the glossary names otherwise.
const FOREIGN: [&str; 4] = ["cancel", "abort", "interrupt", "kill"];

/// Words of the receipt's contract: a process is killed, an approval is cancelled, a message or a turn is interrupted. And
/// tokio's names for the end of a task.
const OURS: [&str; 7] = [
    "Killed",
    "approvals_cancelled",
    "INTERRUPTED",
    "Interrupted",
    "AbortHandle",
    "abort_handle()",
    "task.abort()",
];

/// Where the glossary is law; wire words stay in adapters.
const ENGINE: [&str; 2] = ["crates/safepoint/src/", "crates/safepoint-scope/src/"];

pub(super) fn has_no_escape_hatch(file: &File) -> Vec<Fault> {
    if file.is_wrong_on_purpose() {
        return Vec::new();
    }
    let found = |(number, code): (usize, &str)| {
        let (hatch, fix) = HATCHES.iter().find(|(hatch, _)| code.contains(hatch))?;
        Some(Fault::new(number, format!("`{hatch}`: {fix}")))
    };
    file.code().filter_map(found).collect()
}

pub(super) fn owes_nothing_unnamed(file: &File) -> Vec<Fault> {
    const MARKS: [&str; 2] = ["TODO", "FIXME"];
    if !file.is_rust() || file.path.starts_with("xtask/src/tidy/") {
        return Vec::new();
    }
    let owes = |line: &str| MARKS.iter().any(|word| line.contains(word)) && !line.contains("(#");
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| owes(line))
        .map(|(index, _)| Fault::new(index + 1, "name the issue, as in `TODO(#12)`, or do it"))
        .collect()
}

pub(super) fn keeps_the_glossary(file: &File) -> Vec<Fault> {
    if !file.lies_in(&ENGINE) || file.is_test() {
        return Vec::new();
    }
    let found = |(number, line): (usize, &str)| {
        let code = OURS.iter().fold(line.to_owned(), |code, ours| code.replace(ours, "")).to_lowercase();
        let word = FOREIGN.iter().find(|word| code.contains(**word))?;
        Some(Fault::new(number, format!("`{word}` is a foreign word here; docs/glossary.md has ours")))
    };
    file.product_code().filter_map(found).collect()
}

/// The libraries: programs other than our command line use them.
const LIBRARIES: [&str; 12] = [
    "crates/safepoint/src/",
    "crates/safepoint-http/src/",
    "crates/safepoint-macros/src/",
    "crates/safepoint-model/src/",
    "crates/safepoint-nodes/src/",
    "crates/safepoint-scope/src/",
    "crates/safepoint-models/src/",
    "crates/safepoint-snapshot/src/",
    "crates/safepoint-stores/src/",
    "crates/safepoint-remote/src/",
    "crates/safepoint-sandbox/src/",
    "crates/safepoint-tools/src/",
];

/// A library's text is true in every program: it names no flag of one. A command's argument is a separate
/// string.
pub(super) fn names_no_flag(file: &File) -> Vec<Fault> {
    if !file.lies_in(&LIBRARIES) || file.path.contains("/src/bin/") || file.is_test() {
        return Vec::new();
    }
    let is_prose = |line: &str| !line.trim_start().starts_with("//");
    let names = |line: &str| {
        line.match_indices("--").any(|(at, dashes)| {
            let before = line[..at].chars().next_back();
            let after = line[at + dashes.len()..].chars().next();
            matches!(before, Some(' ' | '(' | '`')) && after.is_some_and(|c| c.is_ascii_lowercase())
        })
    };
    file.product()
        .filter(|(_, line)| is_prose(line) && names(line))
        .map(|(number, _)| {
            Fault::new(number, "a flag of the command line: name the setting; the command line adds its flag")
        })
        .collect()
}

pub(super) fn names_no_machine(file: &File) -> Vec<Fault> {
    // Built from parts, so that this file does not break its own rule.
    let homes = ["work", "root", "Users", "home"].map(|folder| format!("/{folder}/"));
    let opens = |line: &str, at: usize| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '*' | '}'))
    };
    let names = |line: &str| {
        homes.iter().any(|home| line.match_indices(home.as_str()).any(|(at, _)| opens(line, at)))
    };
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| names(line))
        .map(|(index, _)| Fault::new(index + 1, "an absolute path of one machine: make it relative"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    #[test]
    fn escape_hatches_are_found_in_tests_too() {
        let text = "#[cfg(test)]\nmod tests {\n    #[ignore]\n    fn a() { dbg!(1); }\n}\n";
        assert_eq!(broken(has_no_escape_hatch, "a.rs", text), [3, 4]);
        assert_eq!(broken(has_no_escape_hatch, "a.rs", "#![allow(dead_code)]\n"), [1]);
        assert!(broken(has_no_escape_hatch, "a.rs", "// #[ignore]\nsay(\"todo!()\");\n").is_empty());
    }

    #[test]
    fn what_is_left_to_do_names_its_issue() {
        assert_eq!(broken(owes_nothing_unnamed, "a.rs", "// TODO: more\n"), [1]);
        assert!(broken(owes_nothing_unnamed, "a.rs", "// TODO(#12): more\n").is_empty());
    }

    #[test]
    fn foreign_words_are_found_in_the_engine_s_code() {
        let engine = "crates/safepoint/src/a.rs";
        assert_eq!(broken(keeps_the_glossary, engine, "fn cancel() {}\n"), [1]);
        assert!(
            broken(keeps_the_glossary, engine, "/// cancel\nsay(\"cancel\");\nState::Killed\n").is_empty()
        );
        assert!(
            broken(keeps_the_glossary, "crates/safepoint-models/src/a.rs", "fn cancel() {}\n").is_empty()
        );
    }

    #[test]
    fn a_flag_in_a_library_s_words_is_found() {
        let library = "crates/safepoint-models/src/a.rs";
        let text =
            "say(\"give it more (--window)\");\nsay(\"use --model\");\nrun(\"--version\");\n// see --help\n";
        assert_eq!(broken(names_no_flag, library, text), [1, 2]);
        assert!(broken(names_no_flag, "crates/safepoint-cli/src/a.rs", text).is_empty());
    }

    #[test]
    fn a_machine_s_path_is_found() {
        assert_eq!(broken(names_no_machine, "a.md", &format!("x\nsee /{}/me/.cargo", "home")), [2]);
        assert!(broken(names_no_machine, "a.md", &format!("a/{}/b and ../{}/c", "work", "root")).is_empty());
    }
}
