//! The command line of an agent that serves the one client that started it.

use clap::{Args, ValueHint};

use super::{
    agent::AgentArgs,
    place::{self, StorePlace},
};

/// Behind the help of `safepoint acp`.
pub(super) const ACP: &str = "\
An editor that speaks the Agent Client Protocol starts this and writes to its stdin, for example with Zed:

  \"agent_servers\": { \"Safepoint\": { \"command\": \"safepoint\", \"args\": [\"acp\"] } }

It works in the folder in which it is started, or in --root. When the editor closes stdin, what it began is stopped
within 2 s, and questions stay open.

Exit codes: 0 the editor closed its input, 1 failed, 2 wrong usage.";

/// Behind the help of `safepoint mcp serve`.
pub(super) const MCP: &str = "\
A client that speaks the Model Context Protocol starts this and writes to its stdin, for example:

  { \"mcpServers\": { \"helper\": { \"command\": \"safepoint\", \"args\": [\"mcp\", \"serve\"] } } }

It offers the agent as one tool. When the client closes stdin, the calls that run are stopped within 2 s, tasks run on where the
session is opened again, and questions stay open.

Exit codes: 0 the client closed its input, 1 failed, 2 wrong usage.";

/// One agent, for one client on stdin and stdout.
#[derive(Clone, Debug, Args)]
pub(crate) struct LocalArgs {
    /// An agent of the config file ([agents.NAME]); default: the only one there, or what the flags and the file make
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) named: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// The store: a file, or postgres://… for a database; default: $SAFEPOINT_STORE, $XDG_DATA_HOME/safepoint/store.db or ~/.local/share/safepoint/store.db
    #[arg(long, value_name = "PATH|URL", value_parser = place::parser(), value_hint = ValueHint::AnyPath)]
    pub(crate) store: Option<StorePlace>,
}
