//! The oldest Rust that the workspace builds with: no dependency of it may want a newer one.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// What cannot be built with the `rust-version` of the workspace, of all that its packages depend on.
///
/// # Errors
/// If there is such a dependency, with its own `rust-version`.
pub(crate) fn check(metadata: &Value) -> anyhow::Result<String> {
    let packages = metadata["packages"].as_array().context("there are no packages")?;
    let members = metadata["workspace_members"].as_array().context("there are no members")?;
    let is_ours = |package: &&Value| members.contains(&package["id"]);
    let ours: BTreeSet<Version> = packages.iter().filter(is_ours).filter_map(wanted).collect();
    let ours = ours.first().context("no package of the workspace has a rust-version")?;
    let newer: Vec<String> = packages
        .iter()
        .filter_map(|package| Some((package, wanted(package).filter(|it| it > ours)?)))
        .map(|(package, Version([major, minor, _]))| {
            let text = |field| package[field].as_str().unwrap_or_default();
            format!("{} {} wants Rust {major}.{minor}", text("name"), text("version"))
        })
        .collect();
    let Version([major, minor, _]) = ours;
    if !newer.is_empty() {
        bail!("the workspace promises Rust {major}.{minor}, and {}", newer.join(", "));
    }
    Ok(format!("no dependency wants a newer Rust than {major}.{minor}"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version([u32; 3]);

fn wanted(package: &Value) -> Option<Version> {
    let mut parts = [0; 3];
    for (part, text) in parts.iter_mut().zip(package["rust_version"].as_str()?.split('.')) {
        *part = text.parse().ok()?;
    }
    Some(Version(parts))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(version: &str) -> Value {
        let package = |name: &str, version: &str| json!({"id": name, "name": name, "version": "1.0.0", "rust_version": version});
        json!({"workspace_members": ["ours"], "packages": [package("ours", "1.90"), package("theirs", version)]})
    }

    #[test]
    fn a_dependency_may_not_want_a_newer_rust() {
        for fine in ["1.90", "1.90.0", "1.9", "1.89.5"] {
            assert!(check(&with(fine)).is_ok(), "{fine}");
        }
        for newer in ["1.91", "1.90.1", "2.0"] {
            let found = check(&with(newer)).unwrap_err().to_string();
            assert!(found.contains("theirs 1.0.0 wants Rust"), "{found}");
        }
    }
}
