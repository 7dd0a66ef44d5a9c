//! The command line: a contract that scripts rely on.

pub(crate) mod approvals;
pub(crate) mod backend;
pub(crate) mod control;
pub(crate) mod duration;
pub(crate) mod mcp;
pub(crate) mod names;
pub(crate) mod sessions;
pub(crate) mod store;
pub(crate) mod trace;

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    args::{
        approvals::{ApprovalsArgs, DecideArgs},
        backend::Known,
        control::{PushArgs, SteerArgs, StopArgs, WithdrawArgs},
        duration::{parse as duration, parse_or_never as duration_or_never},
        mcp::McpArgs,
        sessions::SessionsCommand,
        store::StoreCommand,
        trace::TraceArgs,
    },
    exit::Usage,
};

/// Run agents that you can stop, steer, approve and resume; each stop returns an accurate receipt
#[derive(Debug, Parser)]
#[command(name = "safepoint", version, after_help = TOP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const TOP: &str = "\
Try it without a key:
  safepoint                                      a conversation with the built-in practice model; takes the flags of chat
  safepoint demo
  safepoint run --tools all \"run: sleep 100\"     then Ctrl-C, once or twice

Exit codes of run: 0 done, 1 failed, 2 wrong usage, 3 no such session, 5 another process has it,
10 stopped by a limit, a lost reader or from elsewhere, 11 suspended,
130 stopped by Ctrl-C, 143 by SIGTERM.";

const RUN: &str = "\
Without --model, the first of these decides: the config file; OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY or GEMINI_API_KEY; a local server on port 11434; the built-in practice model (a script).

Config file: $XDG_CONFIG_HOME/safepoint/config.toml or ~/.config/safepoint/config.toml, with model, base_url,
api_key_env, system, max_tokens, temperature, window, on_full, tools, parallel, approve, unknown,
approval_expiry, max_rounds. The command line overrides it.
Each [mcp.NAME] is a tool server: `command`, `args`, `env`, `cwd`, or `url`, `headers`; see `safepoint mcp ls`.
Its [[rules]] decide about calls; the first match wins: `tool`, `args` (patterns, * is any text), `then` = \"allow\",
\"ask\" or \"deny\", `message`. --approve decides calls that match no rule, or match \"ask\"; see docs/guides/approvals.md.

Ctrl-C stops at the next safe point, within --grace; a second Ctrl-C stops now. NO_COLOR is respected.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such session, 5 another process has it,
10 stopped by a limit, a lost reader or from elsewhere, 11 suspended,
130 stopped by Ctrl-C, 143 by SIGTERM.";

const CHAT: &str = "\
Enter sends a message, or steers a running turn. Alt-Enter or Tab queues. Esc stops at the next safe point; again: now.
Ctrl-C stops the turn or clears the input; twice exits within a second. Ctrl-Z goes back to the shell. /help lists the rest.

--session stores the conversation; the same command reopens it with its messages, its last turn and its open approvals.
/sessions lists the stored sessions, and /resume opens one.

Without a terminal, chat reads one turn per line from stdin and writes the answers to stdout.";

const CONTROL: &str = "\
Exit codes: 0 accepted or already done; 1 other, or not known to be quiet; 2 wrong usage; 3 no such session, run or call; 4 too late;
5 conflict; 6 inbox full or closed; 7 --wait timed out.";

/// The commands. Exhaustive: `main` runs each.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a conversation on the terminal; `safepoint` alone does the same
    #[command(after_help = CHAT)]
    Chat(Box<ChatArgs>),
    /// Run one turn, or several with --then; text goes to stdout, everything else to stderr
    #[command(after_help = RUN)]
    Run(Box<RunArgs>),
    /// Resume the stopped, suspended or crashed turn of a stored session
    Resume(Box<ResumeArgs>),
    /// List the approvals of a stored session
    Approvals(ApprovalsArgs),
    /// Allow a waiting call to run, once or always, also with other arguments; or run a call with unknown side effects again
    Approve(DecideArgs),
    /// Deny a waiting call and tell the model; or give up a call with unknown side effects
    Deny(DecideArgs),
    /// Supply the result of a call instead of running it, or of a call with unknown side effects
    Respond(DecideArgs),
    /// Check, export and repair the file of stored sessions
    #[command(subcommand)]
    Store(StoreCommand),
    /// Send a message to a session that runs in another terminal
    #[command(after_help = CONTROL)]
    Push(PushArgs),
    /// Steer the running turn of a session without a stop
    #[command(after_help = CONTROL)]
    Steer(SteerArgs),
    /// Remove a queued message from a running session
    #[command(after_help = CONTROL)]
    Withdraw(WithdrawArgs),
    /// Stop a session or a run in another terminal at the next safe point, after 5 s now
    #[command(after_help = CONTROL)]
    Stop(StopArgs),
    /// List, show and remove sessions, stored and running
    #[command(subcommand, after_help = CONTROL)]
    Sessions(SessionsCommand),
    /// Show the timeline of a stored session as text, JSON or a page
    #[command(after_help = CONTROL)]
    Trace(TraceArgs),
    /// Show in under a minute, offline, what stops do and what receipts report
    Demo,
    /// Try the tool servers of the config file ([mcp.NAME])
    Mcp(McpArgs),
    /// Serve the scripted practice model, which needs no key
    Practice(PracticeArgs),
}

/// `safepoint run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// The prompt; `-` or nothing reads it from stdin
    pub(crate) prompt: Option<String>,
    /// A further turn on the same history, also after a stopped one (repeatable)
    #[arg(long = "then", value_name = "PROMPT")]
    pub(crate) then: Vec<String>,
    /// Store the conversation as this session, or continue it
    #[arg(long, value_name = "ID", value_parser = names::parse)]
    pub(crate) session: Option<String>,
    /// The store file; default with --session: $XDG_DATA_HOME/safepoint/store.db, or under ~/.local/share
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    /// An image or a PDF that goes with the first prompt (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// One JSON object a line on stdout, nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// What a closed stdout or a hang-up does
    #[arg(long, value_enum, default_value = "stop")]
    pub(crate) on_disconnect: OnDisconnect,
}

/// Flags that need a model; an external agent has its own settings.
const OF_MODELS: [&str; 10] = [
    "model",
    "base_url",
    "api_key_env",
    "system",
    "max_tokens",
    "temperature",
    "window",
    "tools",
    "record",
    "replay",
];

/// What works, and under which limits: the same for `run` and `chat`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentArgs {
    /// An external agent instead of a model: acp:"COMMAND" starts an ACP agent, a2a:URL calls an A2A agent,
    /// responses:MODEL runs a provider's background response
    #[arg(long, value_name = "KIND:WHERE", conflicts_with_all = OF_MODELS)]
    pub(crate) backend: Option<String>,
    /// What is known of it.
    #[command(flatten)]
    pub(crate) known: Known,
    /// The model: openai:NAME, responses:NAME, anthropic:NAME or gemini:NAME
    #[arg(long, value_name = "WIRE:NAME")]
    pub(crate) model: Option<String>,
    /// The part of the server's address before /chat/completions, /responses, /messages or /models; it includes /v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The variable that holds the API key, where it is not the usual one of the wire
    #[arg(long, value_name = "NAME")]
    pub(crate) api_key_env: Option<String>,
    /// Instructions for the model
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// The most tokens of one reply; default: the provider's
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// The temperature; default: the provider's
    #[arg(long, value_name = "X")]
    pub(crate) temperature: Option<f64>,
    /// The model's window in tokens, request and answer together; default: nothing is measured
    #[arg(long, value_name = "TOKENS")]
    pub(crate) window: Option<u64>,
    /// What happens when the conversation outgrows --window; default: refuse
    #[arg(long, value_enum)]
    pub(crate) on_full: Option<OnFull>,
    /// Tools by name with commas between, `all` (as in chat) or `none` (as in run): shell, read_file, write_file, edit_file,
    /// list_dir, search, http_get, sleep; and `mcp` or mcp:NAME for those of the config file's servers
    #[arg(long, value_name = "LIST")]
    pub(crate) tools: Option<String>,
    /// The directory that file tools are confined to, and in which commands run; default: this one
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Calls that may run at once; default 8
    #[arg(long, value_name = "N")]
    pub(crate) parallel: Option<usize>,
    /// The time limit of a call; default: none
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) tool_timeout: Option<Duration>,
    /// Who decides about calls with side effects that match no rule of the config file; default: ask
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    /// What to do after a call was cut off and its side effects are unknown; default: tell
    #[arg(long, value_enum)]
    pub(crate) unknown: Option<Unknown>,
    /// How long an approval waits for an answer before the call is denied; default: 30d
    #[arg(long, value_name = "DUR|never", value_parser = duration_or_never)]
    pub(crate) approval_expiry: Option<Duration>,
    /// The config file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Record requests and replies of the model in this new file; it holds the messages, never the keys
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Replay such a recording instead of calling a model; needs no key
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) replay: Option<PathBuf>,
    /// The most model calls of one turn; default 100
    #[arg(long, value_name = "N")]
    pub(crate) max_rounds: Option<u32>,
    /// The most wall time of one turn; default: none
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// How long the first Ctrl-C waits for a safe point; 0 = now
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "5s")]
    pub(crate) grace: Duration,
    /// The bound over all clean-up times of a stop together
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "10s")]
    pub(crate) cleanup_cap: Duration,
}

/// `chat` without a flag.
#[derive(Debug, Parser)]
struct Unsaid {
    #[command(flatten)]
    chat: ChatArgs,
}

impl ChatArgs {
    /// The defaults of every flag.
    pub(crate) fn usual() -> Self {
        Unsaid::try_parse_from(["safepoint"]).expect("every flag of a chat can be left out").chat
    }
}

/// The arguments as typed; flags right behind `safepoint` are those of `chat`.
pub(crate) fn written() -> Vec<OsString> {
    const OWN: [&str; 4] = ["-h", "--help", "-V", "--version"];
    let mut args: Vec<OsString> = std::env::args_os().collect();
    let is_flag = |arg: &OsString| {
        let arg = arg.to_string_lossy();
        arg.starts_with('-') && !OWN.contains(&&*arg)
    };
    if args.get(1).is_some_and(is_flag) {
        args.insert(1, "chat".into());
    }
    args
}

impl AgentArgs {
    /// Checks values from the command line or the config file.
    pub(crate) fn check(&self) -> Result<(), Usage> {
        if let Some(temperature) = self.temperature.filter(|it| !it.is_finite() || *it < 0.0) {
            return Err(Usage(format!("--temperature {temperature}: it is a number, 0 or more")));
        }
        if self.parallel == Some(0) {
            return Err(Usage("--parallel 0: no call could run; 1 runs them one after the other".into()));
        }
        if let Some(root) = self.root.as_ref().filter(|root| !root.is_dir()) {
            return Err(Usage(format!("--root {}: there is no such directory", root.display())));
        }
        let is_http = |url: &&String| {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        };
        match self.base_url.as_ref() {
            Some(url) if !is_http(&url) => {
                Err(Usage(format!("--base-url {url}: write it like http://127.0.0.1:8080/v1")))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// `safepoint chat`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChatArgs {
    /// Store the conversation as this session, or continue it
    #[arg(long, value_name = "ID", value_parser = names::parse)]
    pub(crate) session: Option<String>,
    /// The store file; default with --session: $XDG_DATA_HOME/safepoint/store.db, or under ~/.local/share
    #[arg(long, value_name = "PATH")]
    pub(crate) store: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

/// `safepoint resume`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    pub(crate) resumed: String,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Who decides. Exhaustive: the three modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Approve {
    /// A person at the terminal; without a terminal, calls are denied
    Ask,
    /// Everything may run
    Auto,
    /// Calls that need approval are denied
    Deny,
}

/// Who decides about a call with unknown side effects. Exhaustive: it never runs again without a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unknown {
    /// The model learns that the side effects are unknown
    Tell,
    /// A person decides: run it again, supply its result, or give it up
    Ask,
}

/// What happens to a conversation that outgrows the model's window. Exhaustive: the three policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnFull {
    /// The run fails before anything is sent
    Refuse,
    /// The oldest rounds are not sent any more; a note says so
    Drop,
    /// The same, with a summary that the model writes in their place
    Summarise,
}

/// What to do when the reader disconnects. Exhaustive: stop or continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDisconnect {
    /// Stop the run
    Stop,
    /// Continue without a reader
    Detach,
}

/// `safepoint practice`.
#[derive(Clone, Debug, Args)]
pub(crate) struct PracticeArgs {
    /// The script, as JSON; without one it is the practice model
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Where to write one JSON line per event
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}
