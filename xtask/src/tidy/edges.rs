//! Which crate may use which, and inside the engine which module may use which.

use crate::source::File;

use super::Fault;

/// What each crate may use of ours. Dev-dependencies are free, save that the rooms of [`APART`] stay strangers.
const CRATES: [(&str, &[&str]); 11] = [
    ("safepoint-scope", &[]),
    // For tests alone, of whatever crate.
    ("safepoint-golden", &[]),
    ("safepoint", &["safepoint-scope"]),
    ("safepoint-models", &["safepoint"]),
    ("safepoint-tools", &["safepoint"]),
    ("safepoint-stores", &["safepoint"]),
    // A peer may be a command: it lives under the guard. A peer may stream events: there is one decoder of them.
    ("safepoint-remote", &["safepoint", "safepoint-models", "safepoint-tools"]),
    ("safepoint-testkit", &["safepoint"]),
    // It has files of the engine and not the engine.
    ("safepoint-loom", &[]),
    // The composition root, and what measures it: only they name concrete models and tools.
    ("safepoint-cli", EVERY),
    ("safepoint-bench", EVERY),
];

const EVERY: &[&str] = &[
    "safepoint-scope",
    "safepoint",
    "safepoint-models",
    "safepoint-tools",
    "safepoint-stores",
    "safepoint-remote",
    "safepoint-testkit",
];

/// They never see each other, not even in tests.
const APART: [&str; 3] = ["safepoint-models", "safepoint-tools", "safepoint-stores"];

/// The engine's modules in reading order: each may use those before it. A new module takes its place here.
const MODULES: &[&str] = &[
    "sync",
    "claim",
    "ids",
    "json",
    "limits",
    "spill",
    "schema",
    "store",
    "usage",
    "message",
    "history",
    "model",
    "window",
    "approval",
    "receipt",
    "tool",
    "secret",
    "remote",
    "event",
    "hook",
    "log",
    "outcome",
    "observe",
    "spans",
    "steer",
    "draft",
    "child",
    "answer",
    "toolset",
    "machine",
    "executor",
    "shared",
    "conductor",
    "agent",
    "run",
    "typed",
    "backend",
    "session",
    "tests",
];

/// Who may know a later one: the conductor conducts a definition, an agent hands out runs.
const KNOWN: [(&str, &str); 3] = [("conductor", "agent"), ("agent", "run"), ("child", "agent")];

pub(super) fn crate_edges(file: &File) -> Vec<Fault> {
    let Some(name) = file.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"))
    else {
        return Vec::new();
    };
    let Some((_, allowed)) = CRATES.iter().find(|(known, _)| *known == name) else {
        return vec![Fault::new(1, "give the new crate its place in xtask/src/tidy/edges.rs")];
    };
    let mut faults = Vec::new();
    for Edge { line, used, is_dev } in edges(&file.text) {
        let strangers = APART.contains(&name) && APART.contains(&used) && name != used;
        if strangers || !(is_dev || allowed.contains(&used)) {
            faults.push(Fault::new(line, format!("{name} may not use {used}")));
        }
    }
    faults
}

struct Edge<'a> {
    line: usize,
    used: &'a str,
    is_dev: bool,
}

/// Our crates that a manifest depends on, in tables of every kind.
fn edges(manifest: &str) -> Vec<Edge<'_>> {
    let mut table = "";
    let mut found = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        let used = match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(header) => {
                table = header;
                header.rsplit_once("dependencies.").map(|(_, used)| used)
            }
            None if table.ends_with("dependencies") => line.split(['.', ' ', '=']).next(),
            None => None,
        };
        if let Some(used) = used.filter(|used| used.starts_with("safepoint")) {
            found.push(Edge { line: index + 1, used, is_dev: table.contains("dev-dependencies") });
        }
    }
    found
}

pub(super) fn module_edges(file: &File) -> Vec<Fault> {
    let Some(path) = file.path.strip_prefix("crates/safepoint/src/").filter(|path| *path != "lib.rs") else {
        return Vec::new();
    };
    let module = path.split(['/', '.']).next().unwrap_or_default();
    let Some(place) = MODULES.iter().position(|known| *known == module) else {
        return vec![Fault::new(1, format!("give `{module}` its place in xtask/src/tidy/edges.rs"))];
    };
    if file.is_test() {
        return Vec::new();
    }
    let comes_later = |used: &str| MODULES.iter().skip(place + 1).any(|later| *later == used);
    used_modules(file)
        .into_iter()
        .filter(|(_, used)| comes_later(used) && !KNOWN.contains(&(module, used)))
        .map(|(line, used)| Fault::new(line, format!("`{module}` comes before `{used}` and may not use it")))
        .collect()
}

/// The first names after each `crate::`, also those of a braced list, each with its line.
fn used_modules(file: &File) -> Vec<(usize, String)> {
    let code: String = file.product_code().flat_map(|(_, line)| [line, "\n"]).collect();
    let mut used = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        let from = at + path.len();
        let rest = &code[from..];
        let offsets = if rest.starts_with('{') { heads(rest) } else { vec![0] };
        for offset in offsets {
            let word: String =
                rest[offset..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            used.push((code[..from + offset].matches('\n').count() + 1, word));
        }
    }
    used
}

/// Where the names of a braced list begin, those inside further braces left out.
fn heads(list: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut is_next = false;
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            _ if is_next && depth == 1 && c.is_ascii_alphabetic() => found.push(at),
            _ => {}
        }
        is_next = depth == 1 && (matches!(c, '{' | ',') || is_next && c.is_whitespace());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    #[test]
    fn a_module_may_not_use_a_later_one() {
        let text = "//! x\nuse crate::{\n    limits::{Limits, run},\n    run::Run,\n};\nfn a() -> crate::agent::Agent;\n";
        assert_eq!(broken(module_edges, "crates/safepoint/src/ids.rs", text), [3, 4, 6]);
        assert_eq!(broken(module_edges, "crates/safepoint/src/ids/a.rs", "use crate::{run::Run};"), [1]);
        assert!(broken(module_edges, "crates/safepoint/src/run.rs", "use crate::ids::RunId;\n").is_empty());
        assert!(broken(module_edges, "crates/safepoint/src/agent.rs", "use crate::run::Run;\n").is_empty());
    }

    #[test]
    fn a_module_without_a_place_is_found() {
        assert_eq!(broken(module_edges, "crates/safepoint/src/novel.rs", "//! x\n"), [1]);
    }

    #[test]
    fn a_crate_may_not_use_a_stranger() {
        let models = "crates/safepoint-models/Cargo.toml";
        let wrong = "[dependencies]\nsafepoint-tools.workspace = true\n[target.x.dependencies]\nsafepoint-cli = \"1\"\n";
        assert_eq!(broken(crate_edges, models, wrong), [2, 4]);
        let dev = "[dev-dependencies]\nsafepoint-testkit.workspace = true\nsafepoint-tools = \"1\"\n";
        assert_eq!(broken(crate_edges, models, dev), [3], "strangers even in tests");
        assert_eq!(broken(crate_edges, "crates/novel/Cargo.toml", ""), [1]);
    }
}
