//! Rules about files: how they open, how long they are, where they lie.

use crate::source::File;

use super::Fault;

/// Lines of code of a file without its tests.
const PRODUCT: usize = 300;
/// Lines of code of a file of tests.
const TESTS: usize = 600;
/// Lines of code of a module of tests inside a file.
const INLINE: usize = 150;

/// Files that may be longer, and why.
const LONGER: [(&str, &str); 1] = [(
    "crates/safepoint/src/value/event.rs",
    "the list of facts and events is one concept, and long by nature",
)];

pub(super) fn opens_with_its_purpose(file: &File) -> Vec<Fault> {
    let opens = file.text.starts_with("//!") || file.text.starts_with("#![doc");
    if !file.is_rust() || opens || file.is_wrong_on_purpose() {
        return Vec::new();
    }
    vec![Fault::new(1, "open the file with `//!` and one sentence of purpose")]
}

pub(super) fn is_not_too_long(file: &File) -> Vec<Fault> {
    if LONGER.iter().any(|(path, _)| *path == file.path) {
        return Vec::new();
    }
    let bound = if file.is_test() { TESTS } else { PRODUCT };
    let code = counted(file.product_code());
    if code <= bound {
        return Vec::new();
    }
    let what = format!("{code} lines of code, at most {bound}: take a concept out into its own file");
    vec![Fault::new(1, what)]
}

pub(super) fn keeps_inline_tests_short(file: &File) -> Vec<Fault> {
    let first = file.product_lines();
    let code = counted(file.code().skip(first));
    if file.is_test() || code <= INLINE {
        return Vec::new();
    }
    let what = format!("{code} lines of inline tests, at most {INLINE}: move them to `name/tests.rs`");
    vec![Fault::new(first + 1, what)]
}

pub(super) fn has_no_mod_rs(file: &File) -> Vec<Fault> {
    if file.path.ends_with("/mod.rs") {
        vec![Fault::new(1, "use `name.rs` beside `name/`")]
    } else {
        Vec::new()
    }
}

fn counted<'a>(code: impl Iterator<Item = (usize, &'a str)>) -> usize {
    code.filter(|(_, line)| !line.trim().is_empty()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    #[test]
    fn a_file_opens_with_its_purpose() {
        assert_eq!(broken(opens_with_its_purpose, "a.rs", "use x;"), [1]);
        assert!(broken(opens_with_its_purpose, "a.rs", "//! Does.\n").is_empty());
        assert!(broken(opens_with_its_purpose, "a.md", "words").is_empty());
    }

    #[test]
    fn a_long_file_is_found_by_its_code() {
        assert_eq!(broken(is_not_too_long, "a.rs", &"let a = 1;\n".repeat(PRODUCT + 1)), [1]);
        assert!(broken(is_not_too_long, "a.rs", &"// said\n".repeat(PRODUCT + 1)).is_empty());
        assert!(broken(is_not_too_long, "tests/a.rs", &"let a = 1;\n".repeat(TESTS)).is_empty());
    }

    #[test]
    fn inline_tests_are_short_and_do_not_count_as_product() {
        let tests = |lines: usize| {
            format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "let a = 1;\n".repeat(lines))
        };
        assert_eq!(broken(keeps_inline_tests_short, "a.rs", &tests(INLINE)), [2]);
        assert!(broken(keeps_inline_tests_short, "a.rs", &tests(INLINE - 3)).is_empty());
        assert!(broken(is_not_too_long, "a.rs", &tests(PRODUCT)).is_empty());
        let beside = format!("#[cfg(test)]\nmod tests;\n{}", "let a = 1;\n".repeat(PRODUCT));
        assert_eq!(broken(is_not_too_long, "a.rs", &beside), [1], "its own file hides nothing");
    }

    #[test]
    fn a_mod_rs_is_found() {
        assert_eq!(broken(has_no_mod_rs, "a/mod.rs", ""), [1]);
        assert!(broken(has_no_mod_rs, "a/amod.rs", "").is_empty());
    }
}
