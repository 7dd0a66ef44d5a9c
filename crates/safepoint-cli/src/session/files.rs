//! The files below the root, as they are named in messages: walked in the background, looked through at each key.
//!
//! **Invariants**
//! - At most [`MOST`] files and directories are known. What `.gitignore` names and `.git` itself are not; no symbolic link is followed.
//! - A look that is not the newest any more ends early.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ignore::WalkBuilder;

use crate::sync::lock;

mod fuzzy;
#[cfg(test)]
mod tests;

use fuzzy::{Best, Query};

/// Files and directories that are known at most.
const MOST: usize = 200_000;
/// A walk that is older is made anew when files are asked for again.
const FRESH: Duration = Duration::from_secs(10);
/// Names that are handed over at once during a walk.
const PART: usize = 2_048;
/// Files that are shown.
const SHOWN: usize = 20;
/// After this many files a look sees whether there is a newer one.
const LOOK: usize = 1_024;

/// The files below a root.
pub(crate) struct Files {
    root: PathBuf,
    /// Held to take, to add or to replace the parts; a walk and a look hold it for one step each.
    known: Mutex<Known>,
    /// The number of the newest look. Relaxed: a look that sees it late does a little more than it needs to.
    newest: AtomicU64,
}

#[derive(Default)]
struct Known {
    parts: Vec<Arc<Part>>,
    /// When the last walk has ended, and whether there is one now.
    walked: Option<Instant>,
    is_walking: bool,
}

/// Some of the names.
#[derive(Default)]
struct Part {
    names: Names,
    count: usize,
}

/// Names one behind the other, as they are and in small letters, with which letters each has.
#[derive(Default)]
struct Names {
    text: String,
    small: String,
    /// Ends in both, and the letters.
    ends: Vec<(usize, usize, u64)>,
}

/// The best files for a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fitting {
    pub(crate) paths: Vec<String>,
    /// How many files are known.
    pub(crate) of: usize,
    /// Whether these are all.
    pub(crate) is_whole: bool,
}

impl Files {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, known: Mutex::default(), newest: AtomicU64::new(0) }
    }

    /// Whether the files are to be walked before or while they are looked through. A caller that gets yes walks.
    pub(crate) fn is_due(&self) -> bool {
        let mut known = lock(&self.known);
        let is_due = !known.is_walking && known.walked.is_none_or(|at| at.elapsed() > FRESH);
        known.is_walking |= is_due;
        is_due
    }

    /// Walks all files. The first time what is found can be looked through at once; later what was known stays until the end.
    /// It blocks.
    pub(crate) fn walk(&self) {
        let is_first = lock(&self.known).walked.is_none();
        let (mut part, mut parts) = (Part::default(), Vec::new());
        let mut add = |part: Part| match is_first {
            true => lock(&self.known).parts.push(Arc::new(part)),
            false => parts.push(Arc::new(part)),
        };
        let walk = WalkBuilder::new(&self.root)
            .hidden(false)
            .require_git(false)
            .same_file_system(true)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        for entry in walk.flatten().take(MOST + 1) {
            let Ok(path) = entry.path().strip_prefix(&self.root) else { continue };
            let Some(name) = path.to_str().filter(|name| !name.is_empty() && !name.contains('\n')) else {
                continue;
            };
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            part.add(name, is_directory);
            if part.count == PART {
                add(std::mem::take(&mut part));
            }
        }
        if part.count > 0 {
            add(part);
        }
        let mut known = lock(&self.known);
        if !is_first {
            known.parts = parts;
        }
        (known.walked, known.is_walking) = (Some(Instant::now()), false);
    }

    /// Says that a look begins: every earlier one ends.
    pub(crate) fn begin(&self) -> u64 {
        // Relaxed: only the number matters, and it comes once.
        self.newest.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The files that fit best; none if a newer look has begun. It takes some milliseconds.
    pub(crate) fn look(&self, query: &str, number: u64) -> Option<Fitting> {
        let (parts, is_whole) = {
            let known = lock(&self.known);
            (known.parts.clone(), known.walked.is_some())
        };
        let (query, mut best) = (Query::new(query), Best::new(SHOWN));
        let mut seen = 0;
        for part in &parts {
            for (name, small, letters) in part.names() {
                seen += 1;
                // Relaxed: it pairs with `begin`; one that is seen late costs a little work.
                if seen % LOOK == 0 && self.newest.load(Ordering::Relaxed) != number {
                    return None;
                }
                best.add(&query, (name, small, letters));
            }
        }
        Some(Fitting { paths: best.into_names(), of: seen, is_whole })
    }
}

impl Part {
    fn add(&mut self, name: &str, is_directory: bool) {
        let names = &mut self.names;
        let from = names.small.len();
        names.text.push_str(name);
        names.small.extend(name.chars().flat_map(char::to_lowercase));
        if is_directory {
            names.text.push('/');
            names.small.push('/');
        }
        let letters = fuzzy::letters(&names.small.as_bytes()[from..]);
        names.ends.push((names.text.len(), names.small.len(), letters));
        self.count += 1;
    }

    fn names(&self) -> impl Iterator<Item = (&str, &[u8], u64)> {
        let Names { text, small, ends } = &self.names;
        let starts = std::iter::once((0, 0)).chain(ends.iter().map(|(text, small, _)| (*text, *small)));
        starts.zip(ends).map(move |((from, small_from), (to, small_to, letters))| {
            (&text[from..*to], &small.as_bytes()[small_from..*small_to], *letters)
        })
    }
}
