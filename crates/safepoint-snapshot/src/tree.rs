//! What stands under a root: each path with its content, and what was not taken.
//!
//! **Invariants**: paths are relative, their parts are separated by one `/`, and no part is empty, `.` or `..`; they need not
//! be UTF-8. A directory comes before what is in it.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    ops::Bound,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use crate::{content::Hash, snapshot::NotTaken};

/// A path below the root, as bytes.
pub(crate) type RelPath = Vec<u8>;

/// What stands at a path. Exhaustive: the three that are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Directory { mode: u32 },
    File { mode: u32, size: u64, hash: Hash },
    Link { target: Vec<u8> },
}

/// By what a file is known to be unchanged without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) inode: u64,
    /// In nanoseconds since 1970.
    pub(crate) modified: i128,
    pub(crate) changed: i128,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: NodeKind,
    /// None if it may have changed since without another stamp; and for what is no file.
    pub(crate) stamp: Option<Stamp>,
}

/// What a tree says of a path. Exhaustive: nothing is there, this is there, or it was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen<'t> {
    Absent,
    There(&'t NodeKind),
    Unknown(NotTaken),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) entries: BTreeMap<RelPath, Entry>,
    pub(crate) passed: BTreeMap<RelPath, NotTaken>,
}

impl Tree {
    pub(crate) fn at(&self, path: &[u8]) -> Seen<'_> {
        if let Some(entry) = self.entries.get(path) {
            return Seen::There(&entry.kind);
        }
        let passed = with_parents(path).find_map(|path| self.passed.get(path));
        passed.map_or(Seen::Absent, |why| Seen::Unknown(*why))
    }

    /// Whether the path is there, or something below it.
    pub(crate) fn reaches(&self, path: &[u8]) -> bool {
        let below = [path, b"/"].concat();
        let first = self.entries.range::<[u8], _>((Bound::Included(&*below), Bound::Unbounded)).next();
        self.entries.contains_key(path) || first.is_some_and(|(other, _)| other.starts_with(&below))
    }

    /// Every path of two trees once, with what each says of it where they differ.
    pub(crate) fn differing<'t>(&'t self, other: &'t Self) -> impl Iterator<Item = &'t RelPath> {
        let kind = |tree: &'t Self, path: &RelPath| tree.entries.get(path).map(|entry| &entry.kind);
        let paths: std::collections::BTreeSet<_> = self.entries.keys().chain(other.entries.keys()).collect();
        paths.into_iter().filter(move |path| kind(self, path) != kind(other, path))
    }
}

/// The path, and each directory that it is in, the nearest first.
pub(crate) fn with_parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path), |path| parent(path))
}

/// The directory that a path is in; none if that is the root.
pub(crate) fn parent(path: &[u8]) -> Option<&[u8]> {
    path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at])
}

/// The path of a name in a directory; the root's is empty.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> RelPath {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

/// The last part of a path.
pub(crate) fn name_of(path: &[u8]) -> &OsStr {
    OsStr::from_bytes(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default())
}

pub(crate) fn shown(path: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(path)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str], passed: &[&str]) -> Tree {
        let entry = Entry { kind: NodeKind::Directory { mode: 0o755 }, stamp: None };
        Tree {
            entries: paths.iter().map(|path| (path.as_bytes().to_vec(), entry.clone())).collect(),
            passed: passed.iter().map(|path| (path.as_bytes().to_vec(), NotTaken::Ignored)).collect(),
        }
    }

    #[test]
    fn a_path_below_what_was_not_taken_is_unknown_and_not_absent() {
        let tree = tree(&["a", "target/kept"], &["target"]);
        assert_eq!(tree.at(b"target/x/y"), Seen::Unknown(NotTaken::Ignored));
        assert_eq!(tree.at(b"targets"), Seen::Absent);
        assert!(matches!(tree.at(b"target/kept"), Seen::There(_)));
    }

    #[test]
    fn a_tree_reaches_what_is_above_its_paths_and_no_neighbour() {
        let tree = tree(&["a-b", "a/b/c", "x"], &[]);
        for (path, is_there) in
            [("a", true), ("a/b", true), ("a/b/c", true), ("a/", false), ("a/c", false), ("x/y", false)]
        {
            assert_eq!(tree.reaches(path.as_bytes()), is_there, "{path}");
        }
    }
}
