//! The command line of `safepoint acp`.

use std::path::PathBuf;

use clap::Args;

use super::agent::AgentArgs;

const ACP: &str = "\
An editor that speaks the Agent Client Protocol starts this and writes to its stdin, for example with Zed:

  \"agent_servers\": { \"Safepoint\": { \"command\": \"safepoint\", \"args\": [\"acp\"] } }

It works in the folder in which it is started, or in --root. When the editor closes stdin, what it began is stopped
within 2 s, and questions stay open.

Exit codes: 0 the editor closed its input, 1 failed, 2 wrong usage.";

/// `safepoint acp`.
#[derive(Clone, Debug, Args)]
#[command(after_help = ACP)]
pub(crate) struct AcpArgs {
    /// An agent of the config file ([agents.NAME]); default: the only one there, or what the flags and the file make
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) named: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// The store's file; default: $XDG_DATA_HOME/safepoint/store.db, or the same under ~/.local/share
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
}
