//! Which processes live, by a mark in their environment, which whatever they start has too.

use std::{fs, path::Path};

/// Those that have this text in their environment, but for those of this program, as `NAME (pid N)`.
pub(in crate::peers) fn marked(mark: &str, but: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let of = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let environ = fs::read(entry.path().join("environ")).ok()?;
        environ.windows(mark.len()).find(|part| *part == mark.as_bytes())?;
        let is_but = fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == but);
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        (!is_but).then(|| format!("{} (pid {pid})", name.trim()))
    };
    entries.filter_map(of).collect()
}
