//! The command line: a contract that scripts rely on.

pub(crate) mod agent;
pub(crate) mod approvals;
pub(crate) mod backend;
pub(crate) mod chat;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod duration;
pub(crate) mod keep;
pub(crate) mod local;
pub(crate) mod mcp;
pub(crate) mod mode;
pub(crate) mod names;
pub(crate) mod nodes;
pub(crate) mod place;
pub(crate) mod placed;
pub(crate) mod practice;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod server;
pub(crate) mod sessions;
pub(crate) mod store;
pub(crate) mod trace;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use self::{
    approvals::{ApprovalsArgs, DecideArgs},
    chat::ChatArgs,
    config::{CompletionsArgs, ConfigArgs, DoctorArgs},
    control::{PushArgs, SteerArgs, StopArgs, WithdrawArgs},
    local::LocalArgs,
    mcp::McpArgs,
    nodes::NodesCommand,
    practice::PracticeArgs,
    run::{ResumeArgs, RunArgs},
    sandbox::SandboxArgs,
    serve::{ServeArgs, TokenArgs},
    sessions::SessionsCommand,
    store::StoreCommand,
    trace::TraceArgs,
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
  safepoint \"explain this repository\"            the same, with a first message; -p answers it once, as run does
  safepoint demo
  safepoint run --tools all \"run: sleep 100\"     then Ctrl-C, once or twice

Exit codes of run and resume: 0 done, 1 failed, 2 wrong usage, 3 session not found, 5 another process owns the session,
10 stopped by a limit, a lost reader or another process, 11 suspended, 130 stopped by Ctrl-C, 143 by SIGTERM.";

/// The commands. Exhaustive: `main` runs each.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a conversation on the terminal; `safepoint` alone does the same
    Chat(Box<ChatArgs>),
    /// Run one turn, or several with --then; text goes to stdout, everything else to stderr
    Run(Box<RunArgs>),
    /// Resume the stopped, suspended or interrupted turn of a stored session
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
    Push(PushArgs),
    /// Steer the running turn of a session without a stop
    Steer(SteerArgs),
    /// Remove a queued message from a running session
    Withdraw(WithdrawArgs),
    /// Stop a session or a run in another terminal at the next safe point, after 5 s now
    Stop(StopArgs),
    /// List, show and remove sessions, stored and running
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// List the processes that hold sessions of a store, and drain one
    #[command(subcommand)]
    Nodes(NodesCommand),
    /// Show the timeline of a stored session as text, JSON or a page
    Trace(TraceArgs),
    /// Show in under a minute, offline, what stops do and what receipts report
    Demo,
    /// Add, try and remove the tool servers of the config file ([mcp.NAME])
    Mcp(McpArgs),
    /// Show which settings hold and where they come from, and decide about a project's
    Config(ConfigArgs),
    /// Say what is found, what is missing, and how to correct it
    Doctor(DoctorArgs),
    /// Print or install the completions of a shell, or the manual pages
    Completions(CompletionsArgs),
    /// Run a command in the sandbox of an agent's commands, or list what this system enforces of it
    Sandbox(SandboxArgs),
    /// Serve sessions over HTTP, for programs, pages and editors
    Serve(Box<ServeArgs>),
    /// Let an editor drive sessions over stdin and stdout (ACP)
    #[command(after_help = local::ACP)]
    Acp(Box<LocalArgs>),
    /// Make, list and revoke the tokens of the server
    Token(TokenArgs),
    /// Serve the scripted practice model, which needs no key
    Practice(PracticeArgs),
}

/// What is meant by the arguments as typed: flags, or a text of several words, right behind `safepoint` are for `chat`, and `-p` for `run`.
pub(crate) fn meant(typed: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    const OWN: [&str; 4] = ["-h", "--help", "-V", "--version"];
    let mut args: Vec<OsString> = typed.into_iter().collect();
    let is_of_chat = |arg: &OsString| {
        let arg = arg.to_string_lossy();
        let is_text = arg.trim().contains(' ') && !arg.contains(char::is_control);
        is_text || (arg.starts_with('-') && !OWN.contains(&&*arg))
    };
    match args.get(1) {
        Some(first) if matches!(&*first.to_string_lossy(), "-p" | "--print") => args[1] = "run".into(),
        Some(first) if is_of_chat(first) => args.insert(1, "chat".into()),
        Some(_) | None => {}
    }
    args
}
