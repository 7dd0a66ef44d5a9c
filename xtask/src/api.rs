//! `api`: what each published crate shows, one fact a line, in `crates/NAME/api.txt`.
//!
//! It is read from the source and needs no compiler: paths are followed through `pub mod` and `pub use`; types in a
//! signature stand as they are written there. `tidy` holds the files to the source.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, bail};

use crate::source::{self, File};

pub(crate) mod made;
pub(crate) mod names;
mod program;
mod surface;
mod text;
pub(crate) mod tree;

use surface::Surface;
use tree::{Files, Tree};

/// What a crate shows.
pub(crate) struct Api {
    /// The crate's name.
    pub(crate) name: String,
    /// The file that holds it, from the root.
    pub(crate) path: String,
    text: String,
    /// Types and traits that a program can name, those in `raw` left out.
    pub(crate) types: usize,
    /// Names at the root that are no modules.
    pub(crate) at_root: usize,
    /// What is against the rules of what a program sees.
    pub(crate) faults: Vec<String>,
}

/// Compares the files with the source, or with `--write` writes them.
///
/// # Errors
/// If they differ, or the source cannot be read.
pub(crate) fn api(args: &[String]) -> anyhow::Result<()> {
    let files = source::all()?;
    let apis = apis(&files)?;
    if args.iter().any(|arg| arg == "--write") {
        for api in &apis {
            fs::write(source::root().join(&api.path), &api.text).with_context(|| api.path.clone())?;
            println!("api: {}: {} types, {} names at the root", api.path, api.types, api.at_root);
        }
        return Ok(());
    }
    let mut count = 0;
    for api in &apis {
        for difference in api.differences(&files) {
            println!("{}: {difference}", api.path);
            count += 1;
        }
    }
    if count > 0 {
        bail!("{count} differences; if they are meant, run `cargo xtask api --write`");
    }
    println!("api: {} crates show what their api.txt says", apis.len());
    Ok(())
}

/// What every published library shows.
///
/// # Errors
/// If the source cannot be read.
pub(crate) fn apis(files: &[File]) -> anyhow::Result<Vec<Api>> {
    let by_path: Files<'_> = files.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut apis = Vec::new();
    for name in crates(files) {
        let (manifest, root) = (format!("crates/{name}/Cargo.toml"), format!("crates/{name}/src/lib.rs"));
        let is_published =
            by_path.get(manifest.as_str()).is_some_and(|file| !file.text.contains("publish = false"));
        if is_published && by_path.contains_key(root.as_str()) {
            let tree = Tree::read(&by_path, &root)?;
            let surface = Surface::of(&tree);
            let text = surface.lines.iter().map(|line| format!("{line}\n")).collect();
            let (types, at_root) = (surface.types(&tree), surface.at_root.len());
            let faults = match name == program::ENGINE {
                true => program::faults(&surface.at_root, &surface.repeated(), types),
                false => Vec::new(),
            };
            apis.push(Api { path: format!("crates/{name}/api.txt"), name, text, types, at_root, faults });
        }
    }
    Ok(apis)
}

/// The names of the folders below `crates`.
pub(crate) fn crates(files: &[File]) -> BTreeSet<String> {
    let name = |file: &File| Some(file.path.strip_prefix("crates/")?.split_once('/')?.0.to_owned());
    files.iter().filter_map(name).collect()
}

impl Api {
    /// Lines that are gone, with `-`, and lines that are new, with `+`.
    pub(crate) fn differences(&self, files: &[File]) -> Vec<String> {
        let held = files.iter().find(|file| file.path == self.path).map_or("", |file| file.text.as_str());
        let (held, shown): (BTreeSet<&str>, BTreeSet<&str>) =
            (held.lines().collect(), self.text.lines().collect());
        let gone = held.difference(&shown).map(|line| format!("- {line}"));
        let new = shown.difference(&held).map(|line| format!("+ {line}"));
        gone.chain(new).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::of(path, text)).collect();
        let by_path: Files<'_> = files.iter().map(|file| (file.path.as_str(), file)).collect();
        let tree = Tree::read(&by_path, "src/lib.rs").unwrap();
        Surface::of(&tree).lines.into_iter().collect()
    }

    #[test]
    fn what_has_two_paths_is_found() {
        let lib =
            "pub mod a; pub use a::A; pub mod b { pub use other::C; } pub use other::C; mod d; pub use d::d;";
        let (a, d) = ("pub struct A; pub struct B;", "pub use d::d; mod d { pub fn d() {} }");
        let files = [File::of("src/lib.rs", lib), File::of("src/a.rs", a), File::of("src/d.rs", d)];
        let by_path: Files<'_> = files.iter().map(|file| (file.path.as_str(), file)).collect();
        let surface = Surface::of(&Tree::read(&by_path, "src/lib.rs").unwrap());
        assert_eq!(surface.repeated(), ["A, a::A", "C, b::C"]);
    }

    #[test]
    fn only_what_can_be_reached_is_shown_by_its_shortest_path() {
        let lib = "pub mod a; mod b; pub use b::B; pub use other::{C, d as e}; mod hidden { pub struct No; }
            #[cfg(test)] mod tests;";
        let a = "pub use crate::b::{B, deep::*}; pub(crate) struct No; pub fn run(mut x: u8) -> u8 { x }";
        let b = "pub mod deep; #[derive(Clone)] pub struct B { pub x: u8, y: u8 }
            impl B { pub fn new() -> Self { todo!() } fn no() {} } impl From<u8> for B { fn from(_: u8) -> Self { todo!() } }";
        let deep = "#[non_exhaustive] pub enum Deep { One(u8), Two { x: u8 } }";
        let files = [("src/lib.rs", lib), ("src/a.rs", a), ("src/b.rs", b), ("src/b/deep.rs", deep)];
        assert_eq!(
            shown(&files),
            [
                "B: #[derive(Clone)] pub struct B { .. }",
                "B: impl From<u8> for B",
                "B::new: pub fn new() -> Self",
                "B::x: u8",
                "C: pub use other::C",
                "a: pub mod",
                "a::B: pub use B",
                "a::Deep: #[non_exhaustive] pub enum Deep",
                "a::Deep::One: One(u8)",
                "a::Deep::Two: Two { x: u8 }",
                "a::run: pub fn run(x: u8) -> u8",
                "e: pub use other::d",
            ]
        );
    }
}
