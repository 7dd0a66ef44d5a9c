//! Which crate may use which, and inside the engine which module may use which.

use crate::source::File;

use super::Fault;

/// What each crate may use of ours. Dev-dependencies are free, save that the rooms of [`APART`] stay strangers.
const CRATES: [(&str, &[&str]); 22] = [
    ("safepoint-scope", &[]),
    ("safepoint-http", &[]),
    ("safepoint-sandbox", &[]),
    // For tests alone, of whatever crate.
    ("safepoint-golden", &[]),
    // The engine exports it, and what it makes names the engine.
    ("safepoint-macros", &[]),
    ("safepoint-model", &[]),
    // Files under a directory: it knows no agent.
    ("safepoint-snapshot", &[]),
    ("safepoint", &["safepoint-macros", "safepoint-model", "safepoint-scope"]),
    ("safepoint-models", &["safepoint", "safepoint-http"]),
    ("safepoint-tools", &["safepoint", "safepoint-http", "safepoint-sandbox"]),
    ("safepoint-stores", &["safepoint"]),
    // A peer may be a command: it lives under the guard. A peer may stream events: there is one decoder of them.
    ("safepoint-remote", &["safepoint", "safepoint-http", "safepoint-models", "safepoint-tools"]),
    // Which node takes a session: of the stores it knows how their database is reached, for a queue there.
    ("safepoint-nodes", &["safepoint", "safepoint-http", "safepoint-stores"]),
    // Sessions over HTTP: it names no model, no tool and no store.
    ("safepoint-server", &["safepoint", "safepoint-nodes"]),
    ("safepoint-testkit", &["safepoint"]),
    // What any agent's stop does: it knows no engine, and ours is one of many.
    ("safepoint-stop-test", &["safepoint-http", "safepoint-testkit"]),
    // Nodes over a simulated network.
    ("safepoint-fleet", &["safepoint", "safepoint-nodes", "safepoint-testkit"]),
    // Tests of the assembled product: all that it uses are dev-dependencies.
    ("safepoint-tests", &[]),
    // Programs as users write them: the same.
    ("safepoint-examples", &[]),
    // It has files of the engine and not the engine.
    ("safepoint-loom", &[]),
    // The composition root, and what measures it: only they name concrete models and tools.
    ("safepoint-cli", EVERY),
    ("safepoint-bench", EVERY),
];

/// The manifests of the crates outside `crates/` that have a place above.
const TESTS: &str = "tests/Cargo.toml";
const EXAMPLES: &str = "examples/Cargo.toml";

const EVERY: &[&str] = &[
    "safepoint-http",
    "safepoint-sandbox",
    "safepoint-model",
    "safepoint-scope",
    "safepoint",
    "safepoint-models",
    "safepoint-snapshot",
    "safepoint-tools",
    "safepoint-stores",
    "safepoint-remote",
    "safepoint-nodes",
    "safepoint-server",
    "safepoint-testkit",
];

/// They never see each other, not even in tests.
const APART: [&str; 3] = ["safepoint-models", "safepoint-tools", "safepoint-stores"];

/// The engine's layers from the bottom up, each with its modules in reading order: a module may use the layers before its own,
/// and in its own those before it. A layer's own file comes after its modules. A new module takes its place here.
const LAYERS: &[(&str, &[&str])] = &[
    ("sync", &["clock", "mutex", "watched", "mailbox", "callback", "reply"]),
    ("value", &["limits", "spill", "schema", "partial_json", "effect", "approval", "receipt", "event"]),
    (
        "contract",
        &[
            "extensions",
            "trace",
            "setup",
            "store",
            "model",
            "approver",
            "tool",
            "remote",
            "hook",
            "guard",
            "log",
        ],
    ),
    (
        "definition",
        &["stop_times", "window", "secret", "subagent", "fits", "answer", "toolset", "settings", "identity"],
    ),
    (
        "run",
        &[
            "attempt", "state", "outcome", "settings", "partials", "steer", "spans", "draft", "machine",
            "executor", "shared", "driver", "stream",
        ],
    ),
    ("external", &["backend", "remote"]),
    ("agent", &[]),
    ("session", &[]),
    ("lines", &["line", "words", "body", "schema", "facts", "encoder", "outcome", "session", "journal"]),
    // What stores, adapters and front ends see of all of them.
    ("raw", &[]),
    ("tests", &[]),
];

/// The layers of the command line, in the order of import: a layer may use those before it.
const CLI: [&str; 15] = [
    "sync", "exit", "visible", "prices", "args", "output", "otel", "signals", "render", "settings", "agent",
    "session", "control", "api", "command",
];

pub(super) fn crate_edges(file: &File) -> Vec<Fault> {
    let name = match file.path.as_str() {
        TESTS => "safepoint-tests",
        EXAMPLES => "safepoint-examples",
        path => match path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml")) {
            Some(name) => name,
            None => return Vec::new(),
        },
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

/// A place in the engine: a layer, and a module of it; none is the layer's own file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ModulePlace {
    layer: usize,
    module: usize,
}

impl ModulePlace {
    /// Where a path of modules leads; the path may continue to a type.
    fn of(path: &[&str]) -> Option<Self> {
        let layer = LAYERS.iter().position(|(name, _)| Some(name) == path.first())?;
        let modules = LAYERS[layer].1;
        let module = modules.iter().position(|name| Some(name) == path.get(1)).unwrap_or(modules.len());
        Some(Self { layer, module })
    }

    fn name(self) -> String {
        let (layer, modules) = LAYERS[self.layer];
        modules.get(self.module).map_or_else(|| layer.to_owned(), |module| format!("{layer}::{module}"))
    }

    /// Whether it may use `used`: an earlier module, or the root file of its layer.
    fn may_use(self, used: Self) -> bool {
        used <= self || used.layer == self.layer && used.module == LAYERS[used.layer].1.len()
    }
}

pub(super) fn module_edges(file: &File) -> Vec<Fault> {
    let Some(path) = file.path.strip_prefix("crates/safepoint/src/").filter(|path| *path != "lib.rs") else {
        return Vec::new();
    };
    let path: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    let has_place = |place: &ModulePlace| path.len() == 1 || place.module < LAYERS[place.layer].1.len();
    let in_folder = |place: &ModulePlace| has_place(place) || LAYERS[place.layer].1.is_empty();
    let Some(place) = ModulePlace::of(&path).filter(in_folder) else {
        return vec![Fault::new(
            1,
            format!("give `{}` its place in xtask/src/tidy/edges.rs", path.join("::")),
        )];
    };
    if file.is_test() {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (line, used) in used_paths(file) {
        let names: Vec<&str> = used.split("::").collect();
        match ModulePlace::of(&names) {
            Some(used) if place.may_use(used) => {}
            Some(used) => {
                let what = format!("`{}` comes before `{}` and may not use it", place.name(), used.name());
                faults.push(Fault::new(line, what));
            }
            None => faults.push(Fault::new(line, format!("name `{used}` by its layer"))),
        }
    }
    faults
}

/// The same of the command line, whose layers have no order inside. `main` uses all of them, and tests do.
pub(super) fn cli_edges(file: &File) -> Vec<Fault> {
    let Some(path) = file.path.strip_prefix("crates/safepoint-cli/src/").filter(|path| *path != "main.rs")
    else {
        return Vec::new();
    };
    let own = path.split(['/', '.']).next().unwrap_or_default();
    if own == "tests" || file.is_test() {
        return Vec::new();
    }
    let Some(place) = CLI.iter().position(|layer| *layer == own) else {
        return vec![Fault::new(1, format!("give `{own}` its place in xtask/src/tidy/edges.rs"))];
    };
    let mut faults = Vec::new();
    for (line, used) in used_paths(file) {
        let layer = used.split("::").next().unwrap_or_default();
        match CLI.iter().position(|other| *other == layer) {
            Some(used) if used <= place => {}
            Some(_) => {
                faults.push(Fault::new(line, format!("`{own}` comes before `{layer}` and may not use it")));
            }
            None => faults.push(Fault::new(line, format!("name `{used}` by its layer"))),
        }
    }
    faults
}

/// The first two names after each `crate::`, of a braced list each of them, and each with its line.
fn used_paths(file: &File) -> Vec<(usize, String)> {
    let code: String = file.product_code().flat_map(|(_, line)| [line, "\n"]).collect();
    let mut used = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        let from = at + path.len();
        for (offset, name) in names(&code[from..]) {
            let after = &code[from + offset + name.len()..];
            let line = |at: usize| code[..at].matches('\n').count() + 1;
            match after.strip_prefix("::") {
                Some(rest) => used.extend(names(rest).into_iter().map(|(inner, second)| {
                    let at = from + offset + name.len() + 2 + inner;
                    (line(at), format!("{name}::{second}"))
                })),
                None => used.push((line(from + offset), name.to_owned())),
            }
        }
    }
    used
}

/// The name that this begins with, or those of the braced list that it begins with, each with where it begins.
fn names(text: &str) -> Vec<(usize, &str)> {
    let offsets = if text.starts_with('{') { heads(text) } else { vec![0] };
    let end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let name = |offset: usize| {
        let rest = &text[offset..];
        (offset, &rest[..rest.find(end).unwrap_or(rest.len())])
    };
    offsets.into_iter().map(name).collect()
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

    fn module(path: &str, text: &str) -> Vec<usize> {
        broken(module_edges, &format!("crates/safepoint/src/{path}"), text)
    }

    #[test]
    fn a_module_may_not_use_a_later_one() {
        let text = "//! x\nuse crate::{\n    run::{Run, steer},\n    value::{limits, schema::Schema},\n};\nfn a() -> crate::agent::Agent;\n";
        assert_eq!(module("value/spill.rs", text), [3, 3, 4, 6]);
        assert_eq!(module("value/limits/a.rs", "use crate::{run::Run};"), [1]);
        assert!(module("run.rs", "use crate::{value::limits::Limits, run::driver::Driver};\n").is_empty());
        assert!(module("agent.rs", "use crate::run::Run;\n").is_empty());
        assert!(module("run/driver/a.rs", "use crate::definition::Definition;\n").is_empty());
        assert_eq!(module("run/steer.rs", "use crate::agent::Agent;\n"), [1]);
        assert_eq!(module("session/a.rs", "use crate::ids::RunId;\n"), [1], "not by its layer");
    }

    #[test]
    fn a_layer_of_the_command_line_may_not_use_a_later_one() {
        let cli = |path: &str, text| broken(cli_edges, &format!("crates/safepoint-cli/src/{path}"), text);
        let text = "//! x\nuse crate::{\n    args::Usage,\n    control::{self, client::push},\n};\n";
        assert_eq!(cli("settings/a.rs", text), [4, 4]);
        assert!(cli("command/a.rs", text).is_empty());
        assert!(cli("main.rs", text).is_empty());
        assert_eq!(cli("novel/a.rs", "//! x\n"), [1], "it has no place");
        assert_eq!(cli("command/a.rs", "use crate::Novel;\n"), [1], "not by its layer");
    }

    #[test]
    fn a_module_without_a_place_is_found() {
        assert_eq!(module("novel.rs", "//! x\n"), [1]);
        assert_eq!(module("value/novel.rs", "//! x\n"), [1]);
        assert_eq!(module("value/novel/a.rs", "//! x\n"), [1]);
        assert!(module("session/novel.rs", "//! x\n").is_empty());
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
