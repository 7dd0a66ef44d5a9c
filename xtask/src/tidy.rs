//! Style as tests: each rule looks at a file and says where it is broken and what to do.

use anyhow::bail;

use crate::source::{self, File, code_of};

mod edges;

/// One place where a rule is broken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    line: usize,
    what: String,
}

impl Fault {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

type Rule = fn(&File) -> Vec<Fault>;

const RULES: [Rule; 9] = [
    opens_with_its_purpose,
    is_not_too_long,
    has_no_mod_rs,
    has_no_escape_hatch,
    keeps_the_glossary,
    documents_cancel_safety,
    decides_about_its_enums,
    spawns_only_where_it_may,
    names_no_machine,
];

/// Files that may break one rule, and why.
const EXCEPTIONS: [(&str, &str); 1] =
    [("crates/safepoint/src/event.rs", "the list of facts and events is one concept, and long by nature")];

/// Runs every rule over every file.
pub(crate) fn tidy() -> anyhow::Result<()> {
    let files = source::all()?;
    let mut faults = 0;
    for file in &files {
        for fault in RULES.iter().flat_map(|rule| rule(file)) {
            println!("{}:{}: {}", file.path, fault.line, fault.what);
            faults += 1;
        }
    }
    for fault in edges::check(&files) {
        println!("{fault}");
        faults += 1;
    }
    if faults > 0 {
        bail!("{faults} faults; docs: CONTRIBUTING.md");
    }
    println!("tidy: {} files, no faults", files.len());
    Ok(())
}

fn opens_with_its_purpose(file: &File) -> Vec<Fault> {
    let opens = file.text.starts_with("//!") || file.text.starts_with("#![doc");
    if !file.is_rust() || opens || file.path.contains("tests/ui/") {
        return Vec::new();
    }
    vec![Fault::new(1, "open the file with `//!` and one sentence of purpose")]
}

fn is_not_too_long(file: &File) -> Vec<Fault> {
    const PRODUCT: usize = 300;
    const TESTS: usize = 600;
    if !file.is_rust() || EXCEPTIONS.iter().any(|(path, _)| *path == file.path) {
        return Vec::new();
    }
    let bound = if file.is_test() { TESTS } else { PRODUCT };
    let code = file.product().filter(|(_, line)| !code_of(line).trim().is_empty()).count();
    if code <= bound {
        return Vec::new();
    }
    vec![Fault::new(
        1,
        format!("{code} lines of code, at most {bound}: take a concept out into a file of its own"),
    )]
}

fn has_no_mod_rs(file: &File) -> Vec<Fault> {
    if file.path.ends_with("/mod.rs") {
        vec![Fault::new(1, "use `name.rs` beside `name/`")]
    } else {
        Vec::new()
    }
}

fn has_no_escape_hatch(file: &File) -> Vec<Fault> {
    const BANNED: [(&str, &str); 7] = [
        ("#[ignore", "mend the test or delete it"),
        ("#[should_panic", "assert on the panic's cause"),
        ("#[allow(", "use #[expect(…, reason = \"…\")]"),
        ("todo!(", "finish it"),
        ("unimplemented!(", "finish it"),
        ("dbg!(", "take it out"),
        ("mem::forget(", "say who owns it"),
    ];
    if !file.is_rust() || file.path.starts_with("xtask/") || file.path.contains("tests/ui/") {
        return Vec::new();
    }
    lines(file)
        .flat_map(|(number, code)| {
            BANNED
                .iter()
                .filter(move |(banned, _)| code.contains(banned))
                .map(move |(banned, mend)| Fault::new(number, format!("`{banned}`: {mend}")))
        })
        .collect()
}

fn keeps_the_glossary(file: &File) -> Vec<Fault> {
    const FOREIGN: [&str; 4] = ["cancel", "abort", "interrupt", "kill"];
    /// Words of the receipt's contract: a process is killed, an approval is cancelled, a message is interrupted.
    const OURS: [&str; 3] = ["Killed", "approvals_cancelled", "INTERRUPTED"];
    let engine = ["crates/safepoint/src/", "crates/safepoint-scope/src/"];
    if !engine.iter().any(|folder| file.path.starts_with(folder)) || file.is_test() {
        return Vec::new();
    }
    file.product()
        .filter_map(|(number, line)| {
            let code = OURS.iter().fold(code_of(line), |code, ours| code.replace(ours, ""));
            let word = FOREIGN.iter().find(|word| code.to_lowercase().contains(**word))?;
            Some(Fault::new(number, format!("`{word}` is a foreign word here; docs/glossary.md has ours")))
        })
        .collect()
}

fn documents_cancel_safety(file: &File) -> Vec<Fault> {
    if !file.is_rust() || file.is_test() || file.path.starts_with("xtask/") {
        return Vec::new();
    }
    let mut docs = String::new();
    let mut faults = Vec::new();
    for (number, line) in file.product() {
        let line = line.trim_start();
        if let Some(doc) = line.strip_prefix("///") {
            docs.push_str(doc);
        } else if line.starts_with("#[") {
        } else {
            if line.starts_with("pub async fn") && !docs.contains("# Cancel safety") {
                faults.push(Fault::new(number, "say under `# Cancel safety` what is lost if it is dropped"));
            }
            docs.clear();
        }
    }
    faults
}

fn decides_about_its_enums(file: &File) -> Vec<Fault> {
    if !file.is_rust() || file.is_test() || file.path.starts_with("xtask/") {
        return Vec::new();
    }
    let mut above = String::new();
    let mut faults = Vec::new();
    for (number, line) in file.product() {
        let line = line.trim_start();
        if line.starts_with("///") || line.starts_with("#[") {
            above.push_str(line);
        } else {
            let decided = above.contains("non_exhaustive")
                || above.contains("Exhaustive")
                || above.contains("doc(hidden)");
            if line.starts_with("pub enum") && !decided {
                faults.push(Fault::new(
                    number,
                    "make it #[non_exhaustive], or say in its docs why it is `Exhaustive:`",
                ));
            }
            above.clear();
        }
    }
    faults
}

fn spawns_only_where_it_may(file: &File) -> Vec<Fault> {
    const SPAWNS: [&str; 4] = ["tokio::spawn(", "spawn_blocking(", "thread::spawn(", ".abort()"];
    const ROOMS: [&str; 6] = [
        "crates/safepoint-scope/src/",
        "crates/safepoint-tools/src/process/",
        "crates/safepoint-testkit/",
        "crates/safepoint-cli/",
        "crates/safepoint-bench/",
        "xtask/",
    ];
    if !file.is_rust() || file.is_test() || ROOMS.iter().any(|room| file.path.starts_with(room)) {
        return Vec::new();
    }
    lines(file)
        .filter(|(_, code)| {
            let scoped =
                code.contains("scope.spawn") || code.contains("run.spawn") || code.contains("scope().spawn");
            SPAWNS.iter().any(|spawn| code.contains(spawn)) && !scoped
        })
        .map(|(number, _)| Fault::new(number, "spawn through a scope, so that quiet waits for it"))
        .collect()
}

fn names_no_machine(file: &File) -> Vec<Fault> {
    let homes = [format!("/{}/main", "work"), format!("/{}/shared", "work"), format!("/{}/.cargo", "root")];
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| homes.iter().any(|home| line.contains(home.as_str())))
        .map(|(index, _)| Fault::new(index + 1, "an absolute path of somebody's machine"))
        .collect()
}

fn lines(file: &File) -> impl Iterator<Item = (usize, String)> {
    file.product().map(|(number, line)| (number, code_of(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(rule: Rule, path: &str, text: &str) -> usize {
        rule(&File::of(path, text)).len()
    }

    #[test]
    fn each_rule_finds_its_fault_and_nothing_else() {
        assert_eq!(broken(opens_with_its_purpose, "a.rs", "use x;"), 1);
        assert_eq!(broken(opens_with_its_purpose, "a.rs", "//! Does.\n"), 0);
        assert_eq!(broken(is_not_too_long, "a.rs", &"let a = 1;\n".repeat(301)), 1);
        assert_eq!(broken(is_not_too_long, "a.rs", &"// said\n".repeat(301)), 0);
        assert_eq!(broken(has_no_mod_rs, "a/mod.rs", ""), 1);
        assert_eq!(broken(has_no_escape_hatch, "a.rs", "#[ignore]\n#[allow(x)]\n"), 2);
        assert_eq!(broken(has_no_escape_hatch, "a.rs", "// #[ignore]\n"), 0);
        assert_eq!(broken(keeps_the_glossary, "crates/safepoint/src/a.rs", "fn cancel() {}\n"), 1);
        assert_eq!(
            broken(keeps_the_glossary, "crates/safepoint/src/a.rs", "/// cancel\nsay(\"cancel\");\n"),
            0
        );
        assert_eq!(broken(documents_cancel_safety, "a.rs", "/// Waits.\npub async fn a() {}\n"), 1);
        assert_eq!(
            broken(documents_cancel_safety, "a.rs", "/// # Cancel safety\n/// None.\npub async fn a() {}\n"),
            0
        );
        assert_eq!(broken(decides_about_its_enums, "a.rs", "/// Colours.\npub enum A {}\n"), 1);
        assert_eq!(broken(decides_about_its_enums, "a.rs", "/// Exhaustive: all.\npub enum A {}\n"), 0);
        assert_eq!(broken(spawns_only_where_it_may, "crates/safepoint/src/a.rs", "tokio::spawn(x);\n"), 1);
        assert_eq!(broken(names_no_machine, "a.md", &format!("see /{}/.cargo", "root")), 1);
    }
}
