//! The command line of `safepoint mcp`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::duration::parse as duration;

const HELP: &str = "\
The config file is $XDG_CONFIG_HOME/safepoint/config.toml or ~/.config/safepoint/config.toml, or --config:

  [mcp.files]                                   [mcp.search]
  command = \"npx\"                               url = \"https://example.com/mcp\"
  args = [\"-y\", \"@scope/server\", \".\"]           headers = { authorization = \"Bearer ${TOKEN}\" }

More keys: env, cwd, include, exclude, rename, trust_annotations, protocol, start_timeout, timeout.
A model gets their tools with `run --tools mcp`, mcp:NAME or all, and in a chat.";

/// `safepoint mcp`.
#[derive(Clone, Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

/// What to do with a server. Exhaustive: `mcp` does each.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start or reach the servers of the config file, and list their tools
    Ls(LsArgs),
    /// Call one tool of one server, and print its answer
    Call(CallArgs),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LsArgs {
    /// Only this server
    pub(crate) name: Option<String>,
    /// The config file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON object per line on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct CallArgs {
    /// The server, as the config file names it
    pub(crate) name: String,
    /// The tool, by the server's name for it or by the name that a model sees
    pub(crate) tool: String,
    /// The arguments, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) args: String,
    /// The time limit of the call; default: none
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// The config file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON object per line on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
