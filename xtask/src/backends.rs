//! `backends`: measures what a stop does to each backend, and writes it into docs/backends.md.

use crate::cargo;

/// The tests that measure, by package and test target. Each keeps one section of the document.
const MEASURES: [(&str, &str); 4] = [
    ("safepoint-tests", "backends"),
    ("safepoint-remote", "a2a"),
    ("safepoint-remote", "acp"),
    ("safepoint-remote", "responses"),
];

/// The variable by which the suite writes its table.
pub(crate) const WRITE: &str = "SAFEPOINT_WRITE_BACKENDS";

/// Writes every table.
pub(crate) fn backends() -> anyhow::Result<()> {
    MEASURES.iter().try_for_each(|(package, target)| {
        cargo::run_with(&["test", "-p", package, "--test", target, "the_table_says"], (WRITE, "1"))
    })
}
