//! `tidy --figures`: how large the workspace is, in counts that can be compared.
//!
//! Code lines are lines of `src` with code on them: comments, blank lines, tests inside a file and files of tests, also
//! those that a `#[cfg(test)] mod name;` declares, do not count. Types are structs, enums, unions and traits, whether public or not.

use crate::{
    api::{
        self,
        tree::{Files, Tree},
    },
    source::{self, File},
};

pub(crate) mod circles;

/// How many of the structs with the most fields are shown.
const LARGEST: usize = 10;

/// Prints the figures.
///
/// # Errors
/// If the source cannot be read.
pub(crate) fn figures() -> anyhow::Result<()> {
    let files = source::all()?;
    sizes(&product(&files));
    println!("\npublic (types and traits outside `raw`; names at the root that are no modules)");
    for api in api::apis(&files)? {
        println!("  {:<20} {:>6} types {:>6} at the root", api.name, api.types, api.at_root);
    }
    largest(&product(&files));
    circles::circles(&files)
}

/// The files without those for tests alone.
fn product(files: &[File]) -> Vec<File> {
    let for_tests: Vec<String> = files.iter().flat_map(File::test_modules).collect();
    let is_for_tests = |file: &File| {
        let below = |stem: &String| file.path.strip_prefix(stem.as_str());
        for_tests.iter().filter_map(below).any(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    files.iter().filter(|file| !file.is_test() && !is_for_tests(file)).cloned().collect()
}

fn sizes(files: &[File]) {
    println!("src                    code lines  types  types per 1,000 code lines");
    let mut all = (0, 0);
    for name in api::crates(files) {
        let (lines, types) = files
            .iter()
            .filter(|file| is_product(file, &name))
            .map(|file| (lines(file), types(file)))
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        println!("  {name:<20} {lines:>10} {types:>6} {:>6}", per_thousand(types, lines));
        all = (all.0 + lines, all.1 + types);
    }
    println!("  {:<20} {:>10} {:>6} {:>6}", "all", all.0, all.1, per_thousand(all.1, all.0));
}

fn is_product(file: &File, name: &str) -> bool {
    file.is_rust() && file.path.starts_with(&format!("crates/{name}/src/"))
}

/// The lines of code of a file, its tests left out.
fn lines(file: &File) -> usize {
    file.product_code().filter(|(_, line)| !line.trim().is_empty()).count()
}

/// The types that a file declares, those in macros included.
fn types(file: &File) -> usize {
    file.product_code().filter(|(_, line)| declares_a_type(line)).count()
}

fn declares_a_type(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| {
        *word == "pub"
            || *word == "unsafe"
            || *word == "in"
            || word.starts_with("pub(")
            || word.ends_with(')')
    });
    let is_type = matches!(words.next(), Some("struct" | "enum" | "union" | "trait"));
    is_type && words.next().is_some_and(|name| name.starts_with(|c: char| c.is_ascii_uppercase() || c == '$'))
}

fn per_thousand(types: usize, lines: usize) -> String {
    const TENTHS: usize = 10_000;
    let tenths = (types * TENTHS).checked_div(lines).unwrap_or(0);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The structs with the most fields.
fn largest(files: &[File]) {
    let mut found: Vec<(usize, String)> = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/")) {
        let Ok(parsed) = syn::parse_file(&file.text) else { continue };
        let is_driver = |item: &syn::ItemStruct| file.is_rust() && !item.fields.is_empty();
        found.extend(parsed.items.iter().filter_map(|item| match item {
            syn::Item::Struct(item) if is_driver(item) => {
                Some((item.fields.len(), format!("{} in {}", item.ident, file.path)))
            }
            _ => None,
        }));
    }
    found.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    println!("\nfields");
    for (fields, name) in found.iter().take(LARGEST) {
        println!("  {fields:>3} {name}");
    }
}

/// The tree of a crate, of its library or else of its program.
fn tree(files: &Files<'_>, name: &str) -> Option<anyhow::Result<Tree>> {
    // It contains engine files, and has no source tree.
    if name == "safepoint-loom" {
        return None;
    }
    let roots = ["lib.rs", "main.rs"].map(|root| format!("crates/{name}/src/{root}"));
    roots.iter().find(|root| files.contains_key(root.as_str())).map(|root| Tree::read(files, root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_types_are_counted_as_they_stand() {
        let text = "//! x\n\npub struct A;\npub(crate) enum B { C }\npub(in crate::a) trait D {}\n// enum E\nfn a() {\n    let structs = \"\nstruct F\";\n}\n#[cfg(test)]\nmod tests {\n    struct G;\n}\n";
        let file = File::of("crates/a/src/a.rs", text);
        assert_eq!((lines(&file), types(&file)), (7, 3));
        assert_eq!(per_thousand(23, 1000), "23.0");
    }

    #[test]
    fn a_module_that_is_declared_for_tests_is_no_product() {
        let root = "//! x\n\nmod a;\n#[cfg(test)]\nmod of_a;\n";
        let a = "//! x\n\n#[cfg(test)]\nmod explored;\n#[cfg(all(test, not(loom)))]\nmod raced;\nmod used;\n";
        let files: Vec<File> = [
            ("c/src/lib.rs", root),
            ("c/src/of_a.rs", ""),
            ("c/src/of_all.rs", ""),
            ("c/src/a.rs", a),
            ("c/src/a/explored.rs", ""),
            ("c/src/a/explored/world.rs", ""),
            ("c/src/a/raced.rs", ""),
            ("c/src/a/used.rs", ""),
        ]
        .map(|(path, text)| File::of(path, text))
        .into();
        let kept: Vec<String> = product(&files).into_iter().map(|file| file.path).collect();
        assert_eq!(kept, ["c/src/lib.rs", "c/src/of_all.rs", "c/src/a.rs", "c/src/a/used.rs"]);
    }
}
