//! The command line of `safepoint mcp`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::{
    duration::parse as duration,
    local::{self, LocalArgs},
};

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
    /// Write a server into the config file, and leave the rest of the file as it is
    Add(AddArgs),
    /// Take a server out of the config file
    Rm(RmArgs),
    /// Log in at a server on the network that asks for it, in a browser
    Login(LoginArgs),
    /// Forget the login at a server
    Logout(LogoutArgs),
    /// Be a server: an agent as one tool, over stdin and stdout
    #[command(after_help = local::MCP)]
    Serve(Box<LocalArgs>),
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

/// Which file is edited.
#[derive(Clone, Debug, Args)]
pub(crate) struct FileArgs {
    /// The config file
    #[arg(long, value_name = "PATH", conflicts_with = "project")]
    pub(crate) config: Option<PathBuf>,
    /// The project's file, .safepoint/config.toml
    #[arg(long)]
    pub(crate) project: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AddArgs {
    /// What it is called here
    pub(crate) name: String,
    /// Its address (http: or https:), or, behind `--`, the program with its arguments
    #[arg(required = true, value_name = "URL|CMD", trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
    /// A variable of the program (repeatable), such as TOKEN='${TOKEN}', which is taken from your environment
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header of each request (repeatable), such as authorization='Bearer ${TOKEN}'
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub(crate) headers: Vec<String>,
    /// Write it anew if there is one of that name
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) file: FileArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RmArgs {
    /// The server, as the config file names it
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) file: FileArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LoginArgs {
    /// The server, as the config file names it
    pub(crate) name: String,
    /// Print the address to open, and start no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// What is asked for; default: what the server names
    #[arg(long, value_name = "SCOPES")]
    pub(crate) scope: Option<String>,
    /// The id of this program at the authorization server, where that gives none by itself
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// How long the browser may take
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "5m")]
    pub(crate) timeout: Duration,
    /// The config file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LogoutArgs {
    /// The server, as the config file names it
    pub(crate) name: String,
    /// The config file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
}
