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

/// Agents that can be stopped, and that tell the truth about what was stopped.
#[derive(Debug, Parser)]
#[command(name = "safepoint", version, after_help = TOP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const TOP: &str = "\
Try it without a key:
  safepoint                                      a conversation, with the built-in practice model; takes chat's flags
  safepoint demo
  safepoint run --tools all \"run: sleep 100\"     then Ctrl-C, once or twice

Exit codes of run: 0 done, 1 failed, 2 wrong usage, 3 no such session, 5 another process has it,
10 stopped by a limit, a lost reader or from elsewhere, 11 suspended,
130 stopped by Ctrl-C, 143 by SIGTERM.";

const RUN: &str = "\
Which model, where --model does not say: the config file's, else by OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY or GEMINI_API_KEY, else a local server on port 11434, else the built-in practice model (a script).

Config file: $XDG_CONFIG_HOME/safepoint/config.toml or ~/.config/safepoint/config.toml, with model, base_url,
api_key_env, system, max_tokens, temperature, window, on_full, tools, parallel, approve, unknown,
approval_expiry, max_rounds. The command line outranks it.
Its [mcp.NAME] are servers of tools: `command`, `args`, `env`, `cwd`, or `url`, `headers`; see `safepoint mcp ls`.
Its [[rules]] rule on calls, the first that fits decides: `tool`, `args` (patterns, * is any text), `then` = \"allow\",
\"ask\" or \"deny\", `message`. Only what they ask, or do not speak of, is --approve's; see docs/guides/approvals.md.

Ctrl-C stops at the next safe point, within --grace; a second one stops now. NO_COLOR is honoured.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such session, 5 another process has it,
10 stopped by a limit, a lost reader or from elsewhere, 11 suspended,
130 stopped by Ctrl-C, 143 by SIGTERM.";

const CHAT: &str = "\
Enter sends, and steers while the agent works; Alt-Enter or Tab queues; Esc stops at the next safe point, again: now.
Ctrl-C stops what runs, or clears the input; twice ends within a second. Ctrl-Z goes back to the shell. /help lists the rest.

With --session it is kept, and the same command comes back to it: with what was said, the turn that ended early, and the
questions that are open. /resume and /sessions in it list what else is kept, and go on with one.

Not on a terminal it reads lines from stdin, one turn each, and answers on stdout.";

const CONTROL: &str = "\
Exit codes: 0 accepted, or already so; 1 other, or not known to be quiet; 2 wrong usage; 3 no such session, run or call; 4 too late;
5 conflict; 6 inbox full or closed; 7 --wait timed out.";

/// The commands. Exhaustive: `main` runs each.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A conversation on the terminal: steer, queue and stop while it works; what `safepoint` alone does
    #[command(after_help = CHAT)]
    Chat(Box<ChatArgs>),
    /// One turn, or several with --then; text goes to stdout, everything else to stderr
    #[command(after_help = RUN)]
    Run(Box<RunArgs>),
    /// Go on with a kept session: a stopped, suspended or crashed turn is taken up where it was
    Resume(Box<ResumeArgs>),
    /// The approvals of a kept session
    Approvals(ApprovalsArgs),
    /// Let a call run that waits for approval, perhaps with other arguments, perhaps for always; or run one again of which
    /// nobody knows whether it happened
    Approve(DecideArgs),
    /// Do not let it run; the model is told. Of one that may have happened: give it up
    Deny(DecideArgs),
    /// Give the call's result yourself instead of letting it run. Of one that may have happened: say that it is done
    Respond(DecideArgs),
    /// The file in which sessions are kept
    #[command(subcommand)]
    Store(StoreCommand),
    /// Says something to a session that runs in another terminal
    #[command(after_help = CONTROL)]
    Push(PushArgs),
    /// Says something to the turn at work there, without stopping it
    #[command(after_help = CONTROL)]
    Steer(SteerArgs),
    /// Takes something back that waits there
    #[command(after_help = CONTROL)]
    Withdraw(WithdrawArgs),
    /// Stops a session or a run in another terminal: at the next safe point, after 5 s now
    #[command(after_help = CONTROL)]
    Stop(StopArgs),
    /// The sessions: those that are kept, and those that run
    #[command(subcommand, after_help = CONTROL)]
    Sessions(SessionsCommand),
    /// Looks back on a kept session: what was done when, and what a stop did, as text, JSON or a page
    #[command(after_help = CONTROL)]
    Trace(TraceArgs),
    /// A tour of under a minute, offline: what a stop does, and what its receipt says
    Demo,
    /// Try the servers of tools that the config file names as [mcp.NAME]
    Mcp(McpArgs),
    /// The scripted model server, for trying things without a key
    Practice(PracticeArgs),
}

/// `safepoint run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` or nothing reads it from stdin
    pub(crate) prompt: Option<String>,
    /// A further turn on the same history, also after a stopped one (repeatable)
    #[arg(long = "then", value_name = "PROMPT")]
    pub(crate) then: Vec<String>,
    /// Keep the conversation as this session, or go on with it
    #[arg(long, value_name = "ID", value_parser = names::parse)]
    pub(crate) session: Option<String>,
    /// Keep it in this file; default with --session: $XDG_DATA_HOME/safepoint/store.db, or under ~/.local/share
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

/// What only a model takes; an agent of somebody else's has its own.
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
    /// Somebody else's agent instead of a model: acp:"COMMAND" starts one that speaks ACP, a2a:URL is
    /// one behind A2A, responses:MODEL a provider's response in the background
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
    /// Who decides about calls that change something, where no rule of the config file does; default: ask
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    /// What becomes of a call that changes something and was cut off, so that nobody knows whether it happened;
    /// default: tell
    #[arg(long, value_enum)]
    pub(crate) unknown: Option<Unknown>,
    /// How long a question waits for a person before the model is told that nobody answered; default: 30d
    #[arg(long, value_name = "DUR|never", value_parser = duration_or_never)]
    pub(crate) approval_expiry: Option<Duration>,
    /// The config file
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Record what the model is asked and answers in this new file; keys are never in it, what is said is
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Answer from such a recording instead of a model: strictly, and without a key
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

/// As if nothing was said.
#[derive(Debug, Parser)]
struct Unsaid {
    #[command(flatten)]
    chat: ChatArgs,
}

impl ChatArgs {
    /// What holds where nothing is said.
    pub(crate) fn usual() -> Self {
        Unsaid::try_parse_from(["safepoint"]).expect("every flag of a chat can be left out").chat
    }
}

/// What was written: `safepoint` alone is `chat`, also where flags of it follow.
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
    /// Whether what was said can be meant, on the command line or in the config file.
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
    /// Keep the conversation as this session, or go on with it
    #[arg(long, value_name = "ID", value_parser = names::parse)]
    pub(crate) session: Option<String>,
    /// Keep it in this file; default with --session: $XDG_DATA_HOME/safepoint/store.db, or under ~/.local/share
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
    /// A person at the terminal; denied where nobody can be asked
    Ask,
    /// Everything may run
    Auto,
    /// Nothing that would be asked may run
    Deny,
}

/// Who is asked about a call of which nobody knows whether it happened. Exhaustive: it is never run again unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unknown {
    /// The model is told that nobody knows
    Tell,
    /// A person is asked: run it again, say that it is done, or give it up
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

/// What a lost reader does. Exhaustive: stop or go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDisconnect {
    /// Stop the run
    Stop,
    /// Go on without a reader
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
