//! Golden files: what the workspace writes today, compared with what it wrote before.
//!
//! A golden file has sections. A section opens with `# name` and has one value a line. Names of sections are not names of
//! Rust types, so that a type can be renamed and its file stays as it is. `SAFEPOINT_WRITE_GOLDEN=1` writes the files anew.
//!
//! **Invariants**: a file is written or compared as a whole, never in parts.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

/// The variable that makes a test write its golden file.
pub const WRITE: &str = "SAFEPOINT_WRITE_GOLDEN";

/// How many lines around the first difference are shown.
const AROUND: usize = 2;

/// One value of each variant of an enum, in the order written here. A variant without a value does not compile, and a
/// value that is no such variant panics.
#[macro_export]
macro_rules! each {
    ($enum:ty { $($variant:pat => $($value:expr),+);+ $(;)? }) => {{
        let _each_variant_is_here = |value: &$enum| match value { $($variant => {})+ };
        let values: Vec<$enum> = vec![$($({
            let value: $enum = $value;
            assert!(matches!(&value, $variant), "not a `{}`", stringify!($variant));
            value
        }),+),+];
        values
    }};
}

/// A golden file in the making.
#[derive(Debug)]
pub struct Golden {
    path: PathBuf,
    text: String,
}

impl Golden {
    /// The file of this path below the root of a package: `Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/a.txt")`.
    #[must_use]
    pub fn file(root: &str, path: &str) -> Self {
        Self { path: Path::new(root).join(path), text: String::new() }
    }

    /// A section of values as JSON, each of which is read back and written again as the same line.
    ///
    /// # Panics
    /// If a value cannot be written, or is another one after it was read.
    #[must_use]
    pub fn json<T: Serialize + DeserializeOwned>(
        self,
        section: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        self.lines(
            section,
            values.into_iter().map(|value| {
                let line = written(&value);
                let read: T = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line}: {why}"));
                assert_eq!(written(&read), line, "{section}: it is read as another value");
                line
            }),
        )
    }

    /// A section of values as JSON, which nothing reads back.
    ///
    /// # Panics
    /// If a value cannot be written.
    #[must_use]
    pub fn json_out<T: Serialize>(self, section: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.lines(section, values.into_iter().map(|value| written(&value)))
    }

    /// A section of lines.
    #[must_use]
    pub fn lines(mut self, section: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        writeln!(self.text, "# {section}").expect("a string takes everything");
        for line in lines {
            self.text.push_str(line.as_ref());
            self.text.push('\n');
        }
        self
    }

    /// Compares with the file, or writes it.
    ///
    /// # Panics
    /// If they differ, with the first difference, or if the file cannot be read or written.
    pub fn check(self) {
        let path = self.path.display();
        if env::var_os(WRITE).is_some() {
            let folder = self.path.parent().expect("the file has a folder");
            fs::create_dir_all(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
            return fs::write(&self.path, self.text).unwrap_or_else(|why| panic!("{path}: {why}"));
        }
        let golden = fs::read_to_string(&self.path).unwrap_or_else(|why| panic!("{path}: {why}"));
        if let Some(difference) = difference(&golden, &self.text) {
            panic!(
                "{path} is not what is written today; if that is meant, {WRITE}=1 writes it anew\n{difference}"
            );
        }
    }
}

/// The values of one section of a golden file.
///
/// # Panics
/// If there is no such section, or a line of it cannot be read.
#[must_use]
pub fn section<T: DeserializeOwned>(text: &str, name: &str) -> Vec<T> {
    let mut lines = text.lines().skip_while(|line| line.strip_prefix("# ") != Some(name));
    assert!(lines.next().is_some(), "there is no section `{name}`");
    lines
        .take_while(|line| !line.starts_with("# "))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}")))
        .collect()
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|why| panic!("it cannot be written: {why}"))
}

/// The first place where two texts differ, with its surroundings.
fn difference(golden: &str, today: &str) -> Option<String> {
    if golden == today {
        return None;
    }
    let (before, after): (Vec<&str>, Vec<&str>) = (golden.lines().collect(), today.lines().collect());
    let same = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
    let mut text = String::new();
    for line in &before[same.saturating_sub(AROUND)..same] {
        writeln!(text, "  {line}").expect("a string takes everything");
    }
    for (sign, lines) in [('-', &before), ('+', &after)] {
        for line in lines.iter().skip(same).take(AROUND + 1) {
            writeln!(text, "{sign} {line}").expect("a string takes everything");
        }
    }
    Some(format!("at line {}:\n{text}", same + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let shown = difference("a\nb\nc\n", "a\nB\nc\n").unwrap();
        assert_eq!(shown, "at line 2:\n  a\n- b\n- c\n+ B\n+ c\n");
        assert!(difference("a\n", "a\nb\n").unwrap().contains("+ b"));
    }

    #[test]
    fn a_section_is_read_back() {
        let text = "# one\n1\n2\n# two\n3\n";
        assert_eq!((section::<u8>(text, "one"), section::<u8>(text, "two")), (vec![1, 2], vec![3]));
    }
}
