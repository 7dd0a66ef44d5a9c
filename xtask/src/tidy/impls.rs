//! Rule about inherent impls: they stand with their type.
//!
//! A type has its impls in its file. One that is too long for that has them below its file, in the folder of its name, or
//! beside it, in a folder of one concern; the root of a crate is no such folder. An impl for one argument of a general
//! type, as `HttpModel<Chat>`, may stand with the argument. Types that a macro makes, and tests, are not looked at.

use std::collections::HashMap;

use syn::{GenericArgument, Item, PathArguments, PathSegment, Type};

use super::Fault;
use crate::source::File;

/// The keyword of an item is among this many first words of its line.
const MOST_BEFORE: usize = 3;

/// The files that declare a type, by crate and name.
type Homes<'f> = HashMap<(&'f str, String), Vec<&'f str>>;

/// The faults of every file, by path.
pub(super) fn faults(files: &[File]) -> Vec<(String, Fault)> {
    let is_looked_at = |file: &&File| file.is_rust() && !file.is_test() && !file.is_wrong_on_purpose();
    let parsed: Vec<(&str, Vec<Item>)> = files
        .iter()
        .filter(is_looked_at)
        .filter_map(|file| Some((file.path.as_str(), product(syn::parse_file(&file.text).ok()?.items))))
        .collect();
    let mut homes = Homes::new();
    for (path, items) in &parsed {
        let names = items.iter().filter_map(declared);
        names.for_each(|name| homes.entry((of_crate(path), name)).or_default().push(path));
    }
    let faults = |(path, items): &(&str, Vec<Item>)| -> Vec<(String, Fault)> {
        let faults = items.iter().filter_map(|item| fault(&homes, path, item));
        faults
            .map(|(of, what)| ((*path).to_owned(), Fault::new(line(files, path, &["impl"], &of), what)))
            .collect()
    };
    parsed.iter().flat_map(faults).collect()
}

/// The items of a file and of the modules inside it, without its tests.
pub(super) fn product(items: Vec<Item>) -> Vec<Item> {
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Mod(inner) if !inner.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) => {
                found.extend(inner.content.map(|(_, items)| product(items)).unwrap_or_default());
            }
            Item::Mod(_) => {}
            other => found.push(other),
        }
    }
    found
}

fn declared(item: &Item) -> Option<String> {
    match item {
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Enum(item) => Some(item.ident.to_string()),
        Item::Union(item) => Some(item.ident.to_string()),
        Item::Type(item) => Some(item.ident.to_string()),
        _ => None,
    }
}

/// The type of an impl that is far from it, and what to do.
fn fault(homes: &Homes<'_>, path: &str, item: &Item) -> Option<(String, String)> {
    let Item::Impl(item) = item else { return None };
    if item.trait_.is_some() {
        return None;
    }
    let of = last(&item.self_ty)?;
    let found = |name: String| homes.get(&(of_crate(path), name));
    let declaring = found(of.ident.to_string())?;
    let is_home = declaring.iter().any(|home| is_home(home, path))
        || arguments(of).any(|argument| found(argument).is_some_and(|homes| homes.contains(&path)));
    (!is_home).then(|| {
        let what =
            format!("`impl {}` stands far from its type, in {}: move it there", of.ident, declaring[0]);
        (of.ident.to_string(), what)
    })
}

/// The first line of the file with one of these keywords and this name.
pub(super) fn line(files: &[File], path: &str, keywords: &[&str], of: &str) -> usize {
    let file = files.iter().find(|file| file.path == path);
    let is_word = |word: &str| keywords.iter().any(|keyword| word.starts_with(keyword));
    let is_it = |line: &str| {
        line.split_whitespace().take(MOST_BEFORE).any(is_word)
            && line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == of)
    };
    file.and_then(|file| file.code().find(|(_, line)| is_it(line))).map_or(1, |(number, _)| number)
}

/// Whether an impl in the file `path` stands with a type of the file `home`.
fn is_home(home: &str, path: &str) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let below = home.strip_suffix(".rs").is_some_and(|stem| path.starts_with(&format!("{stem}/")));
    let beside = folder(home) == folder(path) && !folder(home).ends_with("/src");
    home == path || below || beside
}

fn last(of: &Type) -> Option<&PathSegment> {
    match of {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

fn arguments(of: &PathSegment) -> impl Iterator<Item = String> {
    let arguments = match &of.arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        PathArguments::None | PathArguments::Parenthesized(_) => None,
    };
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        GenericArgument::Type(of) => last(of).map(|segment| segment.ident.to_string()),
        _ => None,
    })
}

/// The folder of a file's crate.
fn of_crate(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(of, _)| of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files in which an impl is far from its type.
    fn far(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::of(path, text)).collect();
        faults(&files).into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn an_impl_stands_with_its_type() {
        let home = ("crates/a/src/run/driver.rs", "struct Driver;\nimpl Driver {}\n");
        let of = |path| far(&[home, (path, "impl Driver {}\n")]);
        assert!(of("crates/a/src/run/driver/settle.rs").is_empty(), "in the folder of its name");
        assert!(of("crates/a/src/run/late.rs").is_empty(), "beside it");
        assert_eq!(of("crates/a/src/session/turn.rs"), ["crates/a/src/session/turn.rs"]);
        assert_eq!(of("crates/a/src/run.rs"), ["crates/a/src/run.rs"], "a parent is not the child's folder");
        assert!(of("crates/b/src/session/turn.rs").is_empty(), "a type of another crate is another type");
        assert!(of("crates/a/tests/turn.rs").is_empty());
    }

    #[test]
    fn the_root_of_a_crate_is_no_folder_of_one_concern() {
        let home = ("crates/a/src/run.rs", "struct Run;\n");
        assert_eq!(far(&[home, ("crates/a/src/agent.rs", "impl Run {}\n")]), ["crates/a/src/agent.rs"]);
        let inside = "mod b { impl super::Run {} }\n#[cfg(test)]\nmod tests { impl super::Run {} }\n";
        assert_eq!(far(&[home, ("crates/a/src/agent.rs", inside)]), ["crates/a/src/agent.rs"]);
        assert!(far(&[home, ("crates/a/src/agent.rs", "impl Debug for Run {}\n")]).is_empty());
    }

    #[test]
    fn an_impl_for_one_argument_stands_with_the_argument() {
        let home = ("crates/a/src/wired.rs", "struct HttpModel<W>(W);\n");
        let of = |text| far(&[home, ("crates/a/src/openai.rs", text)]);
        assert!(of("struct Chat;\nimpl HttpModel<Chat> {}\n").is_empty());
        assert_eq!(of("impl HttpModel<Chat> {}\n"), ["crates/a/src/openai.rs"]);
    }
}
