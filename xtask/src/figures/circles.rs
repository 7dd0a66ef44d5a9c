//! Import circles: files that cannot be understood one after the other.
//!
//! A file imports the module that a path of it names, by `use` or in an expression. A parent and what lies below it are one
//! family, and no circle.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;

use super::tree;
use crate::{
    api::{
        self,
        names::leaves,
        tree::{Files, Tree},
    },
    source::File,
};

/// Who imports whom, by number.
type Edges = BTreeMap<usize, BTreeSet<usize>>;

/// The crates in which no folder may import one that imports it.
pub(crate) const NONE_BETWEEN_FOLDERS: [&str; 16] = [
    "safepoint",
    "safepoint-bench",
    "safepoint-cli",
    "safepoint-golden",
    "safepoint-http",
    "safepoint-macros",
    "safepoint-model",
    "safepoint-models",
    "safepoint-nodes",
    "safepoint-remote",
    "safepoint-sandbox",
    "safepoint-scope",
    "safepoint-snapshot",
    "safepoint-stores",
    "safepoint-testkit",
    "safepoint-tools",
];

/// The circles between the folders of a crate, each by the names in it.
///
/// # Errors
/// If the source cannot be read.
pub(crate) fn between_folders(files: &[File], name: &str) -> anyhow::Result<Vec<String>> {
    let by_path: Files<'_> = files.iter().map(|file| (file.path.as_str(), file)).collect();
    let Some(tree) = tree(&by_path, name) else { return Ok(Vec::new()) };
    let tree = tree?;
    let rings = rings(&folders(&tree, &edges(&tree)));
    Ok(rings.iter().map(|ring| names(&tree, ring)).collect())
}

fn names(tree: &Tree, ring: &BTreeSet<usize>) -> String {
    let names: Vec<&str> =
        ring.iter().filter_map(|one| tree.modules[*one].path.first()).map(String::as_str).collect();
    names.join(" ")
}

/// Prints the circles of each crate.
///
/// # Errors
/// If the source cannot be read.
pub(super) fn circles(files: &[File]) -> anyhow::Result<()> {
    println!("\nimport circles");
    let by_path: Files<'_> = files.iter().map(|file| (file.path.as_str(), file)).collect();
    for name in api::crates(files) {
        let Some(tree) = tree(&by_path, &name) else { continue };
        let tree = tree?;
        let edges = edges(&tree);
        let of_files = rings(&edges);
        let of_folders = rings(&folders(&tree, &edges));
        println!("  {name:<20} between files: {}; between folders: {}", sizes(&of_files), sizes(&of_folders));
        for ring in &of_folders {
            println!("    {}", names(&tree, ring));
        }
    }
    Ok(())
}

/// How many take part in each circle.
fn sizes(rings: &[BTreeSet<usize>]) -> String {
    let sizes: Vec<String> = rings.iter().map(|ring| ring.len().to_string()).collect();
    if sizes.is_empty() { "none".to_owned() } else { sizes.join(", ") }
}

/// Who imports whom, the root left out: it imports everything.
fn edges(tree: &Tree) -> Edges {
    let mut edges = Edges::new();
    for (from, module) in tree.modules.iter().enumerate().skip(1) {
        let imported = module.items.iter().flat_map(named).filter_map(|path| reached(tree, from, &path));
        // A module inside a file is that file.
        let (from, imported) = (file(tree, from), imported.map(|to| file(tree, to)));
        let is_stranger = |to: &usize| *to != 0 && !is_family(tree, from, *to);
        edges.entry(from).or_default().extend(imported.filter(is_stranger));
    }
    edges
}

fn file(tree: &Tree, module: usize) -> usize {
    let of = &tree.modules[module];
    match of.parent {
        Some(parent) if tree.modules[parent].file == of.file => file(tree, parent),
        _ => module,
    }
}

fn is_family(tree: &Tree, one: usize, other: usize) -> bool {
    let (one, other) = (&tree.modules[one].path, &tree.modules[other].path);
    one.starts_with(other) || other.starts_with(one)
}

/// The module that a path leads to, as far as it leads through modules.
fn reached(tree: &Tree, from: usize, path: &[String]) -> Option<usize> {
    let child = |module: usize, name: &str| {
        let children = tree.modules[module].children.iter().copied();
        children.clone().find(|child| tree.modules[*child].path.last().is_some_and(|last| last == name))
    };
    let (first, mut rest) = path.split_first()?;
    let mut at = match first.as_str() {
        "crate" => 0,
        "super" => tree.modules[from].parent?,
        "self" => from,
        name => child(from, name)?,
    };
    while let Some((name, after)) = rest.split_first() {
        at = match name.as_str() {
            "super" => tree.modules[at].parent?,
            name => match child(at, name) {
                Some(next) => next,
                None => break,
            },
        };
        rest = after;
    }
    Some(at)
}

/// The paths that an item names and that begin in this crate.
fn named(item: &syn::Item) -> Vec<Vec<String>> {
    match item {
        syn::Item::Use(item) => leaves(&item.tree).into_iter().map(|leaf| leaf.path).collect(),
        syn::Item::Mod(_) => Vec::new(),
        other => {
            let mut paths = Vec::new();
            scan(other.to_token_stream(), &mut paths);
            paths
        }
    }
}

fn scan(tokens: TokenStream, paths: &mut Vec<Vec<String>>) {
    let mut path: Vec<String> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => {}
            TokenTree::Ident(name) if !path.is_empty() || name == "crate" || name == "super" => {
                path.push(name.to_string());
            }
            other => {
                if path.len() > 1 {
                    paths.push(std::mem::take(&mut path));
                }
                path.clear();
                if let TokenTree::Group(group) = other {
                    scan(group.stream(), paths);
                }
            }
        }
    }
    paths.extend((path.len() > 1).then_some(path));
}

/// The same between the folders at the top: each module below the root, with all that lies below it.
fn folders(tree: &Tree, edges: &Edges) -> Edges {
    let top = |module: usize| {
        let name = tree.modules[module].path.first();
        tree.modules[0]
            .children
            .iter()
            .copied()
            .find(|top| tree.modules[*top].path.first() == name)
            .unwrap_or(module)
    };
    let mut between = Edges::new();
    for (from, imported) in edges {
        let from = top(*from);
        let others = imported.iter().map(|to| top(*to)).filter(|to| *to != from);
        between.entry(from).or_default().extend(others);
    }
    between
}

/// Those that reach one another, the largest first.
fn rings(edges: &Edges) -> Vec<BTreeSet<usize>> {
    let reach: BTreeMap<usize, BTreeSet<usize>> =
        edges.keys().map(|from| (*from, reach(edges, *from))).collect();
    let mut rings = BTreeSet::new();
    for (from, reached) in &reach {
        let back = |to: &&usize| reach.get(*to).is_some_and(|back| back.contains(from));
        let ring: BTreeSet<usize> = reached.iter().filter(back).copied().collect();
        if ring.len() > 1 {
            rings.insert(ring);
        }
    }
    let mut rings: Vec<BTreeSet<usize>> = rings.into_iter().collect();
    rings.sort_by_key(|ring| std::cmp::Reverse(ring.len()));
    rings
}

fn reach(edges: &Edges, from: usize) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        let imported = edges.get(&at).into_iter().flatten();
        next.extend(imported.filter(|to| seen.insert(**to)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(files: &[(&str, &str)]) -> (usize, usize) {
        let files: Vec<File> = files.iter().map(|(path, text)| File::of(path, text)).collect();
        let by_path: Files<'_> = files.iter().map(|file| (file.path.as_str(), file)).collect();
        let tree = Tree::read(&by_path, "src/lib.rs").unwrap();
        let edges = edges(&tree);
        (rings(&edges).len(), rings(&folders(&tree, &edges)).len())
    }

    #[test]
    fn a_circle_is_found_and_a_family_is_none() {
        let lib = ("src/lib.rs", "mod a; mod b;");
        let line =
            [lib, ("src/a.rs", "use crate::b::B; mod c;"), ("src/a/c.rs", "use super::A;"), ("src/b.rs", "")];
        assert_eq!(counted(&line), (0, 0));
        let ring = [lib, ("src/a.rs", "use crate::b::B;"), ("src/b.rs", "fn f() -> crate::a::A { todo!() }")];
        assert_eq!(counted(&ring), (1, 1));
        let below = [
            lib,
            ("src/a.rs", "mod c; mod d;"),
            ("src/b.rs", ""),
            ("src/a/c.rs", "use super::d::D;"),
            ("src/a/d.rs", "use crate::a::c;"),
        ];
        assert_eq!(counted(&below), (1, 0));
    }
}
