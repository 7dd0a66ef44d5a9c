//! Which crate may use which, and inside the engine which module may use which.

use crate::source::{File, code_of};

/// What each crate's `[dependencies]` may name of ours.
const CRATES: [(&str, &[&str]); 5] = [
    ("safepoint-scope", &[]),
    ("safepoint", &["safepoint-scope"]),
    ("safepoint-models", &["safepoint"]),
    ("safepoint-tools", &["safepoint"]),
    ("safepoint-testkit", &["safepoint"]),
];

/// The engine's modules in reading order: each may use those before it. A few know a later one by its type alone, and
/// are named with it.
const MODULES: [&str; 23] = [
    "ids",
    "limits",
    "usage",
    "message",
    "history",
    "model",
    "approval",
    "receipt",
    "tool",
    "hook",
    "event",
    "log",
    "outcome",
    "observe",
    "spans",
    "draft",
    "toolset",
    "machine",
    "executor",
    "shared",
    "conductor",
    "agent",
    "run",
];

/// The conductor conducts a definition; an agent hands out runs.
const KNOWN: [(&str, &str); 2] = [("conductor", "agent"), ("agent", "run")];

pub(super) fn check(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files {
        for (name, allowed) in CRATES {
            if file.path == format!("crates/{name}/Cargo.toml") {
                faults.extend(crate_edges(file, name, allowed));
            }
        }
        if let Some(path) = file.path.strip_prefix("crates/safepoint/src/") {
            faults.extend(module_edges(file, path));
        }
    }
    faults
}

fn crate_edges(file: &File, name: &str, allowed: &[&str]) -> Vec<String> {
    let dependencies = file.text.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    dependencies
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|used| used.starts_with("safepoint") && !allowed.contains(used))
        .map(|used| format!("{}: {name} may not use {used}", file.path))
        .collect()
}

fn module_edges(file: &File, path: &str) -> Vec<String> {
    let module = path.split(['/', '.']).next().unwrap_or_default();
    let Some(place) = MODULES.iter().position(|known| *known == module) else { return Vec::new() };
    let later = |used: &str| {
        let known = KNOWN.contains(&(module, used));
        !known && MODULES.iter().position(|other| *other == used).is_some_and(|other| other > place)
    };
    used_modules(file)
        .into_iter()
        .filter(|(_, used)| later(used))
        .map(|(line, used)| {
            format!("{}:{line}: `{module}` comes before `{used}` and may not use it", file.path)
        })
        .collect()
}

/// The modules named after `crate::`, also in a braced list.
fn used_modules(file: &File) -> Vec<(usize, String)> {
    let mut used = Vec::new();
    let mut depth: Option<usize> = None;
    for (number, line) in file.product() {
        let code = code_of(line);
        let rest = match depth {
            Some(_) => code.as_str(),
            None => match code.split_once("crate::") {
                Some((_, rest)) => rest,
                None => continue,
            },
        };
        if depth.is_none() && rest.starts_with('{') {
            depth = Some(0);
        }
        let mut level = depth.unwrap_or(0);
        let mut word = String::new();
        for c in rest.chars() {
            let at_top = depth.is_none() || level == 1;
            match c {
                '{' => level += 1,
                '}' => level = level.saturating_sub(1),
                c if c.is_ascii_alphanumeric() || c == '_' => word.push(c),
                _ => {
                    if at_top && c == ':' && !word.is_empty() {
                        used.push((number, std::mem::take(&mut word)));
                    }
                    word.clear();
                    if depth.is_none() {
                        break;
                    }
                }
            }
        }
        depth = depth.and(Some(level)).filter(|level| *level > 0);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_may_not_use_a_later_one() {
        let file = File::of(
            "crates/safepoint/src/ids.rs",
            "//! x\nuse crate::{\n    limits::Limits,\n    run::{Run},\n};\n",
        );
        assert_eq!(check(&[file]).len(), 2);
        let file = File::of("crates/safepoint/src/run.rs", "//! x\nuse crate::ids::RunId;\n");
        assert!(check(&[file]).is_empty());
    }

    #[test]
    fn a_crate_may_not_use_a_stranger() {
        let file = File::of(
            "crates/safepoint-models/Cargo.toml",
            "[dependencies]\nsafepoint-tools.workspace = true\n",
        );
        assert_eq!(check(&[file]).len(), 1);
    }
}
