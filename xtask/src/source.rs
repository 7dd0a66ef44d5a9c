//! The project's files, read once, and Rust with its comments and strings taken out.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

mod blank;

use blank::Parted;

/// One text file that git knows, or would add.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text line by line, without what comments and strings say; empty for what is not Rust.
    code: Vec<String>,
    /// What comments and strings hold, line by line; of what is not Rust, the text.
    prose: Vec<String>,
}

impl File {
    /// A file of this text.
    pub(crate) fn of(path: &str, text: &str) -> Self {
        let parted = match path.ends_with(".rs") {
            true => blank::part(text),
            false => Parted { code: String::new(), prose: text.into() },
        };
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        let (code, prose) = (lines(&parted.code), lines(&parted.prose));
        Self { path: path.into(), text: text.into(), code, prose }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn lies_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }

    /// Whether it is only for tests, benchmarks and examples.
    pub(crate) fn is_test(&self) -> bool {
        ["tests/", "benches/", "examples/"].iter().any(|folder| self.path.contains(folder))
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("loom_tests.rs")
    }

    /// The modules in separate files that it declares for tests alone, each by its path without `.rs`.
    pub(crate) fn test_modules(&self) -> impl Iterator<Item = String> {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        let folder = ["/lib", "/main"].iter().find_map(|root| stem.strip_suffix(root)).unwrap_or(stem);
        let is_for_tests =
            |line: &str| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,");
        self.code.windows(2).filter_map(move |pair| {
            let name = pair[1].trim().strip_prefix("mod ")?.strip_suffix(';')?;
            is_for_tests(pair[0].trim()).then(|| format!("{folder}/{name}"))
        })
    }

    /// Whether it is a program that must not compile.
    pub(crate) fn is_wrong_on_purpose(&self) -> bool {
        self.path.contains("tests/ui/")
    }

    /// Every line of code, with its number from 1.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }

    /// Every line of prose, with its number from 1.
    pub(crate) fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        self.prose.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }

    /// The lines of code before the inline tests.
    pub(crate) fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code().take(self.product_lines())
    }

    /// The lines as they stand, before the inline tests.
    pub(crate) fn product(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().take(self.product_lines()).map(|(index, line)| (index + 1, line))
    }

    /// The number of lines before `#[cfg(test)] mod name {`. A test module in a separate file ends nothing.
    pub(crate) fn product_lines(&self) -> usize {
        let opens = |line: &str| line.trim_start().starts_with("mod ") && line.trim_end().ends_with('{');
        self.code
            .windows(2)
            .position(|pair| pair[0].trim() == "#[cfg(test)]" && opens(&pair[1]))
            .unwrap_or(self.code.len())
    }
}

/// Programs in the style of those who made what they drive: none of the project's rules holds there.
const FOREIGN: &str = "crates/safepoint-stop-test/targets/";

/// All text files of the project.
pub(crate) fn all() -> anyhow::Result<Vec<File>> {
    let root = root();
    // What cannot be read as text is binary, or was deleted and not yet committed.
    let read = |path: &String| fs::read_to_string(root.join(path)).ok().map(|text| File::of(path, &text));
    Ok(paths()?.iter().filter(|path| !path.starts_with(FOREIGN)).filter_map(read).collect())
}

/// Every file that git knows, or would add, from the root.
pub(crate) fn paths() -> anyhow::Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .context("git could not be started to list the files")?;
    if !listed.status.success() {
        bail!("git could not list the files: {}", String::from_utf8_lossy(&listed.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect())
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}
