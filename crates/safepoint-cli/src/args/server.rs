//! The command line of the commands that a server can be asked in place of this machine.

use std::path::PathBuf;

use clap::Args;

/// The server that is asked.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// Ask this server over HTTP instead of this machine's sessions, such as http://127.0.0.1:7717; default: SAFEPOINT_SERVER,
    /// unless --store is given. Another machine's must be https
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub(crate) server: Option<String>,
    /// The file of the server's token; default: SAFEPOINT_TOKEN, then for this machine the token that its `safepoint serve` wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Allow http to another machine: who listens on the way can read the token and use it
    #[arg(long)]
    pub(crate) insecure: bool,
}
