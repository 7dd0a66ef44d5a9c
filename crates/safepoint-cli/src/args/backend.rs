//! Flags for an external agent.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// What is known of an external agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct BackendArgs {
    /// What a stop does to an A2A agent or a response. `hard` believes an agent that reports its work as canceled;
    /// it makes no stop harder
    #[arg(long, value_name = "GRADE", requires = "backend", default_value = "caller-side")]
    pub(crate) backend_stops: Stops,
    /// The variable with the token of an A2A agent or the key of a provider; also passed to an ACP agent
    #[arg(long, value_name = "NAME", requires = "backend")]
    pub(crate) backend_key_env: Option<String>,
    /// The authentication method of an ACP agent, one of those that it names
    #[arg(long, value_name = "WAY", requires = "backend")]
    pub(crate) backend_auth: Option<String>,
    /// A local service that an ACP agent calls and that does no work itself, such as a model server: PORT, HOST:PORT
    /// or the path of a socket (repeatable)
    #[arg(long, value_name = "PLACE", requires = "backend")]
    pub(crate) backend_calls: Vec<String>,
}

/// What a stop does there. Exhaustive: the three grades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stops {
    /// A stop ends the work and then confirms it
    Hard,
    /// A stop is confirmed, and the work may continue
    #[default]
    CallerSide,
    /// Stops are not supported
    None,
}
