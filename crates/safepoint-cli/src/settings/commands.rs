//! `[commands]` of the config file: what commands are given of our environment.

use safepoint_tools::process::CommandEnvironment;
use serde::Deserialize;

/// What the config file says of commands.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Commands {
    env: Env,
    keep: Vec<String>,
    withhold: Vec<String>,
}

/// Which variables. Exhaustive: those that a command needs, all without secrets, or all.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Env {
    Core,
    #[default]
    Filtered,
    All,
}

impl Commands {
    /// With variables that hold keys of ours, whatever their names are.
    pub(crate) fn environment(&self, keys: impl IntoIterator<Item = String>) -> CommandEnvironment {
        let environment = match self.env {
            Env::Core => CommandEnvironment::core(),
            Env::Filtered => CommandEnvironment::filtered(),
            Env::All => CommandEnvironment::all(),
        };
        environment.withhold(&self.withhold).withhold(keys).keep(&self.keep)
    }
}
