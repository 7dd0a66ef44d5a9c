//! The document of the benchmarks: what is between two marks of a section is written anew, and the rest is left.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

/// A path of `docs/benchmarks.md`.
pub(crate) struct Document(PathBuf);

impl Document {
    pub(crate) fn of_this_project() -> Self {
        Self(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks.md"))
    }

    /// The folder of its pictures.
    pub(crate) fn pictures(&self) -> PathBuf {
        self.0.with_extension("")
    }

    /// What a section has.
    pub(crate) fn section(&self, name: &str) -> anyhow::Result<String> {
        let text = fs::read_to_string(&self.0)?;
        let parted = parted(&text, name).with_context(|| self.has_no(name))?;
        Ok(parted[1].to_owned())
    }

    fn has_no(&self, name: &str) -> String {
        format!("{} has no marks of {name}", self.0.display())
    }

    /// Replaces sections; an empty one was not measured, and stays as it is.
    pub(crate) fn write(&self, sections: &[(&str, String)]) -> anyhow::Result<()> {
        let mut text = fs::read_to_string(&self.0)?;
        for (name, content) in sections.iter().filter(|(_, content)| !content.is_empty()) {
            text = replaced(&text, name, content).with_context(|| self.has_no(name))?;
        }
        Ok(fs::write(&self.0, text)?)
    }
}

/// When and where what is written was measured, as a line of the document.
pub(crate) fn measured() -> String {
    let said = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        let output = output.ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let unknown = || "unknown".to_owned();
    let commit = said("git", &["rev-parse", "--short=8", "HEAD"]).unwrap_or_else(unknown);
    let changes =
        match said("git", &["status", "--porcelain", "--untracked-files=no", "--", "..", "../../Cargo.lock"])
        {
            Some(changed) if !changed.is_empty() => " with changes",
            _ => "",
        };
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let names = cpus.lines().filter_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let names: Vec<&str> = names.map(|(_, name)| name.trim()).collect();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "Measured on {} at {commit}{changes}, {} × {}, Linux {}, {}.",
        said("date", &["-u", "+%Y-%m-%d %H:%M"]).unwrap_or_else(unknown),
        names.len(),
        names.first().unwrap_or(&"unknown"),
        kernel.trim(),
        said("rustc", &["--version"]).unwrap_or_else(unknown),
    )
}

/// What is before the content of a section, the content, and what is behind it.
fn parted<'t>(text: &'t str, name: &str) -> Option<[&'t str; 3]> {
    let begin = format!("<!-- {name}: begin -->\n");
    let begins = text.find(&begin)? + begin.len();
    let ends = begins + text[begins..].find(&format!("<!-- {name}: end -->"))?;
    Some([&text[..begins], &text[begins..ends], &text[ends..]])
}

fn replaced(text: &str, name: &str, content: &str) -> Option<String> {
    let [before, _, after] = parted(text, name)?;
    Some([before, content, after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = "a\n<!-- t: begin -->\nold\n<!-- t: end -->\nb\n";
        assert_eq!(replaced(text, "t", "new\n").unwrap(), "a\n<!-- t: begin -->\nnew\n<!-- t: end -->\nb\n");
        assert_eq!(replaced(text, "u", "new\n"), None);
    }
}
