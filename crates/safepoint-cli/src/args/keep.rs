//! Whether a chat is stored, and which conversation it continues.

use clap::Args;

use super::names;

/// The flags of a chat that say where its conversation is.
#[derive(Clone, Debug, Args)]
pub(crate) struct KeepArgs {
    /// Continue the last conversation of this project
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["resume", "session"])]
    pub(crate) continues: bool,
    /// Continue a stored conversation: by its id or a unique end of it, or chosen from a list that can be searched
    #[arg(long, short = 'r', value_name = "ID", num_args = 0..=1, value_parser = names::parse, conflicts_with = "session")]
    pub(crate) resume: Option<Option<String>>,
    /// Keep the conversation in memory only; also: `keep = false` in the config file
    #[arg(long, conflicts_with_all = ["continues", "resume", "session", "store"])]
    pub(crate) no_keep: bool,
}
