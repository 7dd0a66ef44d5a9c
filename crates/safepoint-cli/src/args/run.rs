//! The command line of `safepoint run` and `safepoint resume`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{
    agent::AgentArgs,
    names,
    place::{self, StorePlace},
};

const RUN: &str = "\
Without --model, the first of these decides: the config file; OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY or GEMINI_API_KEY; a local server on port 11434; the built-in practice model (a script).

Config file: $XDG_CONFIG_HOME/safepoint/config.toml or ~/.config/safepoint/config.toml, with model, base_url,
api_key_env, system, max_tokens, temperature, window, on_full, tools, parallel, mode, approve,
unknown, on_restart, approval_expiry, max_rounds. The command line overrides it.
Each [mcp.NAME] in it is a tool server: `command`, `args`, `env`, `cwd`, or `url`, `headers`; see `safepoint mcp ls`.
The [[rules]] in it decide about calls; the first match wins: `tool`, `args` (patterns, * is any text), `then` = \"allow\",
\"ask\" or \"deny\", `message`. --approve decides calls that match no rule, or match \"ask\"; see docs/guides/approvals.md.

Ctrl-C stops at the next safe point, within --grace; a second Ctrl-C stops now. NO_COLOR is respected.

Exit codes: 0 done, 1 failed, 2 wrong usage, 5 another process owns the session, 10 stopped by a limit, a lost reader
or another process, 11 suspended, 130 stopped by Ctrl-C, 143 by SIGTERM.";

const RESUME: &str = "\
The session keeps its model, tools and directory; a flag given here replaces one of them. A prompt runs after the resumed turn.

Exit codes: 0 done or nothing to resume, 1 failed, 2 wrong usage, 3 session not found, 5 another process owns the session,
10 stopped by a limit, a lost reader or another process, 11 suspended, 130 stopped by Ctrl-C, 143 by SIGTERM.";

/// `safepoint run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = RUN)]
pub(crate) struct RunArgs {
    /// The prompt; `-` or nothing reads it from stdin
    pub(crate) prompt: Option<String>,
    /// The prompt of a further turn on the same history, also after a stopped turn (repeatable)
    #[arg(long = "then", value_name = "PROMPT")]
    pub(crate) then: Vec<String>,
    /// Store the conversation as this session, or continue it
    #[arg(long, value_name = "ID", value_parser = names::parse)]
    pub(crate) session: Option<String>,
    /// The store: a file, or postgres://… for a database; default with --session: $SAFEPOINT_STORE, $XDG_DATA_HOME/safepoint/store.db or ~/.local/share/safepoint/store.db
    #[arg(long, value_name = "PATH|URL", value_parser = place::parser(), value_hint = ValueHint::AnyPath)]
    pub(crate) store: Option<StorePlace>,
    /// An image or a PDF that goes with the first prompt (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// One JSON object per line on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// What to do when stdout is closed or the terminal hangs up
    #[arg(long, value_enum, default_value = "stop")]
    pub(crate) on_disconnect: OnDisconnect,
}

/// `safepoint resume`.
#[derive(Clone, Debug, Args)]
#[command(after_help = RESUME)]
pub(crate) struct ResumeArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    pub(crate) resumed: String,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// What to do when the reader disconnects. Exhaustive: stop or continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDisconnect {
    /// Stop the run
    Stop,
    /// Continue without a reader
    Detach,
}
