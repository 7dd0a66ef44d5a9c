//! A tree as text: in full, as a base that many snapshots share, and as what differs from a base.
//!
//! One line is one path. Paths and labels are percent-encoded, so that each byte of a name survives. The form is frozen: a
//! folder of an older release is read.

use std::fmt::Write as _;

use crate::{
    content::Hash,
    snapshot::{NotTaken, Snapshot},
    tree::{Entry, NodeKind, RelPath, Stamp, Tree},
};

const FORMAT: &str = "safepoint-snapshot 1";

/// A snapshot's own file: what it is called, and how it differs from its base.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) snapshot: Snapshot,
    pub(crate) base: Hash,
    /// The lines between its head and its end.
    pub(crate) lines: String,
}

/// Lines of the head.
const HEAD: usize = 5;

impl Manifest {
    pub(crate) fn write(&self) -> String {
        let Snapshot { taken, label, not_taken, .. } = &self.snapshot;
        let (base, lines) = (&self.base, &self.lines);
        let label = encoded(label.as_bytes());
        let count = lines.lines().count();
        format!(
            "{FORMAT}\ntaken {taken}\nlabel {label}\nleft-out {not_taken}\nbase {base}\n{lines}end {count}\n"
        )
    }

    /// None if the file is of another form, or was cut short.
    pub(crate) fn read(id: &str, text: &str) -> Option<Self> {
        let mut head = text.splitn(HEAD + 1, '\n');
        let (format, rest) = (head.next()?, head.by_ref().take(HEAD - 1).collect::<Vec<_>>());
        let [taken, label, not_taken, base] = rest[..] else { return None };
        let (lines, count) = head.next()?.strip_suffix('\n')?.rsplit_once("end ")?;
        if format != FORMAT || !(lines.is_empty() || lines.ends_with('\n')) {
            return None;
        }
        if lines.lines().count() != count.parse::<usize>().ok()? {
            return None;
        }
        let label = decoded(label.strip_prefix("label ")?)?;
        let snapshot = Snapshot {
            id: id.to_owned(),
            taken: taken.strip_prefix("taken ")?.parse().ok()?,
            label: String::from_utf8(label).ok()?,
            not_taken: not_taken.strip_prefix("left-out ")?.parse().ok()?,
        };
        let base = Hash::read(base.strip_prefix("base ")?)?;
        Some(Self { snapshot, base, lines: lines.to_owned() })
    }
}

/// All of a tree.
pub(crate) fn whole(tree: &Tree) -> String {
    changes(&Tree::default(), tree)
}

/// What makes the one tree of the other.
pub(crate) fn changes(from: &Tree, to: &Tree) -> String {
    let mut text = String::new();
    for path in from.entries.keys().filter(|path| !to.entries.contains_key(*path)) {
        line(&mut text, "- ", path);
    }
    for path in from.passed.keys().filter(|path| !to.passed.contains_key(*path)) {
        line(&mut text, "! ", path);
    }
    for (path, entry) in to.entries.iter().filter(|(path, entry)| from.entries.get(*path) != Some(entry)) {
        line(&mut text, &entry_head(entry), path);
    }
    for (path, why) in to.passed.iter().filter(|(path, why)| from.passed.get(*path) != Some(why)) {
        line(&mut text, &format!("p {} ", why.word()), path);
    }
    text
}

/// Makes these changes. None if a line is not understood.
pub(crate) fn apply(tree: &mut Tree, lines: &str) -> Option<()> {
    for line in lines.lines() {
        let (head, path) = line.rsplit_once(' ')?;
        let path = decoded(path)?;
        let words: Vec<&str> = head.split(' ').collect();
        match words[..] {
            ["-"] => drop(tree.entries.remove(&path)),
            ["!"] => drop(tree.passed.remove(&path)),
            ["p", word] => {
                let why = NotTaken::ALL.into_iter().find(|why| why.word() == word)?;
                tree.passed.insert(path, why);
            }
            _ => drop(tree.entries.insert(path, entry(&words)?)),
        }
    }
    Some(())
}

/// The contents that lines refer to, with their sizes.
pub(crate) fn contents(lines: &str) -> Vec<(Hash, u64)> {
    let content = |line: &str| {
        let mut words = line.strip_prefix("f ")?.split(' ').skip(1);
        let size = words.next()?.parse().ok()?;
        Some((Hash::read(words.next()?)?, size))
    };
    lines.lines().filter_map(content).collect()
}

fn line(text: &mut String, head: &str, path: &RelPath) {
    text.push_str(head);
    text.push_str(&encoded(path));
    text.push('\n');
}

fn entry_head(entry: &Entry) -> String {
    match &entry.kind {
        NodeKind::Directory { mode } => format!("d {mode:o} "),
        NodeKind::Link { target } => format!("l {} ", encoded(target)),
        NodeKind::File { mode, size, hash } => {
            let stamp = entry.stamp.map_or_else(
                || "-".to_owned(),
                |stamp| format!("{},{},{}", stamp.inode, stamp.modified, stamp.changed),
            );
            format!("f {mode:o} {size} {hash} {stamp} ")
        }
    }
}

fn entry(words: &[&str]) -> Option<Entry> {
    let bits = |text: &str| u32::from_str_radix(text, 8).ok();
    let kind = match *words {
        ["d", mode] => NodeKind::Directory { mode: bits(mode)? },
        ["l", target] => NodeKind::Link { target: decoded(target)? },
        ["f", mode, size, hash, stamp] => {
            let kind =
                NodeKind::File { mode: bits(mode)?, size: size.parse().ok()?, hash: Hash::read(hash)? };
            return Some(Entry { kind, stamp: if stamp == "-" { None } else { Some(read_stamp(stamp)?) } });
        }
        _ => return None,
    };
    Some(Entry { kind, stamp: None })
}

fn read_stamp(text: &str) -> Option<Stamp> {
    let mut parts = text.split(',');
    let inode = parts.next()?.parse().ok()?;
    let (modified, changed) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(Stamp { inode, modified, changed })
}

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'%' | 0..=b' ' | 0x7f.. => drop(write!(text, "%{byte:02x}")),
            plain => text.push(char::from(*plain)),
        }
    }
    text
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use safepoint_golden::Golden;

    use super::*;

    fn example() -> Tree {
        let mut tree = Tree::default();
        let mut add =
            |path: &[u8], kind, stamp| drop(tree.entries.insert(path.to_vec(), Entry { kind, stamp }));
        let stamp = Stamp { inode: 7, modified: -1, changed: 1_764_031_680_000_000_001 };
        let file = NodeKind::File { mode: 0o4755, size: 3, hash: Hash::of(b"abc") };
        add(b"src", NodeKind::Directory { mode: 0o755 }, None);
        add(b"src/a b%", file.clone(), Some(stamp));
        add(b"src/\xff\n", file, None);
        add(b"link", NodeKind::Link { target: b"../else where".to_vec() }, None);
        let passed = NotTaken::ALL.into_iter().map(|why| (why.word().as_bytes().to_vec(), why));
        tree.passed.extend(passed);
        tree
    }

    fn manifest(lines: String) -> Manifest {
        let snapshot = Snapshot {
            id: "00000000000000000001-2-3".into(),
            taken: 1_764_031_680_000_000_000,
            label: "before turn-3 of ä b".into(),
            not_taken: 5,
        };
        Manifest { snapshot, base: Hash::of(b""), lines }
    }

    /// S7.31: a folder is read by later releases.
    #[test]
    fn a_manifest_keeps_its_form() {
        let tree = example();
        let mut other = tree.clone();
        other.entries.remove(b"link".as_slice());
        other.passed.remove(b"special".as_slice());
        let file = Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/manifest.txt");
        file.lines("a base", whole(&tree).lines().map(str::to_owned))
            .lines("what differs from it", changes(&tree, &other).lines().map(str::to_owned))
            .lines("a snapshot", manifest(changes(&tree, &other)).write().lines().map(str::to_owned))
            .check();
    }

    #[test]
    fn what_is_written_is_read_again() {
        let tree = example();
        let mut read = Tree::default();
        apply(&mut read, &whole(&tree)).unwrap();
        assert_eq!(read, tree);
        let mut other = tree.clone();
        other.entries.retain(|path, _| path.starts_with(b"src"));
        apply(&mut read, &changes(&tree, &other)).unwrap();
        assert_eq!(read, other);
        let text = manifest(whole(&tree)).write();
        let again = Manifest::read("x", &text).unwrap();
        assert_eq!((again.lines, again.snapshot.label), (whole(&tree), "before turn-3 of ä b".to_owned()));
    }

    /// S7.31
    #[test]
    fn a_manifest_that_was_cut_short_is_none() {
        let text = manifest(whole(&example())).write();
        for end in 0..text.len() {
            assert!(Manifest::read("x", &text[..end]).is_none(), "cut at {end}");
        }
    }
}
