//! `[commands]` of the config file: what commands are given of our environment.

use std::path::PathBuf;

use safepoint_tools::process::CommandEnvironment;
use serde::Deserialize;

use super::store;
use crate::args::agent::SandboxSwitch;

/// What the config file says of commands.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Commands {
    env: Option<Env>,
    keep: Vec<String>,
    withhold: Vec<String>,
    /// Whether they are confined, where the command line does not say it.
    pub(crate) sandbox: Option<SandboxSwitch>,
    /// What they may write beside the root.
    write: Vec<String>,
}

/// Which variables. Exhaustive: those that a command needs, all without secrets, or all.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Env {
    Core,
    Filtered,
    All,
}

impl Commands {
    /// Adds what a project says, to which a person agreed.
    pub(super) fn add(&mut self, mut others: Self) {
        self.keep.append(&mut others.keep);
        self.withhold.append(&mut others.withhold);
        self.write.append(&mut others.write);
        self.sandbox = others.sandbox.or(self.sandbox);
        self.env = others.env.or(self.env);
    }

    /// What they may write beside the root: `~` is the home directory.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let expanded = |path: &String| match (path.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => path.into(),
        };
        self.write.iter().map(expanded).collect()
    }

    /// With variables that hold keys of ours, whatever their names are.
    pub(crate) fn environment(&self, keys: impl IntoIterator<Item = String>) -> CommandEnvironment {
        let environment = match self.env {
            Some(Env::Core) => CommandEnvironment::core(),
            Some(Env::Filtered) | None => CommandEnvironment::filtered(),
            Some(Env::All) => CommandEnvironment::all(),
        };
        let environment = environment.withhold(&self.withhold).withhold(keys);
        environment.withhold(store::variable_of_database()).keep(&self.keep)
    }
}
