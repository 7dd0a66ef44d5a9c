//! `bench`: measures, each against a bare loop in the same run.

use crate::cargo;

/// Hands everything to the runner, which knows what there is to measure.
pub(crate) fn bench(args: &[String]) -> anyhow::Result<()> {
    let mut recipe = vec!["run", "--profile", "dist", "--package", "safepoint-bench", "--"];
    recipe.extend(args.iter().map(String::as_str));
    cargo::run(&recipe)
}
