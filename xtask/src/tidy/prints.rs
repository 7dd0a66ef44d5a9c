//! A rule about what a terminal sees: one place of the command line writes to it, and makes harmless what it writes.

use crate::source::File;

use super::Fault;

/// The one place for prints; the guard of commands and the helper that confines them, which have no other output and print
/// only about themselves; the end of a
/// program whose `main` returns an outcome; and what is no part of the product.
const PRINTS: [&str; 11] = [
    "crates/safepoint-cli/src/output.rs",
    "crates/safepoint-tools/src/process/guard.rs",
    "crates/safepoint-sandbox/src/helper.rs",
    "crates/safepoint-tools/src/bin/",
    "crates/safepoint/src/run/outcome/program.rs",
    "crates/safepoint/src/session/machine/explored.rs",
    "crates/safepoint-testkit/",
    "crates/safepoint-fleet/",
    "crates/safepoint-stop-test/",
    "crates/safepoint-bench/",
    "xtask/",
];

/// The ways to an output: macros, its handles by whatever path, a child that has ours, and what clap writes by itself.
const WAYS: [&str; 12] = [
    "print!(",
    "println!(",
    "eprint!(",
    "eprintln!(",
    "stdout()",
    "stderr()",
    "io::stdout",
    "io::stderr",
    "Stdio::inherit",
    "print_help(",
    "print_long_help(",
    "::parse_from(",
];

/// Nothing writes to stdout or stderr but through `output`.
pub(super) fn prints_only_where_it_may(file: &File) -> Vec<Fault> {
    if file.is_test() || file.lies_in(&PRINTS) {
        return Vec::new();
    }
    let found = |(number, code): (usize, &str)| {
        let way = WAYS.iter().find(|way| stands_alone(code, way))?;
        Some(Fault::new(number, format!("`{way}`: write through crates/safepoint-cli/src/output.rs")))
    };
    file.product_code().filter_map(found).collect()
}

/// Whether the line says it, and not as the end of another word or as a method.
fn stands_alone(code: &str, way: &str) -> bool {
    code.match_indices(way).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        way.starts_with(':') || !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    const CLI: &str = "crates/safepoint-cli/src/a.rs";

    #[test]
    fn a_way_around_the_one_place_is_found() {
        let ways = "println!();\neprint!(x);\nlet mut out = std::io::stdout().lock();\nuse std::io::stderr;\n\
                    write!(stderr(), x);\n.stdout(Stdio::inherit())\ntokio::io::stdout();\nCli::parse_from(x);\n";
        assert_eq!(broken(prints_only_where_it_may, CLI, ways), [1, 2, 3, 4, 5, 6, 7, 8]);
        let fine = "output::say(x)?;\n// println!()\nlet a = \"println!()\";\nprocess.take_stdout();\n\
                    command.stdout(Stdio::piped());\nchild.stdout.take();\nCli::try_parse_from(x);\n";
        assert!(broken(prints_only_where_it_may, CLI, fine).is_empty());
        assert!(broken(prints_only_where_it_may, "crates/safepoint-cli/src/output.rs", ways).is_empty());
        assert!(broken(prints_only_where_it_may, "crates/safepoint-cli/tests/a.rs", ways).is_empty());
        assert_eq!(broken(prints_only_where_it_may, "crates/safepoint/src/a.rs", "print!(x);\n"), [1]);
    }
}
