//! The command line of `safepoint chat`.

use clap::{Args, Parser, ValueHint};

use super::{
    agent::AgentArgs,
    keep::KeepArgs,
    names,
    place::{self, StorePlace},
};

const CHAT: &str = "\
Enter sends a message, or steers a running turn. Alt-Enter queues. Tab completes. Esc stops an answer at once
and a tool at the next safe point, Esc again now.
Ctrl-C stops the turn or clears the input; pressed twice, it exits within a second. Ctrl-Z goes to the shell.
Behind / are commands, behind @ files and images; !CMD runs a command yourself. Ctrl-R searches what you entered before,
Ctrl-G opens $VISUAL or $EDITOR. /help lists the rest.

A conversation on a terminal is stored, under the project that it is about: the root of the repository, or the current
directory. --continue reopens the last one with its messages, its last turn and its open approvals; --resume chooses one.
/new begins another one, /rename, /fork and /export do what they say. --session NAME names one. /rewind (or Esc Esc in an idle chat) goes back to before a turn,
with the files where you want that, and names first what cannot be undone; /undo takes that back.

`safepoint \"PROMPT\"` says this first. Without a terminal, chat reads one turn per line from stdin and writes the answers to stdout.";

/// `safepoint chat`.
#[derive(Clone, Debug, Args)]
#[command(after_help = CHAT)]
pub(crate) struct ChatArgs {
    /// What to say first, as if it had been typed
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Store the conversation as this session, or continue it
    #[arg(long, value_name = "ID", value_parser = names::parse)]
    pub(crate) session: Option<String>,
    /// The store: a file, or postgres://… for a database; default: $SAFEPOINT_STORE, $XDG_DATA_HOME/safepoint/store.db or ~/.local/share/safepoint/store.db
    #[arg(long, value_name = "PATH|URL", value_parser = place::parser(), value_hint = ValueHint::AnyPath)]
    pub(crate) store: Option<StorePlace>,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    /// Take no snapshots of the files around turns, so that /rewind restores none; also: `snapshots = false` in the config file
    #[arg(long)]
    pub(crate) no_snapshots: bool,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

/// `chat` without a flag.
#[derive(Debug, Parser)]
struct NoFlags {
    #[command(flatten)]
    chat: ChatArgs,
}

impl ChatArgs {
    /// The defaults of every flag.
    pub(crate) fn usual() -> Self {
        NoFlags::try_parse_from(["safepoint"]).expect("every flag of a chat can be left out").chat
    }
}
