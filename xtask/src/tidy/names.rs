//! Rule about the names of types: one word has one meaning.
//!
//! A public type has a name that no other public type of the workspace has, and a private one a name that at most two
//! others have. Only crates count, without their tests.

use std::collections::BTreeMap;

use syn::{Ident, Item, Visibility};

use super::{
    Fault,
    impls::{line, product},
};
use crate::source::File;

/// How many private types may have one name.
const PRIVATE: usize = 3;

/// The files of the types of one name.
#[derive(Default)]
struct Homes<'f> {
    public: Vec<&'f str>,
    private: Vec<&'f str>,
}

/// The faults of every file, by path.
pub(super) fn faults(files: &[File]) -> Vec<(String, Fault)> {
    let mut names: BTreeMap<String, Homes<'_>> = BTreeMap::new();
    let is_counted = |file: &&File| file.is_rust() && !file.is_test() && file.path.starts_with("crates/");
    for file in files.iter().filter(is_counted) {
        let Ok(parsed) = syn::parse_file(&file.text) else { continue };
        for (name, is_public) in product(parsed.items).iter().filter_map(declared) {
            let homes = names.entry(name.to_string()).or_default();
            if is_public { homes.public.push(&file.path) } else { homes.private.push(&file.path) }
        }
    }
    let fault = |name: &str, path: &str, what: String| {
        let at = line(files, path, &["struct", "enum", "union", "trait"], name);
        (path.to_owned(), Fault::new(at, what))
    };
    let mut faults = Vec::new();
    for (name, homes) in &names {
        if let [first, rest @ ..] = &homes.public[..] {
            let again = |path: &&str| {
                fault(name, path, format!("`{name}` is public in {first} too: give one of them another name"))
            };
            faults.extend(rest.iter().map(again));
        }
        if homes.private.len() > PRIVATE {
            let (last, count) = (homes.private.len() - 1, homes.private.len());
            let what =
                format!("{count} private types are named `{name}`, at most {PRIVATE}: say which one this is");
            faults.push(fault(name, homes.private[last], what));
        }
    }
    faults
}

/// The name of a type or trait that is declared here, and whether it is public.
fn declared(item: &Item) -> Option<(&Ident, bool)> {
    let (name, visibility) = match item {
        Item::Struct(item) => (&item.ident, &item.vis),
        Item::Enum(item) => (&item.ident, &item.vis),
        Item::Union(item) => (&item.ident, &item.vis),
        Item::Trait(item) => (&item.ident, &item.vis),
        _ => return None,
    };
    Some((name, matches!(visibility, Visibility::Public(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Vec<(String, usize)> {
        let file = |(place, text): (usize, &&str)| File::of(&format!("crates/a{place}/src/a.rs"), text);
        let files: Vec<File> = texts.iter().enumerate().map(file).collect();
        faults(&files).into_iter().map(|(path, fault)| (path, fault.line)).collect()
    }

    #[test]
    fn a_public_name_is_there_once() {
        assert_eq!(found(&["pub struct A;\n", "\npub enum A {}\n"]), [("crates/a1/src/a.rs".into(), 2)]);
        assert_eq!(found(&["pub struct A;\n", "struct A;\n", "pub(crate) trait A {}\n"]), []);
    }

    #[test]
    fn a_private_name_is_there_three_times_at_most() {
        let three = ["struct A;\n", "mod b {\n    enum A {}\n}\n", "pub(crate) trait A {}\n"];
        assert_eq!(found(&three), []);
        let four = [&three[..], &["//! x\nstruct A;\n"]].concat();
        assert_eq!(found(&four), [("crates/a3/src/a.rs".into(), 2)]);
    }

    #[test]
    fn tests_and_other_trees_do_not_count() {
        let inside = "#[cfg(test)]\nmod tests {\n    struct A;\n}\n";
        assert_eq!(found(&["struct A;\n", "struct A;\n", "struct A;\n", inside]), []);
        let outside = ["xtask/src/a.rs", "crates/a/tests/a.rs"].map(|path| File::of(path, "pub struct A;\n"));
        assert!(
            faults(&[outside.to_vec(), vec![File::of("crates/a/src/a.rs", "pub struct A;\n")]].concat())
                .is_empty()
        );
    }
}
