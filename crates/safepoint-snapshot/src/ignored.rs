//! What git ignores: the `.gitignore` of each directory, the deepest first.

use std::{
    ffi::OsStr,
    os::{fd::AsFd, unix::ffi::OsStrExt as _},
    path::Path,
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use crate::place;

pub(crate) const FILE: &str = ".gitignore";

/// The most bytes of such a file that are read.
const MOST: u64 = 1 << 20;

/// The rules of a directory and of those above it.
#[derive(Debug)]
pub(crate) struct Rules<'r> {
    own: Option<Gitignore>,
    above: Option<&'r Rules<'r>>,
}

impl<'r> Rules<'r> {
    /// Of a directory at this path, which may have the file.
    pub(crate) fn of(above: Option<&'r Self>, directory: impl AsFd, path: &[u8], has_file: bool) -> Self {
        let read = || {
            let (content, _) = place::read(directory, OsStr::new(FILE), MOST).ok()?;
            let mut builder = GitignoreBuilder::new(Path::new(OsStr::from_bytes(path)));
            for line in String::from_utf8_lossy(&content).lines() {
                if builder.add_line(None, line).is_err() {
                    // Git passes over such a line, too.
                }
            }
            builder.build().ok()
        };
        Self { own: if has_file { read() } else { None }, above }
    }

    pub(crate) fn ignores(&self, path: &[u8], is_directory: bool) -> bool {
        let named = Path::new(OsStr::from_bytes(path));
        let mut rules = Some(self);
        while let Some(at) = rules {
            match at.own.as_ref().map_or(Match::None, |own| own.matched(named, is_directory)) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => rules = at.above,
            }
        }
        false
    }
}
