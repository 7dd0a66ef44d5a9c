//! `check`: the steps of CI one after the other; `bench`: the benchmarks.

use std::process::Command;

use anyhow::{Context as _, bail};

/// Runs what CI runs, up to the first failure.
pub(crate) fn check() -> anyhow::Result<()> {
    cargo(&["fmt", "--all", "--", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    crate::tidy::tidy()?;
    cargo(&["test", "--workspace"])?;
    crate::spec::spec(false)?;
    cargo(&["doc", "--workspace", "--no-deps"])
}

/// Runs the benchmarks.
pub(crate) fn bench(args: &[String]) -> anyhow::Result<()> {
    let mut all = vec!["run", "--release", "--package", "safepoint-bench", "--"];
    all.extend(args.iter().map(String::as_str));
    cargo(&all)
}

fn cargo(args: &[&str]) -> anyhow::Result<()> {
    println!("== cargo {}", args.join(" "));
    let status = Command::new(env!("CARGO"))
        .args(args)
        .status()
        .with_context(|| format!("cargo {} could not be started", args.join(" ")))?;
    if !status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    Ok(())
}
