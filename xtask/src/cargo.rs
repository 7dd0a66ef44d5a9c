//! Runs cargo as a step, shown before it starts.

use std::{env, process::Command};

use anyhow::{Context as _, bail};

/// What cargo says of the program that it runs. Crates whose build asks for such a name (`ring` does) would be built anew for each
/// program that calls cargo, and with them all that is made of them.
const SAID_OF_US: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];

/// The cargo that runs us, as a shell would call it.
pub(crate) fn command() -> Command {
    as_from_a_shell(Command::new(env!("CARGO")))
}

fn as_from_a_shell(mut command: Command) -> Command {
    let names = env::vars_os().map(|(name, _)| name);
    let is_of_us =
        |name: &str| SAID_OF_US.iter().any(|beginning| name.starts_with(beginning)) || name == "OUT_DIR";
    names.filter(|name| name.to_str().is_some_and(is_of_us)).for_each(|name| {
        command.env_remove(name);
    });
    command
}

/// Runs cargo with these arguments.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    step(command().args(args), args)
}

/// The same with a variable set.
pub(crate) fn run_with(args: &[&str], (variable, value): (&str, &str)) -> anyhow::Result<()> {
    step(command().args(args).env(variable, value), args)
}

/// The same with the nightly toolchain.
pub(crate) fn run_nightly(args: &[&str]) -> anyhow::Result<()> {
    step(as_from_a_shell(Command::new("cargo")).arg("+nightly").args(args), args)
}

/// Builds the documentation, where a warning is a failure.
pub(crate) fn doc(args: &[&str]) -> anyhow::Result<()> {
    step(command().args(args).env("RUSTDOCFLAGS", "-D warnings"), args)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_called_as_a_shell_calls_it() {
        assert!(env::var_os("CARGO_PKG_NAME").is_some(), "it was said of this program");
        let called = command();
        let removed: Vec<_> = called.get_envs().filter(|(_, value)| value.is_none()).collect();
        assert!(removed.iter().any(|(name, _)| *name == "CARGO_PKG_NAME"), "{removed:?}");
        assert!(removed.iter().all(|(name, _)| *name != "CARGO_HOME" && *name != "CARGO_INCREMENTAL"));
    }
}
