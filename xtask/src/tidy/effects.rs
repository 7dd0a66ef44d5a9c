//! Rules about effects: where one may select, spawn, and start a process.

use crate::source::File;

use super::Fault;

/// The files that may wait for several things at once.
const SELECTS: [&str; 11] = [
    "crates/safepoint-scope/",
    "crates/safepoint/src/run/driver",
    "crates/safepoint/src/session",
    "crates/safepoint-tools/src/process/",
    "crates/safepoint-remote/src/acp/process",
    "crates/safepoint-testkit/",
    "crates/safepoint-fleet/",
    "crates/safepoint-stop-test/",
    "crates/safepoint-cli/",
    "crates/safepoint-bench/",
    "xtask/",
];

/// The files that may spawn without a scope: the scope itself, and what is no library.
const SPAWNS: [&str; 9] = [
    "crates/safepoint-scope/src/",
    "crates/safepoint-tools/src/process/",
    "crates/safepoint-testkit/",
    "crates/safepoint-fleet/",
    "crates/safepoint-stop-test/",
    "crates/safepoint-loom/",
    "crates/safepoint-cli/",
    "crates/safepoint-bench/",
    "xtask/",
];

/// The files that may start a process.
const COMMANDS: [&str; 7] = [
    "crates/safepoint-tools/src/process/",
    // It starts none: it becomes one.
    "crates/safepoint-sandbox/src/helper.rs",
    "crates/safepoint-testkit/",
    "crates/safepoint-stop-test/",
    "crates/safepoint-cli/",
    "crates/safepoint-bench/",
    "xtask/",
];

/// The files that may look past a poisoned lock or catch a panic: in the engine and the scope, the files that
/// do it for all.
const LOCKS: [&str; 4] = [
    "crates/safepoint/src/sync/",
    "crates/safepoint-scope/src/sync.rs",
    "crates/safepoint-scope/src/scope/task.rs",
    "crates/safepoint-scope/src/scope/tracker.rs",
];

/// Where [`LOCKS`] holds.
const LOCKED: [&str; 2] = ["crates/safepoint/src/", "crates/safepoint-scope/src/"];

/// `select!` stands in few places, and always polls in the order written.
pub(super) fn selects_only_where_it_may(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, line) in file.code() {
        let Some((_, rest)) = line.split_once("select!") else { continue };
        if !file.is_test() && !file.lies_in(&SELECTS) {
            faults.push(Fault::new(number, "select only in the places that CONTRIBUTING.md names"));
        }
        let after = file.code().skip(number).map(|(_, line)| line.trim()).find(|line| !line.is_empty());
        let is_biased = rest.contains("biased;") || after.is_some_and(|line| line.starts_with("biased;"));
        if !is_biased {
            faults.push(Fault::new(number, "open it with `biased;`, and say what each losing branch loses"));
        }
    }
    faults
}

pub(super) fn spawns_only_where_it_may(file: &File) -> Vec<Fault> {
    const WAYS: [&str; 6] =
        ["tokio::spawn(", "task::spawn(", "spawn_local(", "spawn_blocking(", "thread::spawn(", ".abort()"];
    const SCOPED: [&str; 3] = ["scope.spawn", "run.spawn", "scope().spawn"];
    let spawns = |code: &str| {
        WAYS.iter().any(|way| code.contains(way)) && !SCOPED.iter().any(|way| code.contains(way))
    };
    outside(file, &SPAWNS, spawns, "spawn through a scope, so that quiet waits for it")
}

pub(super) fn starts_processes_only_where_it_may(file: &File) -> Vec<Fault> {
    outside(file, &COMMANDS, |code| code.contains("Command::new("), "start it under `tools/process`")
}

pub(super) fn locks_only_where_it_may(file: &File) -> Vec<Fault> {
    let looks_past = |code: &str| code.contains("PoisonError") || code.contains("catch_unwind");
    if file.lies_in(&LOCKED) {
        outside(file, &LOCKS, looks_past, "lock and catch through `sync`, which says once why that is sound")
    } else {
        Vec::new()
    }
}

/// The code with which a program ends is decided in one file of the command line. A program of another crate argues in
/// a comment just above that begins with `Exit:` why it ends there.
pub(super) fn exits_only_where_it_may(file: &File) -> Vec<Fault> {
    const EXIT: &str = "crates/safepoint-cli/src/exit.rs";
    let exits = |code: &str| {
        code.contains("process::exit")
            || code.contains("ExitCode::from")
            || code.contains("process::{") && code.contains("exit")
    };
    let lines: Vec<&str> = file.text.lines().collect();
    let is_argued = |number: usize| {
        let above = lines[..number - 1].iter().rev().map(|line| line.trim());
        above.take_while(|line| line.starts_with("//")).any(|line| line.starts_with("// Exit:"))
    };
    let mut faults =
        outside(file, &[EXIT], exits, "end through `exit.rs`, or say above why here: `// Exit: …`");
    faults.retain(|fault| !is_argued(fault.line));
    faults
}

fn outside(file: &File, places: &[&str], does: impl Fn(&str) -> bool, fix: &str) -> Vec<Fault> {
    if file.is_test() || file.lies_in(places) {
        return Vec::new();
    }
    file.product_code().filter(|(_, code)| does(code)).map(|(number, _)| Fault::new(number, fix)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    const ENGINE: &str = "crates/safepoint/src/a.rs";

    #[test]
    fn a_select_stands_where_it_may_and_is_biased() {
        let biased = "tokio::select! {\n    // why\n    biased;\n}\n";
        assert!(broken(selects_only_where_it_may, "crates/safepoint-scope/src/a.rs", biased).is_empty());
        assert_eq!(broken(selects_only_where_it_may, ENGINE, biased), [1]);
        assert_eq!(
            broken(selects_only_where_it_may, "crates/x/tests/a.rs", "select! {\n    a => b,\n}\n"),
            [1]
        );
    }

    #[test]
    fn a_bare_spawn_is_found() {
        assert_eq!(broken(spawns_only_where_it_may, ENGINE, "\ntokio::spawn(x);\nhandle.abort();\n"), [2, 3]);
        assert_eq!(broken(spawns_only_where_it_may, ENGINE, "task::spawn(x);\n"), [1]);
        assert!(broken(spawns_only_where_it_may, ENGINE, "scope.spawn(x);\n").is_empty());
        assert!(
            broken(spawns_only_where_it_may, "crates/safepoint/tests/a.rs", "tokio::spawn(x);\n").is_empty()
        );
    }

    #[test]
    fn a_separate_lock_or_catch_is_found() {
        assert_eq!(
            broken(locks_only_where_it_may, ENGINE, "a.unwrap_or_else(PoisonError::into_inner);\n"),
            [1]
        );
        assert_eq!(broken(locks_only_where_it_may, ENGINE, "catch_unwind(a);\n"), [1]);
        let sync = "crates/safepoint/src/sync/mutex.rs";
        assert!(broken(locks_only_where_it_may, sync, "catch_unwind(a);\n").is_empty());
    }

    #[test]
    fn an_exit_that_nothing_argues_is_found() {
        let exit = "fn a() {\n    std::process::exit(1)\n}\nfn b() -> ExitCode {\n    ExitCode::from(2)\n}\n";
        assert_eq!(broken(exits_only_where_it_may, ENGINE, exit), [2, 5]);
        assert_eq!(broken(exits_only_where_it_may, ENGINE, "use std::process::{exit, id};\n"), [1]);
        assert!(broken(exits_only_where_it_may, "crates/safepoint-cli/src/exit.rs", exit).is_empty());
        let argued =
            "fn a() {\n    // Exit: a child that was forked\n    // has no main.\n    process::exit(1)\n}\n";
        assert!(broken(exits_only_where_it_may, ENGINE, argued).is_empty());
        let other = "fn a() {\n    // why\n    process::exit(1)\n}\n";
        assert_eq!(broken(exits_only_where_it_may, ENGINE, other), [3]);
    }

    #[test]
    fn a_bare_process_is_found() {
        assert_eq!(broken(starts_processes_only_where_it_may, ENGINE, "Command::new(\"sh\");\n"), [1]);
        let tool = "crates/safepoint-tools/src/process/a.rs";
        assert!(broken(starts_processes_only_where_it_may, tool, "Command::new(\"sh\");\n").is_empty());
    }
}
