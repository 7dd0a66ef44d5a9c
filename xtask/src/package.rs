//! `package`: every published crate, packed from a clean tree and built from its package.

use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::{cargo, source};

/// What every package holds.
const FILES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// A crate of the workspace, as cargo describes it.
struct Crate {
    name: String,
    version: String,
    described: Value,
}

/// Packs every published crate and looks at what each package holds. Builds it too, but with `--no-verify`.
pub(crate) fn package(wanted: &[String]) -> anyhow::Result<()> {
    refuse_changes()?;
    let crates = published()?;
    for one in &crates {
        one.is_described()?;
    }
    let mut args = vec!["package", "--quiet"];
    for one in &crates {
        args.extend(["--package", &one.name]);
    }
    if wanted.iter().any(|arg| arg == "--no-verify") {
        args.push("--no-verify");
    }
    cargo::run(&args)?;
    for one in &crates {
        one.is_complete()?;
    }
    println!("package: {} crates, each with its licences and README", crates.len());
    Ok(())
}

impl Crate {
    /// What crates.io and docs.rs show of it.
    fn is_described(&self) -> anyhow::Result<()> {
        let is_empty = |field: &str| match &self.described[field] {
            Value::Array(words) => words.is_empty(),
            other => other.is_null(),
        };
        if let Some(field) = ["description", "license", "repository", "readme", "keywords", "categories"]
            .into_iter()
            .find(|field| is_empty(field))
        {
            bail!("{}: its manifest has no {field}", self.name);
        }
        if self.described["metadata"]["docs"]["rs"].is_null() {
            bail!("{}: its manifest has no [package.metadata.docs.rs]", self.name);
        }
        Ok(())
    }

    fn is_complete(&self) -> anyhow::Result<()> {
        let stem = format!("{}-{}", self.name, self.version);
        let path = source::root().join("target/package").join(format!("{stem}.crate"));
        let listed = output(Command::new("tar").arg("-tzf").arg(&path))?;
        let holds = |file: &str| listed.lines().any(|line| line == format!("{stem}/{file}"));
        match FILES.iter().find(|file| !holds(file)) {
            Some(file) => bail!("{} does not hold {file}", path.display()),
            None => Ok(()),
        }
    }
}

fn refuse_changes() -> anyhow::Result<()> {
    let changed = output(Command::new("git").args(["status", "--porcelain"]).current_dir(source::root()))?;
    if !changed.is_empty() {
        bail!("commit or discard these changes first, a package is made of a clean tree:\n{changed}");
    }
    Ok(())
}

fn published() -> anyhow::Result<Vec<Crate>> {
    let asked = output(
        cargo::command().args(["metadata", "--no-deps", "--format-version=1"]).current_dir(source::root()),
    )?;
    let asked: Value = serde_json::from_str(&asked).context("cargo metadata was not JSON")?;
    let all = asked["packages"].as_array().context("cargo metadata named no packages")?;
    let text = |described: &Value, field: &str| described[field].as_str().unwrap_or_default().to_owned();
    Ok(all
        .iter()
        // `publish` is null for what may go anywhere, and an empty list for what may go nowhere.
        .filter(|described| described["publish"].is_null())
        .map(|described| Crate {
            name: text(described, "name"),
            version: text(described, "version"),
            described: described.clone(),
        })
        .collect())
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let reported = command.output().with_context(|| format!("{command:?} could not be started"))?;
    if !reported.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&reported.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&reported.stdout).into_owned())
}
