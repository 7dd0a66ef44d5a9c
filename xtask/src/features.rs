//! `features`: every published crate with none of its features, and with each of them alone, without a warning.

use std::{panic::resume_unwind, thread};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::{cargo, source};

/// The package that has the most features, and is made of the others: checked beside them, where it waits for no lock.
const LARGEST: &str = "safepoint-cli";
const BESIDE: [&str; 2] = ["--target-dir", "target/features"];

/// Checks them all, the largest package beside the others: each check is one crate after the other for most of its time.
pub(crate) fn features() -> anyhow::Result<()> {
    let (largest, others): (Vec<_>, Vec<_>) =
        published(&metadata()?)?.into_iter().partition(|(package, _)| package == LARGEST);
    thread::scope(|scope| {
        let largest = scope.spawn(|| check_all(&largest, &BESIDE));
        check_all(&others, &[])?;
        largest.join().unwrap_or_else(|panicked| resume_unwind(panicked))
    })
}

fn check_all(packages: &[(String, Vec<String>)], place: &[&str]) -> anyhow::Result<()> {
    for (package, features) in packages {
        for feature in features.iter().map(Some).chain([None]) {
            check(package, feature.map(String::as_str), place)?;
        }
    }
    Ok(())
}

fn check(package: &str, feature: Option<&str>, place: &[&str]) -> anyhow::Result<()> {
    let mut args = vec!["clippy", "--quiet", "--locked", "-p", package, "--no-default-features"];
    if let Some(feature) = feature {
        args.extend(["--features", feature]);
    }
    args.extend(place);
    args.extend(["--", "-D", "warnings"]);
    cargo::run(&args)
}

/// What cargo says of the workspace.
pub(crate) fn metadata() -> anyhow::Result<Value> {
    let mut command = cargo::command();
    command.args(["metadata", "--format-version", "1", "--locked"]).current_dir(source::root());
    let reported = command.output().context("cargo metadata could not be started")?;
    if !reported.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&reported.stderr).trim());
    }
    serde_json::from_slice(&reported.stdout).context("what cargo metadata says is not JSON")
}

/// The published packages that have features, each with their names; `default` only names others.
fn published(metadata: &Value) -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let members = metadata["workspace_members"].as_array().context("there are no members")?;
    let packages = metadata["packages"].as_array().context("there are no packages")?;
    let mut found = Vec::new();
    for package in packages.iter().filter(|package| members.contains(&package["id"])) {
        // `publish = false` is an empty list of registries.
        if package["publish"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        let name = package["name"].as_str().context("a package has no name")?;
        let features = package["features"].as_object().context("a package has no features")?;
        let features: Vec<String> = features.keys().filter(|name| *name != "default").cloned().collect();
        if !features.is_empty() {
            found.push((name.to_owned(), features));
        }
    }
    if found.is_empty() {
        bail!("no published package has a feature");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_published_and_has_features_is_checked() {
        let package = |name: &str, publish: Value, features: Value| json!({"id": name, "name": name, "publish": publish, "features": features});
        let metadata = json!({
            "workspace_members": ["models", "scope", "bench"],
            "packages": [
                package("models", Value::Null, json!({"default": ["a"], "a": [], "b": []})),
                package("scope", Value::Null, json!({})),
                package("bench", json!([]), json!({"a": []})),
                package("serde", Value::Null, json!({"derive": []})),
            ],
        });
        assert_eq!(
            published(&metadata).unwrap(),
            [("models".to_owned(), vec!["a".to_owned(), "b".to_owned()])]
        );
        assert!(published(&json!({"workspace_members": [], "packages": []})).is_err());
    }
}
