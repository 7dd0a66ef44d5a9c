//! A rule about what is written down: every type that is serialised has a golden line.
//!
//! The golden tests hold the variants and fields of the types that they name; this holds that each type is named there. In
//! a comment is enough, for a private type that is written through another one.

use syn::Item;

use super::Fault;
use crate::{
    api::{made, tree::is_ours},
    source::File,
};

/// Files whose words are not ours: what providers send, and the scripts and requests of the testkit's
/// servers.
const APART: [&str; 6] = [
    "crates/safepoint-bench/src/bare/",
    "crates/safepoint-models/src/",
    "crates/safepoint-testkit/src/server/",
    "crates/safepoint-testkit/src/mcp.rs",
    "crates/safepoint-testkit/src/acp.rs",
    "crates/safepoint-testkit/src/script.rs",
];

/// Enums that other crates cannot match to the end, whose variants are named in a golden test one by one.
const WATCHED: [&str; 2] = ["EventKind", "JournalFact"];

/// The types without a golden line, and the variants of watched enums without one, by the path of their file.
pub(super) fn faults(files: &[File]) -> Vec<(String, Fault)> {
    let golden: String = files
        .iter()
        .filter(|file| {
            file.is_rust() && file.is_test() && (file.path.contains("golden") || file.text.contains("golden"))
        })
        .map(|file| file.text.as_str())
        .collect();
    let is_product = |file: &&File| {
        let is_shipped = file.path.starts_with("crates/") && file.path.contains("/src/");
        file.is_rust() && is_shipped && !file.is_test() && !file.lies_in(&APART)
    };
    let of_file = |file: &File| {
        let missing = missing(&file.text, &golden);
        missing
            .into_iter()
            .map(|(name, what)| (file.path.clone(), Fault::new(line(file, &name), what)))
            .collect()
    };
    files.iter().filter(is_product).flat_map(|file| -> Vec<(String, Fault)> { of_file(file) }).collect()
}

/// The line that names it.
fn line(file: &File, name: &str) -> usize {
    file.code().find(|(_, line)| has_word(line, name)).map_or(1, |(number, _)| number)
}

/// The names in this text that the golden tests do not name, with what is wrong.
fn missing(text: &str, golden: &str) -> Vec<(String, String)> {
    // Most files need not be parsed.
    let is_of_interest = text.contains("erialize") || WATCHED.iter().any(|name| text.contains(name));
    let Some(parsed) = is_of_interest.then(|| syn::parse_file(text).ok()).flatten() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for item in made::with_what_macros_make(parsed.items) {
        match &item {
            Item::Struct(one) if is_serialised(&one.attrs) => found.push(one.ident.to_string()),
            Item::Enum(one) => {
                if is_serialised(&one.attrs) {
                    found.push(one.ident.to_string());
                }
                if WATCHED.iter().any(|name| one.ident == name) {
                    found.extend(
                        one.variants.iter().map(|variant| format!("{}::{}", one.ident, variant.ident)),
                    );
                }
            }
            Item::Impl(one) => found.extend(written_by_hand(one)),
            _ => {}
        }
    }
    found.retain(|name| !has_word(golden, name));
    let wrong = |name: String| {
        let what = format!("`{name}` has no golden line: give it one in a test of `tests/golden`");
        (name.rsplit("::").next().unwrap_or_default().to_owned(), what)
    };
    found.into_iter().map(wrong).collect()
}

/// Whether it can be written or read, and is more than the arguments of a tool.
fn is_serialised(attributes: &[syn::Attribute]) -> bool {
    let derived: Vec<String> = attributes
        .iter()
        .filter(|it| it.path().is_ident("derive"))
        .filter_map(|it| match &it.meta {
            syn::Meta::List(list) => Some(list.tokens.to_string()),
            _ => None,
        })
        .collect();
    let derives = |name: &str| derived.iter().any(|one| has_word(one, name));
    is_ours(attributes) && (derives("Serialize") || derives("Deserialize")) && !derives("JsonSchema")
}

/// The type that an impl of `Serialize` or `Deserialize` is for.
fn written_by_hand(one: &syn::ItemImpl) -> Option<String> {
    let (_, implemented, _) = one.trait_.as_ref()?;
    let name = &implemented.segments.last()?.ident;
    let syn::Type::Path(of) = &*one.self_ty else { return None };
    let is_it = (name == "Serialize" || name == "Deserialize") && is_ours(&one.attrs);
    is_it.then(|| of.path.segments.last().map(|last| last.ident.to_string())).flatten()
}

fn has_word(text: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !joins(text[..at].chars().next_back()) && !joins(text[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_without_a_golden_line_is_found() {
        let text = "#[derive(Clone, Serialize)]\npub struct Old;\n#[derive(Deserialize)]\nenum New { A }\n\
                    #[derive(Deserialize, JsonSchema)]\nstruct Args;\nimpl Serialize for Hand {}\n\
                    pub enum EventKind { Text, Late }\nstruct Plain;\n";
        let golden = "// golden\nOld; EventKind::Text; Newer";
        let names: Vec<String> = missing(text, golden).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["New", "Hand", "Late"]);
        let files = [File::of("crates/a/src/a.rs", text), File::of("crates/a/tests/a.rs", golden)];
        let lines: Vec<usize> = faults(&files).into_iter().map(|(_, fault)| fault.line).collect();
        assert_eq!(lines, [4, 7, 8]);
    }
}
