//! Rule about files that are no text: pictures of the documentation, and nothing else; and no file is large.

use std::fs;

use super::Fault;
use crate::source;

/// The largest file, in bytes: a picture fits, what a tool downloaded does not.
const LARGEST: usize = 200 << 10;

/// Where files that are no text may lie.
const PICTURES: &str = "docs/pictures/";

/// The faults of every file of the project, by path.
///
/// # Errors
/// If git cannot list the files.
pub(super) fn faults() -> anyhow::Result<Vec<(String, Fault)>> {
    let root = source::root();
    let read = |path: String| {
        // A file that was deleted and not yet committed is no longer there.
        let bytes = fs::read(root.join(&path)).ok()?;
        fault(&path, &bytes).map(|fault| (path, fault))
    };
    Ok(source::paths()?.into_iter().filter_map(read).collect())
}

fn fault(path: &str, bytes: &[u8]) -> Option<Fault> {
    if bytes.len() > LARGEST {
        let size = bytes.len() >> 10;
        return Some(Fault::new(
            1,
            format!("{size} KiB, at most {}: split it, or fetch it by name", LARGEST >> 10),
        ));
    }
    let is_binary = bytes.contains(&0) && !path.starts_with(PICTURES);
    is_binary.then(|| Fault::new(1, format!("a NUL byte: only pictures below {PICTURES} are no text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_are_binary() {
        assert!(fault("crates/a/tests/a.bin", b"a\0b").is_some());
        assert!(fault("docs/pictures/busy.png", b"a\0b").is_none());
        assert!(fault("docs/a.md", "ä".as_bytes()).is_none());
    }

    #[test]
    fn no_file_is_large() {
        let bytes = vec![b'a'; LARGEST + 1];
        assert!(fault("docs/pictures/busy.png", &bytes).is_some());
        assert!(fault("CHANGELOG.md", &bytes).is_some());
        assert!(fault("CHANGELOG.md", &bytes[1..]).is_none());
    }
}
