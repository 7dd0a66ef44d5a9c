//! The `safepoint` binary: reads the command line, builds the runtime, and says with its exit code how it went.

mod approvals;
mod approve;
mod args;
mod attach;
mod backend;
mod chat;
mod commands;
mod config;
mod control;
mod conversation;
mod demo;
mod duration;
mod json;
mod kept;
mod keyboard;
mod mcp;
mod model;
mod practice;
mod printer;
mod prompts;
mod questions;
mod rules;
mod run;
mod screen;
mod sessions;
mod setup;
mod signals;
mod status;
mod survivors;
mod told;
mod tools;
mod trace;
mod view;

use std::{process::ExitCode, time::Duration};

use clap::Parser as _;

use crate::{
    approvals::Verb,
    args::{ChatArgs, Cli, Command},
    kept::StoreCommand,
};

fn main() -> ExitCode {
    // First: a guard forks, and only a process with one thread can do that safely.
    safepoint_tools::process::guard_main_if_asked();
    // Before anything is read: no other process of this user sees our keys.
    safepoint_tools::process::keep_secrets();
    let cli = Cli::parse_from(args::written());
    leave_with_the_reader();
    tracing_subscriber::fmt().with_env_filter(logged()).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::new(error).context("the runtime could not be started")),
    };
    let code = runtime.block_on(async {
        match cli.command {
            None if chat::is_on_terminal() => chat::chat(ChatArgs::usual()).await,
            None => Ok(help()),
            Some(Command::Chat(args)) => chat::chat(*args).await,
            Some(Command::Push(args)) => control::client::push(args).await,
            Some(Command::Steer(args)) => control::client::steer(args).await,
            Some(Command::Withdraw(args)) => control::client::withdraw(args).await,
            Some(Command::Stop(args)) => control::client::stop(args).await,
            Some(Command::Sessions(command)) => sessions::sessions(command).await,
            Some(Command::Run(args)) => run::run(args).await,
            Some(Command::Resume(args)) => run::resume(args).await,
            Some(Command::Approvals(args)) => approvals::approvals(args).await,
            Some(Command::Approve(args)) => approvals::decide(Verb::Approve, args).await,
            Some(Command::Deny(args)) => approvals::decide(Verb::Deny, args).await,
            Some(Command::Respond(args)) => approvals::decide(Verb::Respond, args).await,
            Some(Command::Store(StoreCommand::Check(place))) => kept::check(place).await,
            Some(Command::Store(StoreCommand::Export(args))) => kept::export(args).await,
            Some(Command::Trace(args)) => trace::trace(args).await,
            Some(Command::Demo) => demo::demo().await,
            Some(Command::Mcp(args)) => mcp::mcp(args).await,
            Some(Command::Practice(args)) => practice::practice(args).await,
        }
    });
    // A thread that waits at a prompt must not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(50));
    code.unwrap_or_else(|error| failed(&error))
}

/// Whoever lists something into `head` has seen enough: that is no failure of ours, and no trace of it is shown. What runs
/// turns has writers of its own, and a closed stdout is a disconnect there.
fn leave_with_the_reader() {
    const CLOSED: u8 = 141;
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        if said.starts_with("failed printing to stdout") && said.contains("Broken pipe") {
            // As a program that a closed pipe has ended, by the number of its signal.
            std::process::exit(i32::from(CLOSED));
        }
        usual(panic);
    }));
}

/// What `SAFEPOINT_LOG` says; else our own errors, and not what a library says of a server that we tell of ourselves.
fn logged() -> tracing_subscriber::EnvFilter {
    use tracing_subscriber::EnvFilter;
    EnvFilter::try_from_env("SAFEPOINT_LOG").unwrap_or_else(|_unset| EnvFilter::new("error,rmcp=off"))
}

fn help() -> ExitCode {
    use clap::CommandFactory as _;
    if Cli::command().print_help().is_err() {
        // Nobody reads it.
    }
    ExitCode::SUCCESS
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("safepoint: {error:#}");
    let usage = error.is::<args::Usage>() || error.chain().any(|cause| cause.is::<args::Usage>());
    let elsewhere = error.is::<conversation::Elsewhere>();
    ExitCode::from(match (usage, elsewhere, error.is::<conversation::NoSession>()) {
        (true, ..) => 2,
        (false, _, true) => 3,
        (false, true, false) => 5,
        (false, false, false) => 1,
    })
}
