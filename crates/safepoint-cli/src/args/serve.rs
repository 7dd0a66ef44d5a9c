//! The command line of `safepoint serve` and `safepoint token`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueHint};

use super::{
    agent::AgentArgs,
    duration::parse as duration,
    names,
    place::{self, StorePlace},
    placed::{self, PlacementChoice},
};

const SERVE: &str = "\
The agents are those of the config file ([agents.NAME]); without any, the flags and the rest of the file make the agent
`default`. A token for this user, which may read, talk and stop, is written to $XDG_RUNTIME_DIR/safepoint/serve.token; to
answer questions takes a token of `safepoint token new`.

Exit codes: 0 drained, 1 failed or something was alive at the end, 2 wrong usage.";

/// `safepoint serve`.
#[derive(Clone, Debug, Args)]
#[command(after_help = SERVE)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Where to listen; default: 127.0.0.1:7717
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// The store: a file, or postgres://… for a database; default: $SAFEPOINT_STORE, $XDG_DATA_HOME/safepoint/store.db or ~/.local/share/safepoint/store.db
    #[arg(long, value_name = "PATH|URL", value_parser = place::parser(), value_hint = ValueHint::AnyPath)]
    pub(crate) store: Option<StorePlace>,
    /// The name of this server among the nodes that share the store; default: the name of the machine
    #[arg(long, value_name = "NAME", value_parser = names::parse)]
    pub(crate) node: Option<String>,
    /// How long this server holds its sessions without a word to the store; after its death others take them then. From 2s on; default: 10s
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) lease: Option<Duration>,
    /// What brings sessions to the servers of one store: here (each looks itself), graphile (a job queue in the database) or restate=URL (that engine, by its ingress); default: here
    #[arg(long, value_name = "PLACEMENT", value_parser = placed::parse)]
    pub(crate) placement: Option<PlacementChoice>,
    /// The file of the tokens; default: tokens.toml beside the config file
    #[arg(long, value_name = "PATH")]
    pub(crate) tokens: Option<PathBuf>,
    /// How long turns may take to stop at the end; default: 20s
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) drain: Option<Duration>,
}

/// `safepoint token`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
    /// The file of the tokens; default: tokens.toml beside the config file
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) tokens: Option<PathBuf>,
}

/// What is done with the tokens.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, and print it: it cannot be shown again
    New(NewTokenArgs),
    /// List the tokens, without their secrets
    Ls,
    /// Remove a token by its id; it is refused from then on
    Revoke {
        /// The id, as `token ls` prints it
        id: String,
    },
}

/// `safepoint token new`.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewTokenArgs {
    /// Who uses it; stops and decisions are recorded with this name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// What for, separated by commas: read, talk, approve, stop, admin
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
    pub(crate) scope: Vec<String>,
    /// With which agent; may be given more than once. Default: all
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Vec<String>,
    /// How long it is valid; default: until it is revoked
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) expires: Option<Duration>,
    /// Whose sessions it sees: its own, or those of all tokens
    #[arg(long, value_name = "own|all", default_value = "own", value_parser = ["own", "all"])]
    pub(crate) see: String,
}
