//! The project's files, read once, and Rust with its comments and strings taken out.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

/// One file that git knows, or would add.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// A file made of text, for the tests of rules.
    #[cfg(test)]
    pub(crate) fn of(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is only for tests, benchmarks and examples.
    pub(crate) fn is_test(&self) -> bool {
        ["tests/", "benches/", "examples/"].iter().any(|folder| self.path.contains(folder))
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("loom_tests.rs")
    }

    /// The lines before `#[cfg(test)] mod`, with their numbers from 1.
    pub(crate) fn product(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = self.lines_before_tests();
        self.text.lines().enumerate().take(end).map(|(index, line)| (index + 1, line))
    }

    pub(crate) fn lines_before_tests(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        lines
            .windows(2)
            .position(|pair| pair[0].trim() == "#[cfg(test)]" && pair[1].trim_start().starts_with("mod "))
            .unwrap_or(lines.len())
    }
}

/// All text files of the project.
pub(crate) fn all() -> anyhow::Result<Vec<File>> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .context("git could not list the files")?;
    let mut files = Vec::new();
    for path in String::from_utf8_lossy(&listed.stdout).lines() {
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            files.push(File { path: path.to_owned(), text });
        }
    }
    Ok(files)
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// A line without what is said in it: comments and strings are blanked. Rough, and enough to look for words.
pub(crate) fn code_of(line: &str) -> String {
    let mut code = String::with_capacity(line.len());
    let mut in_string = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                chars.next();
            }
            '"' => in_string = !in_string,
            '/' if !in_string && chars.peek() == Some(&'/') => break,
            _ if in_string => {}
            _ => code.push(c),
        }
    }
    code
}
