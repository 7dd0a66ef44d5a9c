//! What the command line says of somebody else's agent.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// What is known of somebody else's agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Known {
    /// What a stop is known to do to the work of an A2A agent or a response: `hard` makes no stop harder, it believes an agent
    /// that says that its work is canceled
    #[arg(long, value_name = "GRADE", requires = "backend", default_value = "caller-side")]
    pub(crate) backend_stops: Stops,
    /// The variable that holds the token of an A2A agent or the key of a provider, or that an ACP agent is given
    #[arg(long, value_name = "NAME", requires = "backend")]
    pub(crate) backend_key_env: Option<String>,
    /// The way in which an ACP agent is told who asks, where it wants to know: one of those that it names itself
    #[arg(long, value_name = "WAY", requires = "backend")]
    pub(crate) backend_auth: Option<String>,
    /// A service of this machine that an ACP agent calls and that does no work of its own, such as a server of models:
    /// PORT, HOST:PORT or the path of a socket; may be given several times
    #[arg(long, value_name = "PLACE", requires = "backend")]
    pub(crate) backend_calls: Vec<String>,
}

/// What a stop does there. Exhaustive: the three grades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stops {
    /// It ends the work, and then says so
    Hard,
    /// It says so, and the work may go on
    #[default]
    CallerSide,
    /// It is not supported
    None,
}
