//! Tests wait by the one helper: bounded, with a name, and keeping no core busy.

use crate::source::File;

use super::Fault;

/// Tests of what spins, and their reasons.
const SPINS: [(&str, &str); 2] = [
    ("crates/safepoint/tests/engine/contracts.rs", "a blocking tool that polls is what is tested"),
    ("tests/e2e/swallow.rs", "a tool that swallows its stop in a loop is what is tested"),
];

const FIX: &str =
    "wait by `safepoint_testkit::wait`: it ends, says for what it waited, and keeps no core busy";

/// A thread neither sleeps nor spins, and no loop of a test gives way until something is so.
pub(super) fn waits_by_the_helper(file: &File) -> Vec<Fault> {
    if !file.is_test() || SPINS.iter().any(|(path, _)| *path == file.path) {
        return Vec::new();
    }
    let lines: Vec<(usize, &str)> = file.code().collect();
    let is_wait = |place: usize, line: &str| {
        let blocks = line.contains("thread::yield_now(") || line.contains("thread::sleep(");
        blocks || line.contains("yield_now()") && is_in_a_loop(&lines[..place], line)
    };
    let waits = lines.iter().enumerate().filter(|(place, (_, line))| is_wait(*place, line));
    waits.map(|(_, (number, _))| Fault::new(*number, FIX)).collect()
}

/// Whether what encloses this line next is a loop without a count.
fn is_in_a_loop(before: &[(usize, &str)], line: &str) -> bool {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let own = depth(line);
    let opens =
        before.iter().rev().map(|(_, line)| *line).find(|line| !line.trim().is_empty() && depth(line) < own);
    opens.is_some_and(|opens| {
        let opens = opens.trim_start();
        opens.starts_with("while ") || opens.starts_with("loop ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    #[test]
    fn a_test_waits_by_the_helper() {
        let test = "crates/x/tests/a.rs";
        let spins = "async fn a() {\n    while !b() {\n        assert!(c());\n        tokio::task::yield_now().await;\n    }\n}\n";
        assert_eq!(broken(waits_by_the_helper, test, spins), [4]);
        let sleeps = "fn a() {\n    std::thread::sleep(B);\n    std::thread::yield_now();\n}\n";
        assert_eq!(broken(waits_by_the_helper, test, sleeps), [2, 3]);
        let counted =
            "    for _ in 0..3 {\n        tokio::task::yield_now().await;\n    }\n    yield_now().await;\n";
        assert!(broken(waits_by_the_helper, test, counted).is_empty(), "others have their turn, and no more");
        assert!(broken(waits_by_the_helper, "crates/x/src/a.rs", spins).is_empty());
    }
}
