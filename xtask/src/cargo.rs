//! Runs cargo as a step, shown before it starts.

use std::process::Command;

use anyhow::{Context as _, bail};

/// Runs cargo with these arguments.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    step(Command::new(env!("CARGO")).args(args), args)
}

/// The same with a variable set.
pub(crate) fn run_with(args: &[&str], (variable, value): (&str, &str)) -> anyhow::Result<()> {
    step(Command::new(env!("CARGO")).args(args).env(variable, value), args)
}

/// The same with the nightly toolchain.
pub(crate) fn run_nightly(args: &[&str]) -> anyhow::Result<()> {
    step(Command::new("cargo").arg("+nightly").args(args), args)
}

/// Builds the documentation, where a warning is a failure.
pub(crate) fn doc(args: &[&str]) -> anyhow::Result<()> {
    step(Command::new(env!("CARGO")).args(args).env("RUSTDOCFLAGS", "-D warnings"), args)
}

fn step(command: &mut Command, args: &[&str]) -> anyhow::Result<()> {
    println!("== cargo {}", args.join(" "));
    let status =
        command.status().with_context(|| format!("cargo {} could not be started", args.join(" ")))?;
    if !status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    Ok(())
}
